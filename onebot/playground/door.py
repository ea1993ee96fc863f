"""Whose browser may speak for the account of a playground.

The page fetches a token before each connection. It is good for a minute, for one user's own
playground, and in the browser session that it was made in alone: the handshake has to bring that
session's cookie too.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from importlib import import_module

from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.admin import site
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.core import signing
from django.http import HttpRequest, HttpResponse, parse_cookie
from django.utils.crypto import constant_time_compare
from django_otp.middleware import OTPMiddleware

from agent.domain.types import playground_account, playground_owner
from onebot.connections.handshake import Handshake

PERMISSION = "agent.use_playground"
SALT = "onebot.playground"
#: How long a token may be under way, in seconds.
TOKEN_SECONDS = 60
#: How long the database may take to say whether a session still lives, in seconds.
ASK_SECONDS = 5.0


def make_token(user_pk: int, session_key: str) -> str:
    """A token for the playground of a user, to be presented by the same browser session."""
    signed: str = signing.dumps([user_pk, _session_mark(session_key)], salt=SALT)
    return signed


class SignedDoor:
    """The :class:`onebot.connections.handshake.PlaygroundDoor` of users who are signed in."""

    def find_account(self, handshake: Handshake, tokens: Sequence[bytes]) -> str:
        session_key = _session_key(handshake)
        if not session_key or handshake.peer not in settings.ADMIN_NETWORKS:
            return ""
        return next(filter(None, (_opened_account(token, session_key) for token in tokens)), "")

    async def is_open(self, account: str, handshake: Handshake) -> bool:
        ask = database_sync_to_async(may_speak, thread_sensitive=False)
        async with asyncio.timeout(ASK_SECONDS):
            return bool(await ask(account, _session_key(handshake)))


def may_speak(account: str, session_key: str) -> bool:
    """Whether that session is signed in to the admin, by the user whose playground ``account`` is,
    who may use it."""
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    AuthenticationMiddleware(lambda _request: HttpResponse()).process_request(request)
    OTPMiddleware(lambda _request: HttpResponse())(request)
    user = request.user
    return bool(
        user.pk == playground_owner(account)
        and site.has_permission(request)
        and user.has_perm(PERMISSION)
    )


def _opened_account(token: bytes, session_key: str) -> str:
    """The account that ``token`` opens in this session; "" for none."""
    try:
        user_pk, mark = signing.loads(token.decode("ascii"), salt=SALT, max_age=TOKEN_SECONDS)
    except (signing.BadSignature, ValueError):
        return ""
    is_own = constant_time_compare(mark, _session_mark(session_key))
    return playground_account(user_pk) if is_own else ""


def _session_mark(session_key: str) -> str:
    return hashlib.sha256(f"{SALT}:{session_key}".encode()).hexdigest()[:32]


def _session_key(handshake: Handshake) -> str:
    """The session that the browser is signed in with, "" for none."""
    return parse_cookie(handshake.headers.get("cookie", "")).get(settings.SESSION_COOKIE_NAME, "")
