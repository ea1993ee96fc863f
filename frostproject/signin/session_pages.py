"""The pages where people see where they are signed in, and end it; superusers that of everybody."""

import re
from typing import Any

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from frostproject.models import SignInSession
from frostproject.signin import factors, record, sessions

#: Sessions that a page shows.
MOST_SHOWN = 100


def sessions_page(
    request: HttpRequest, site: AdminSite, user_pk: int | None = None
) -> HttpResponse:
    """One's own sessions, or those of the account ``user_pk``, for superusers alone."""
    person, reader = request.user, request.user
    if user_pk is not None and user_pk != reader.pk:
        if not getattr(reader, "is_superuser", False):
            raise Http404
        person = get_object_or_404(User, pk=user_pk)
    assert isinstance(person, User)  # noqa: S101 - the site lets nobody else in
    if request.method == "POST":
        _end(request, person)
        return HttpResponseRedirect(request.path)
    is_own = person.pk == reader.pk
    context = {
        **site.each_context(request),
        "title": _("Sign-in sessions"),
        "subtitle": None if is_own else person.get_username(),
        "person": person,
        "is_own": is_own,
        "lacks_factor": is_own and not factors.has_second_factor(person),
        "sessions": list_sessions(request, person),
    }
    return render(request, "admin/sign_in_sessions.html", context)


def list_sessions(request: HttpRequest, person: User) -> list[dict[str, Any]]:
    """The sessions of ``person`` as pages show them, the one of ``request`` first."""
    own = sessions.own_session(request)
    rows = [
        {
            "row": row,
            "browser": describe_browser(row.user_agent),
            "is_recent": timezone.now() - row.last_seen_at < 2 * sessions.SEEN_STEP,
            "is_this": own is not None and row.pk == own.pk,
        }
        for row in sessions.live_sessions(person)[:MOST_SHOWN]
    ]
    return sorted(rows, key=lambda one: not one["is_this"])


def _end(request: HttpRequest, person: User) -> None:
    """End the session that the form names, or all but the one of ``request``."""
    own = sessions.own_session(request)
    others = SignInSession.objects.filter(user=person).exclude(pk=own.pk if own else 0)
    if request.POST.get("action") == "end":
        number = request.POST.get("session", "")
        chosen = int(number) if number.isascii() and number.isdigit() and len(number) <= 18 else 0
        others = others.filter(pk=chosen)
    elif request.POST.get("action") != "end_others":
        return
    count = sessions.end_sessions(others)
    if count:
        record.log_session_end(person, request.user.get_username(), count)
    text = ngettext("%d session was ended.", "%d sessions were ended.", count) % count
    messages.add_message(request, messages.SUCCESS if count else messages.INFO, text)


# Which browser a User-Agent is of, in the words that people know it by. Pure.

#: The first that is found counts: most browsers also name those that they want to be taken for.
BROWSERS = (
    ("Edge", re.compile(r"\bEdg(?:e|A|iOS)?/")),
    ("Opera", re.compile(r"\bOPR/")),
    ("Samsung Internet", re.compile(r"\bSamsungBrowser/")),
    ("WeChat", re.compile(r"\bMicroMessenger/")),
    ("QQ Browser", re.compile(r"\bM?QQBrowser/")),
    ("QQ", re.compile(r"\bQQ/")),
    ("Firefox", re.compile(r"\b(?:Firefox|FxiOS)/")),
    ("Chrome", re.compile(r"\b(?:Chrome|CriOS|HeadlessChrome)/")),
    ("Safari", re.compile(r"\bVersion/[\d.]+.* Safari/")),
)
SYSTEMS = (
    ("HarmonyOS", re.compile(r"\b(?:HarmonyOS|OpenHarmony)\b")),
    ("Windows", re.compile(r"\bWindows NT\b")),
    ("iPhone", re.compile(r"\biPhone\b")),
    ("iPad", re.compile(r"\biPad\b")),
    ("Android", re.compile(r"\bAndroid\b")),
    ("macOS", re.compile(r"\bMac OS X\b")),
    ("ChromeOS", re.compile(r"\bCrOS\b")),
    ("Linux", re.compile(r"\bLinux\b")),
)


def describe_browser(user_agent: str) -> str:
    """Such as ``Firefox · Windows``; "" for what is no known browser."""
    found = [
        next((name for name, sign in known if sign.search(user_agent)), "")
        for known in (BROWSERS, SYSTEMS)
    ]
    return " · ".join(filter(None, found)) if found[0] else ""
