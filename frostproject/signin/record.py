"""Failed and successful sign-ins: a line in the log, and a count in the database.

Where accounts are signed in: one row for each browser, and whoever ends it signs it out.

The row is looked up with every request (one short query), and by the WebSockets of the admin with
each of their checks, so an ended session is signed out at its next request, in every process.

How long ago the user of a session last proved who they are.
"""

import hashlib
import logging
import secrets
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin, messages
from django.contrib.auth import get_user_model, logout
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.contrib.sessions.models import Session
from django.db import DatabaseError, transaction
from django.db.models import F, QuerySet
from django.db.models.signals import post_save
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import crypto, timezone
from django.utils.html import format_html
from django.utils.translation import gettext as _, ngettext

from frostproject.models import FailedSignIns, SignInRecord, SignInSession
from frostproject.signin import factors
from frostproject.signin.attempt import find_attempt
from tools.error_boundary import LogLimit

#: How long the password is not asked again, in seconds.
FRESH_SECONDS = 600
PROVED_AT_KEY = "frostagent_proved_at"


def mark_fresh(request: HttpRequest) -> None:
    """The person at ``request`` has just given a password, a code or a passkey."""
    request.session[PROVED_AT_KEY] = int(time.time())


def is_fresh(request: HttpRequest) -> bool:
    """Whether that was a moment ago; not so where the clock was set back since."""
    proved_at = request.session.get(PROVED_AT_KEY)
    return isinstance(proved_at, int) and 0 <= time.time() - proved_at < FRESH_SECONDS


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


def end_own_session(request: HttpRequest | None, **_more: object) -> None:
    """When somebody signs out."""
    token = request.session.get(SIGN_IN_KEY) if request is not None else None
    if token:
        end_sessions(SignInSession.objects.filter(token_hash=_hash(token)))


def end_sessions_of_inactive(instance: User, **_more: object) -> None:
    """After an account was saved: without it being active none of its sessions is left."""
    if not instance.is_active:
        end_sessions(SignInSession.objects.filter(user=instance))


def password_mark(user: User) -> str:
    """Differs for another password, and tells nothing of it."""
    return crypto.salted_hmac(MARK_SALT, user.password, algorithm="sha256").hexdigest()[:16]


def sign_in_sessions(get_response: View) -> View:
    """The middleware: signs out whose session was ended, and notes when a session was seen."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        if request.session.get(SIGN_IN_KEY) and (
            not request.user.is_authenticated or has_ended(request)
        ):
            logout(request)
        elif (
            isinstance(request.user, User)
            and not request.session.get(SIGN_IN_KEY)
            and admin.site.has_permission(request)
        ):  # a session of before there was a record
            try:
                with transaction.atomic():
                    open_session(request, request.user)
            except DatabaseError as error:
                logger.warning("A session could not be put on record: %s", error)
        response = get_response(request)
        if (row := getattr(request, "_sign_in_session", None)) is not None:
            _note(request, row)
        return response

    return answer


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


logger = logging.getLogger(__name__)
limit = LogLimit(logger)
change_logger = logging.getLogger(f"{__name__}.changes")  # each of these is said

#: Characters of a name that a line of the log holds.
NAME_SHOWN = 64
#: For how long failures are counted, and rows kept.
FAILURE_AGE = timedelta(hours=24)


def connect_sign_in_signals() -> None:
    """Connect the handlers of Django's sign-in signals; called at the start of the process."""
    user_login_failed.connect(_password_failed, dispatch_uid="frostproject.signin")
    user_logged_in.connect(_password_passed, dispatch_uid="frostproject.signin")
    uid = "frostproject.signin.record"
    user_logged_out.connect(end_own_session, dispatch_uid=uid)
    post_save.connect(end_sessions_of_inactive, get_user_model(), dispatch_uid=uid)


def record_failure(request: HttpRequest, name: str, what: str) -> None:
    """``what`` (in the log's English) was wrong for the account ``name``, whether there is one or
    not."""
    address = find_attempt(request).address
    shown = name if len(name) <= NAME_SHOWN else f"{name[:NAME_SHOWN]}…"
    limit.warn(
        "failed", "A sign-in failed (%s): %r from %s", what, shown, address or "a local socket"
    )
    try:
        with transaction.atomic():
            _count(name, address)
    except DatabaseError as error:  # the answer is the same, counted or not
        logger.warning("A failed sign-in could not be counted: %s", error)


