"""Limits sign-in attempts before they reach Django. Plain ASGI, so that a waiting attempt uses no
thread.

A password check takes most of a second of processor time. So attempts are counted for each address
and each account before anything is computed, and at most two are computed at a time.
"""

import asyncio
import contextlib
import io
import ipaddress
import logging
import math
from collections import deque
from collections.abc import Hashable, MutableMapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.core.exceptions import BadRequest, RequestDataTooBig, SuspiciousOperation
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import translation
from django.utils.functional import cached_property

from frostproject.server.http_channel import client_key
from frostproject.signin.attempt import (
    ATTEMPT_KEY,
    KNOWN_COOKIE,
    SignInAttempt,
    find_known_browser,
    fold_account_name,
)
from frostproject.web import browser_policy, http
from onebot.connections.handshake import Handshake, is_trusted_loopback
from tools import error_boundary, token_bucket

logger = logging.getLogger(__name__)


# The page for users who have to wait, in the style of the admin. Rendered once for each length of
# the wait.


class SignInRefusal(Exception):  # noqa: N818 - an answer, not a fault
    """A try that is answered with ``status``, and may be repeated after ``seconds``; 0 for one that
    may not."""

    def __init__(self, status: int, seconds: int) -> None:
        super().__init__(status)
        self.status = status
        self.seconds = seconds


async def send_refusal(refusal: SignInRefusal, scope: dict[str, Any], send: http.Send) -> None:
    page = _page(refusal.status, refusal.seconds, _language(scope))
    headers = [
        (b"content-type", b"text/html; charset=utf-8"),
        (b"content-length", str(len(page)).encode()),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        *browser_policy.POLICY_HEADERS,
    ]
    if refusal.seconds:
        headers.append((b"retry-after", str(refusal.seconds).encode()))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": page})


def _language(scope: dict[str, Any]) -> str:
    """The language that the client has chosen, by the rules of Django's middleware."""
    request = HttpRequest()
    given = {name: value.decode("latin1") for name, value in scope["headers"]}
    request.META = {"HTTP_ACCEPT_LANGUAGE": given.get(b"accept-language", "")}
    return translation.get_language_from_request(request)


@lru_cache(maxsize=1_000)
def _page(status: int, seconds: int, language: str) -> bytes:
    with translation.override(language):
        return render_to_string(
            "admin/sign_in_refused.html", {"status": status, "seconds": seconds}
        ).encode()


limit = error_boundary.LogLimit(logger)

#: Tries of one address; of all strangers at one account (those on this machine by themselves) or in
#: one session; of a browser
#: that is known.
ADDRESS, STRANGERS, KNOWN = (
    token_bucket.RefillRate(10, 6.0),
    token_bucket.RefillRate(30, 20.0),
    token_bucket.RefillRate(10, 6.0),
)
#: Bytes that the form of a sign-in may have.
MAX_FORM = 64 * 2**10
#: Methods that only read.
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


class ClientDisconnected(Exception):  # noqa: N818 - it says what happened
    """The client has disconnected."""


@dataclass(frozen=True, slots=True)
class SecretEndpoint:
    """An address where something secret is checked."""

    #: Where its form names the account; "" where the session does.
    field: str = ""
    #: Whether it computes the hash of a password.
    hashes: bool = False


