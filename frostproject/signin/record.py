"""Failed and successful sign-ins: a line in the log, and a count in the database."""

import logging
from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.contrib.sessions.models import Session
from django.db import DatabaseError, transaction
from django.db.models import F
from django.db.models.signals import post_save
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from frostproject.models import FailedSignIns, SignInRecord
from frostproject.signin import factors, freshness, sessions
from frostproject.signin.attempt import find_attempt
from tools.log_limit import LogLimit

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
    uid = "frostproject.signin.sessions"
    user_logged_out.connect(sessions.end_own_session, dispatch_uid=uid)
    post_save.connect(sessions.end_sessions_of_inactive, get_user_model(), dispatch_uid=uid)


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
    freshness.mark_fresh(request)
    try:
        with transaction.atomic():
            before = _succeeded(user, attempt.address)
            sessions.open_session(request, user)
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
        place = reverse("admin:second_factor")
        messages.info(request, format_html(offer, words[0], place, words[1]), fail_silently=True)
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
    sessions.delete_expired_rows()


def log_session_end(user: User, by: str, count: int) -> None:
    """``count`` sessions of ``user`` were ended."""
    change_logger.warning(
        "%s sessions of %r were ended by %r", count, user.get_username()[:NAME_SHOWN], by
    )


def log_factor_change(user: User, what: str) -> None:
    """``what`` (in the log's English) happened to the second factors of ``user``."""
    change_logger.warning("Second factor of %r: %s", user.get_username()[:NAME_SHOWN], what)


def _password_failed(
    credentials: dict[str, Any], request: HttpRequest | None = None, **_more: Any
) -> None:
    record_failure(
        request or HttpRequest(),
        str(credentials.get(get_user_model().USERNAME_FIELD, "")),
        "password",
    )


def _password_passed(request: HttpRequest | None, user: User, **_more: Any) -> None:
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


def _succeeded(user: User, address: str) -> SignInRecord:
    """The record as it was before."""
    delete_expired_sessions()
    before, _ = SignInRecord.objects.get_or_create(user=user)
    SignInRecord.objects.filter(user=user).update(
        signed_in_at=timezone.now(), address=address[:64], failed_before=before.failed, failed=0
    )
    return before