def record_sign_in(request: HttpRequest, user: User) -> None:
    """``user`` has signed in with every factor; shows which attempts failed since the last
    sign-in."""
    attempt = find_attempt(request)
    attempt.succeeded = True
    mark_fresh(request)
    try:
        with transaction.atomic():
            delete_expired_sessions()
            before, _made = SignInRecord.objects.get_or_create(user=user)
            SignInRecord.objects.filter(user=user).update(
                signed_in_at=timezone.now(),
                address=attempt.address[:64],
                failed_before=before.failed,
                failed=0,
            )
            open_session(request, user)
    except DatabaseError as error:
        logger.warning("A sign-in could not be recorded: %s", error)
        return
    address = attempt.address or "a local socket"
    logger.info(
        "%r signed in from %s, after %s failed tries",
        user.get_username()[:NAME_SHOWN],
        address,
        before.failed,
    )
    if before.signed_in_at is None and not factors.has_second_factor(user):
        offer = '{} <a href="{}">{}</a>'
        words = _("Your account has no second factor yet."), _("Set up a second factor")
        page = reverse("admin:second_factor")
        messages.info(request, format_html(offer, words[0], page, words[1]), fail_silently=True)
    if before.failed:
        text = ngettext(
            "%(count)d sign-in to your account failed since you signed in last; the last one came "
            "from %(address)s at %(time)s.",
            "%(count)d sign-ins to your account failed since you signed in last; the last one "
            "came from %(address)s at %(time)s.",
            before.failed,
        )
        at = (
            timezone.localtime(before.failed_at).strftime("%Y-%m-%d %H:%M")
            if before.failed_at
            else "-"
        )
        values = {"count": before.failed, "address": before.failed_address or "-", "time": at}
        messages.warning(request, text % values, fail_silently=True)


def delete_expired_sessions() -> None:
    """Delete those that are over; Django leaves them."""
    Session.objects.filter(expire_date__lt=timezone.now()).delete()
    SignInSession.objects.filter(expires_at__lt=timezone.now()).delete()


def log_session_end(user: User, by: str, count: int) -> None:
    """``count`` sessions of ``user`` were ended."""
    change_logger.warning(
        "%s sessions of %r were ended by %r", count, user.get_username()[:NAME_SHOWN], by
    )


def log_factor_change(user: User, what: str) -> None:
    """``what`` (in the log's English) happened to the second factors of ``user``."""
    change_logger.warning("Second factor of %r: %s", user.get_username()[:NAME_SHOWN], what)


def _password_failed(
    credentials: dict[str, Any], request: HttpRequest | None = None, **_more: object
) -> None:
    record_failure(
        request or HttpRequest(),
        str(credentials.get(get_user_model().USERNAME_FIELD, "")),
        "password",
    )


def _password_passed(request: HttpRequest | None, user: User, **_more: object) -> None:
    """A right password gives back what the try took; a second factor has its own."""
    if request is None:
        return
    find_attempt(request).succeeded = True
    if not factors.has_second_factor(user):
        record_sign_in(request, user)


def _count(name: str, address: str) -> None:
    now = timezone.now()
    hour = now.replace(minute=0, second=0, microsecond=0)
    FailedSignIns.objects.get_or_create(hour=hour)
    FailedSignIns.objects.filter(hour=hour).update(
        count=F("count") + 1, last_at=now, last_address=address[:64]
    )
    FailedSignIns.objects.filter(hour__lt=hour - FAILURE_AGE).delete()
    users = get_user_model()._default_manager
    if user := users.filter(**{get_user_model().USERNAME_FIELD: name[:150]}).only("pk").first():
        SignInRecord.objects.get_or_create(user=user)
        SignInRecord.objects.filter(user=user).update(
            failed=F("failed") + 1, failed_at=now, failed_address=address[:64]
        )