class SignInGate:
    """Hands on to ``application`` what it lets through."""

    def __init__(self, application: Any) -> None:
        self._application = application
        self._turns = PasswordQueue()
        self._addresses, self._strangers, self._known = (
            token_bucket.TokenBuckets() for _ in range(3)
        )
        self._running: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: dict[str, Any], receive: http.Receive, send: http.Send) -> None:
        path = scope.get("path", "").removeprefix(scope.get("root_path", ""))
        endpoint = None if scope["method"] in SAFE_METHODS else self._endpoints.get(path)
        if endpoint is None:
            await self._application(scope, receive, send)
            return
        with contextlib.suppress(ClientDisconnected):
            try:
                await self._run_attempt(endpoint, scope, await _small_body(receive), receive, send)
            except SignInRefusal as refusal:
                await send_refusal(refusal, scope, send)

    @cached_property
    def _endpoints(self) -> dict[str, SecretEndpoint]:
        return {
            reverse("admin:login"): SecretEndpoint(field="username", hashes=True),
            reverse("admin:password_change"): SecretEndpoint(hashes=True),
            reverse("admin:sign_in_again"): SecretEndpoint(hashes=True),
            reverse("admin:second_factor_check"): SecretEndpoint(),
            reverse("admin:passkey_begin"): SecretEndpoint(),
            reverse("admin:passkey_complete"): SecretEndpoint(),
        }

    async def _run_attempt(
        self,
        endpoint: SecretEndpoint,
        scope: dict[str, Any],
        body: bytes,
        receive: http.Receive,
        send: http.Send,
    ) -> None:
        attempt = self._count_attempt(endpoint, scope, body)
        if endpoint.hashes:
            await self._wait_for_turn(attempt, receive)
        within = {**scope, ATTEMPT_KEY: attempt}
        work = asyncio.ensure_future(self._run(endpoint, attempt, within, body, send))
        self._running.add(work)
        work.add_done_callback(self._running.discard)
        await asyncio.shield(
            work
        )  # a thread cannot be cancelled: its turn lasts for as long as it does

    async def _run(
        self,
        endpoint: SecretEndpoint,
        attempt: SignInAttempt,
        scope: dict[str, Any],
        body: bytes,
        send: http.Send,
    ) -> None:
        try:
            await self._application(scope, _handing(body), send)
        finally:
            if endpoint.hashes:
                self._turns.release()
            if attempt.succeeded:
                attempt.return_tokens()

    def _count_attempt(
        self, endpoint: SecretEndpoint, scope: dict[str, Any], body: bytes
    ) -> SignInAttempt:
        """The try, counted. Raises :class:`SignInRefusal` (429), which is not counted."""
        request = Handshake.from_scope(scope)
        asked = _request(scope, body)
        attempt = SignInAttempt(_address(request), _field(asked, endpoint.field))
        browser = (
            find_known_browser(
                asked.COOKIES.get(KNOWN_COOKIE, ""),
                attempt.name if endpoint.field else None,
            )
            if asked
            else ""
        )
        attempt.is_known = bool(browser)
        session = asked.COOKIES.get(settings.SESSION_COOKIE_NAME, "")[:64] if asked else ""
        account: Hashable = (
            fold_account_name(attempt.name) if endpoint.field else ("session", session)
        )
        if not browser and is_trusted_loopback(request):
            account = ("local", account)
        first = (
            (self._known, token_bucket.Quota(browser, KNOWN))
            if browser
            else (self._addresses, token_bucket.Quota(attempt.address, ADDRESS))
        )
        wanted = [first]
        if not (browser and endpoint.field):
            wanted.append((self._strangers, token_bucket.Quota(account, STRANGERS)))
        if wait := max(buckets.wait_seconds(quota) for buckets, quota in wanted):
            limit.warn(
                "slowed",
                "Sign-ins from %s are slowed down: too many tries",
                attempt.address or "a local socket",
            )
            raise SignInRefusal(429, math.ceil(wait))
        attempt.taken_tokens = [
            bucket for buckets, quota in wanted for bucket in buckets.take(quota)
        ]
        return attempt

    async def _wait_for_turn(self, attempt: SignInAttempt, receive: http.Receive) -> None:
        """Raises :class:`SignInRefusal` (503), which is not counted, and
        :class:`ClientDisconnected`, which is. A cancelled attempt holds no turn."""
        waiting = asyncio.ensure_future(self._turns.acquire(is_known=attempt.is_known))
        gone = asyncio.ensure_future(_until_gone(receive))
        try:
            await asyncio.wait((waiting, gone), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if waiting.done() and not waiting.exception():
                self._turns.release()
            waiting.cancel()
            raise
        finally:
            gone.cancel()
        if not waiting.done():
            waiting.cancel()
            raise ClientDisconnected
        try:
            waiting.result()
        except PasswordQueueFull as error:
            attempt.return_tokens()
            limit.warn(
                "crowded",
                "A sign-in from %s was put off: too many wait",
                attempt.address or "a local socket",
            )
            raise SignInRefusal(503, math.ceil(PASSWORD_WAIT_SECONDS)) from error


async def _small_body(receive: http.Receive) -> bytes:
    """The whole body. Raises :class:`SignInRefusal` (413) and :class:`ClientDisconnected`."""
    body = b""
    while True:
        message: dict[str, Any] = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        body += bytes(message.get("body", b""))
        if len(body) > MAX_FORM:
            raise SignInRefusal(413, 0)
        if not message.get("more_body"):
            return body


def _handing(body: bytes) -> http.Receive:
    """``receive`` for Django: the body, and then nothing.

    If Django saw that the client disconnected, it would abandon the work in its thread, and asgiref
    would then wait for that thread on the event loop.
    """
    messages: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if messages:
            return messages.pop()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    return receive


async def _until_gone(receive: http.Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _request(scope: MutableMapping[str, Any], body: bytes) -> ASGIRequest | None:
    """The request as Django will see it; None where it will refuse it."""
    try:
        return ASGIRequest(dict(scope), io.BytesIO(body))
    except (ValueError, RequestDataTooBig):
        return None


def _field(request: ASGIRequest | None, name: str) -> str:
    """The field of the form in ``request``, read by Django's own rules; "" when it is not a
    form."""
    if request is None or not name:
        return ""
    try:
        return str(request.POST.get(name, ""))
    except (
        BadRequest,
        MultiPartParserError,
        SuspiciousOperation,
        UnreadablePostError,
        LookupError,
        ValueError,
    ):
        return ""


def _address(request: Handshake) -> str:
    """The address that a request counts for: the peer, or, behind a proxy on this machine, the last
    address that the proxy names."""
    try:
        peer = client_key(request.peer)
        if peer and not ipaddress.ip_address(peer.partition("/")[0]).is_loopback:
            return peer
        named = request.headers.get("x-forwarded-for", "").rpartition(",")[2].strip()
        return client_key(named) or peer
    except ValueError:
        return request.peer[:64]


# Taking turns at password checks, each of which costs most of a second of a processor.

#: Checks at a time.
CHECKS_AT_ONCE = 2
#: Requests that wait for one, of browsers that are known and of others; for how many seconds.
MAX_WAITING = 10
PASSWORD_WAIT_SECONDS = 10.0


class PasswordQueueFull(Exception):  # noqa: N818 - an answer, not a fault
    """Too many wait already, or the turn did not come in time."""


class PasswordQueue:
    """At most :data:`CHECKS_AT_ONCE` have a turn. Who waits occupies no thread. Browsers that are
    known go first, in a line of their own."""

    def __init__(self) -> None:
        self._free = CHECKS_AT_ONCE
        self._known: deque[asyncio.Future[None]] = deque()
        self._strangers: deque[asyncio.Future[None]] = deque()

    async def acquire(self, *, is_known: bool) -> None:
        """Wait for a turn, which is held until :meth:`release`. Raises :class:`PasswordQueueFull`;
        a cancelled call holds none."""
        if self._free:
            self._free -= 1
            return
        line = self._known if is_known else self._strangers
        if len(line) >= MAX_WAITING:
            raise PasswordQueueFull
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.append(mine)
        try:
            async with asyncio.timeout(PASSWORD_WAIT_SECONDS):
                await mine
        except BaseException as error:
            if mine in line:
                line.remove(mine)
            elif not mine.cancelled():
                self.release()  # it came in the same moment
            if isinstance(error, TimeoutError):
                raise PasswordQueueFull from error
            raise

    def release(self) -> None:
        for line in (self._known, self._strangers):
            while line:
                following = line.popleft()
                if not following.done():
                    following.set_result(None)
                    return
        self._free += 1
