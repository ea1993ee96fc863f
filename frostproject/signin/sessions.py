"""Where accounts are signed in: one row for each browser, and whoever ends it signs it out.

The row is looked up with every request (one short query), and by the WebSockets of the admin with
each of their checks, so an ended session is signed out at its next request, in every process.
"""

import hashlib
import logging
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.contrib.auth import logout
from django.contrib.auth.models import User
from django.db import DatabaseError, transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.crypto import salted_hmac

from frostproject.models import SignInSession
from frostproject.signin.attempt import find_attempt

logger = logging.getLogger(__name__)

SIGN_IN_KEY = "frostagent_sign_in"
MARK_SALT = "frostagent sign-in session"
#: When a session was seen last is known to this much, so that few requests write anything.
SEEN_STEP = timedelta(minutes=5)

View = Callable[[HttpRequest], HttpResponseBase]


def open_session(request: HttpRequest, user: User) -> None:
    """Put on record that the browser of ``request`` is signed in as ``user``, with every
    factor. Raises database errors."""
    token = request.session.get(SIGN_IN_KEY) or secrets.token_urlsafe(24)
    now, before = timezone.now(), getattr(request, "_sign_in_session", None)
    if before is not None and before.token_hash != _hash(token):  # of somebody else, until now
        before.delete()
    SignInSession.objects.update_or_create(
        token_hash=_hash(token),
        defaults={
            "user": user,
            "password_mark": password_mark(user),
            "address": find_attempt(request).address[:64],
            "user_agent": request.headers.get("User-Agent", "")[:400],
            "signed_in_at": now,
            "last_seen_at": now,
            "expires_at": _expiry(request, now),
        },
    )
    request.session[SIGN_IN_KEY] = token
    request._sign_in_session = None  # type: ignore[attr-defined]  # is read again


def own_session(request: HttpRequest) -> SignInSession | None:
    """The row of the session of ``request``; None where there is none, or no longer. One query a
    request."""
    found: SignInSession | None = getattr(request, "_sign_in_session", None)
    token = request.session.get(SIGN_IN_KEY)
    if found is None and token:
        found = SignInSession.objects.filter(token_hash=_hash(token)).first()
        request._sign_in_session = found  # type: ignore[attr-defined]
    return found


def has_ended(request: HttpRequest) -> bool:
    """Whether somebody has ended the session of ``request``. A session that was never put on
    record, such as one that waits for the second factor, has not been."""
    session = getattr(request, "session", None)
    if session is None or not session.get(SIGN_IN_KEY):
        return False
    row = own_session(request)
    return row is None or row.user_id != request.user.pk


def live_sessions(user: User) -> "QuerySet[SignInSession]":
    """Where ``user`` is signed in, the one seen last first; what a changed password or a
    deactivation has ended is not among them."""
    rows = SignInSession.objects.filter(user=user, expires_at__gt=timezone.now())
    if not user.is_active:
        return rows.none()
    return rows.filter(password_mark=password_mark(user)).order_by("-last_seen_at", "-pk")


def end_sessions(rows: "QuerySet[SignInSession]") -> int:
    """Sign out ``rows``; how many there were."""
    return rows.delete()[0]


def end_own_session(request: HttpRequest | None, **_more: Any) -> None:
    """When somebody signs out."""
    token = request.session.get(SIGN_IN_KEY) if request is not None else None
    if token:
        end_sessions(SignInSession.objects.filter(token_hash=_hash(token)))


def end_sessions_of_inactive(instance: User, **_more: Any) -> None:
    """After an account was saved: without it being active none of its sessions is left."""
    if not instance.is_active:
        end_sessions(SignInSession.objects.filter(user=instance))


def delete_expired_rows() -> None:
    SignInSession.objects.filter(expires_at__lt=timezone.now()).delete()


def password_mark(user: User) -> str:
    """Differs for another password, and tells nothing of it."""
    return salted_hmac(MARK_SALT, user.password, algorithm="sha256").hexdigest()[:16]


def sign_in_sessions(get_response: View) -> View:
    """The middleware: signs out whose session was ended, and notes when a session was seen."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        if request.session.get(SIGN_IN_KEY) and (
            not request.user.is_authenticated or has_ended(request)
        ):
            logout(request)
        elif request.user.is_authenticated and not request.session.get(SIGN_IN_KEY):
            _adopt(request)
        response = get_response(request)
        if (row := getattr(request, "_sign_in_session", None)) is not None:
            _note(request, row)
        return response

    return answer


def _adopt(request: HttpRequest) -> None:
    """Put a session on record that is not yet: one of before there was a record."""
    if isinstance(request.user, User) and admin.site.has_permission(request):
        try:
            with transaction.atomic():
                open_session(request, request.user)
        except DatabaseError as error:
            logger.warning("A session could not be put on record: %s", error)


def _note(request: HttpRequest, row: SignInSession) -> None:
    """Keep ``row`` true, with a write every few minutes at most."""
    now, user = timezone.now(), request.user
    if not isinstance(user, User) or not request.session.get(SIGN_IN_KEY):
        return  # has signed out
    changes: dict[str, Any] = {"last_seen_at": now} if now - row.last_seen_at > SEEN_STEP else {}
    if (mark := password_mark(user)) != row.password_mark:
        changes["password_mark"] = mark
    if request.session.modified and _expiry(request, now) - row.expires_at > SEEN_STEP:
        changes["expires_at"] = _expiry(request, now)
    if changes:
        try:
            with transaction.atomic():
                SignInSession.objects.filter(pk=row.pk).update(**changes)
        except DatabaseError as error:
            logger.warning("When a session was seen could not be noted: %s", error)


def _expiry(request: HttpRequest, now: datetime) -> datetime:
    return now + timedelta(seconds=request.session.get_expiry_age())


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
