"""The start page: the way from an empty installation to the first answer, which checks itself
off."""

import hashlib
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters

from frostproject.cockpit.check_desk import check_desk
from frostproject.cockpit.start_clients import (
    GUIDES,
    HIDDEN,
    PLACES,
    client_address,
    find_guide,
)
from frostproject.cockpit.start_forms import describe_lively, owners_form, persona_form, save_step
from frostproject.cockpit.start_model import ModelTry, describe_providers, try_model
from frostproject.cockpit.start_steps import SetupStep, find_steps, may_set_up
from frostproject.configuration.machine import own_hosts
from frostproject.doctor.checks import CHECKS, own_url
from frostproject.doctor.exposure import is_loopback
from frostproject.signin import plain_http
from onebot.admin.names import account_words
from onebot.connections.refusals import explain_refusal, refused_clients
from onebot.models import Bot
from tools.local_time import present_clock
from tools.text.visible import escape_invisible_chars

#: How long a client that was refused is shown, in seconds, and how many are.
REFUSED_SECONDS, MOST_REFUSED = 600.0, 5


def start_page(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """The whole page; by POST what is entered in it, then the page again."""
    _require(request)
    if request.method == "POST" and save_step(request, site):
        messages.success(request, _("Saved."))
        return redirect(f"{request.path}#step-{request.POST['step']}")
    return _page(request, site, _setup(request, {}))


@sensitive_post_parameters("key")
def model_part(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """Test a model with what is entered, and keep it if it works."""
    _require(request)
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    tried = try_model(request, site)
    if "HX-Request" not in request.headers:
        return _page(request, site, _setup(request, {}), tried)
    answer = render(request, "admin/start/model_result.html", {"tried": tried})
    answer.headers["HX-Trigger"] = "start:changed"
    return answer


def client_part(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """What to enter in a chosen client, with the token where that was asked for."""
    _require(request)
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    setup = _setup(request, request.POST)
    if "HX-Request" in request.headers:
        return render(request, "admin/start/client_setup.html", {"setup": setup})
    return _page(request, site, setup)


def live_part(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """What changes by itself: the state of each step. 204 while it is as the page shows it."""
    _require(request)
    page = _live(request)
    seen = hashlib.sha256(render_to_string("admin/start/live.html", page).encode()).hexdigest()
    if request.GET.get("seen") == seen:
        return HttpResponse(status=204)
    page |= {"is_update": True, "seen": seen}
    if "bots" in request.GET and request.GET["bots"] != page["known_bots"]:
        _add_forms(request, page["steps"])
        page["has_other_bots"] = True
    return render(request, "admin/start/live.html", page)


def checks_part(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """What ``doctor`` finds; by POST it is looked for, in threads that nobody waits for."""
    _require(request)
    asks_others = (request.POST or request.GET).get("others") == "1"
    if request.method == "POST":
        wanted = [one for one in CHECKS if asks_others or not one.asks_others]
        check_desk.start(wanted, own_url(_port(request)), asks_others=asks_others)
    lot = check_desk.find(asks_others=asks_others)
    if "HX-Request" in request.headers:
        page = {"lot": lot, "asks_others": asks_others}
        answer = render(request, "admin/start/checks.html", page)
        if request.method != "POST" and lot is not None and not lot.is_running:
            answer.headers["HX-Reswap"] = "outerHTML show:#checks:top"
        return answer
    return redirect(reverse("admin:start") + "#checks")


def _port(request: HttpRequest) -> int:
    """The port that this server listens at, 0 where it is not known."""
    port = str(request.META.get("SERVER_PORT", ""))
    return int(port) if port.isascii() and port.isdigit() else 0


def _require(request: HttpRequest) -> None:
    if not may_set_up(request.user):
        raise PermissionDenied


def _page(
    request: HttpRequest, site: AdminSite, setup: dict[str, Any], tried: ModelTry | None = None
) -> HttpResponse:
    page = _live(request)
    _add_forms(request, page["steps"])
    context = {
        **site.each_context(request),
        **page,
        "title": _("First steps"),
        "setup": setup,
        "tried": tried,
        "providers": describe_providers(),
        "lively": describe_lively(request, site),
        "playground_url": _playground_url(request),
        "clock": present_clock(),
        "lot": check_desk.find(asks_others=True) or check_desk.find(asks_others=False),
    }
    return render(request, "admin/start/page.html", context)


def _add_forms(request: HttpRequest, steps: list[SetupStep]) -> None:
    for step in steps:
        if step.name == "persona" and (row := step.facts["persona"]):
            step.facts["form"] = persona_form(row, request, step.facts["prompt"])
        if step.name == "owners":
            bots = step.facts["bots"]
            step.facts["forms"] = [
                (bot, account_words(bot), owners_form(bot, request)) for bot in bots
            ]


def _live(request: HttpRequest) -> dict[str, Any]:
    refused = _refused() if request.user.has_perm("onebot.view_bot") else []
    steps = find_steps(request.user, is_refused=bool(refused))
    bots: list[Bot] = next((step.facts["bots"] for step in steps if step.name == "owners"), [])
    return {
        "steps": steps,
        "refused": refused,
        "known_bots": ",".join(str(bot.pk) for bot in sorted(bots, key=lambda bot: bot.pk)),
    }


def _refused() -> list[dict[str, Any]]:
    """Clients that this process refused of late, in words."""
    found = refused_clients.recent(REFUSED_SECONDS)[:MOST_REFUSED]
    return [
        {
            "peer": escape_invisible_chars(one.peer),
            "words": [escape_invisible_chars(text) for text in explain_refusal(one.reason)],
            "count": one.count,
            "at": datetime.fromtimestamp(one.last_at, UTC),
        }
        for one in found
    ]


def _setup(request: HttpRequest, chosen: Any) -> dict[str, Any]:
    """What the part about clients shows: ``chosen`` are ``client``, ``where`` and ``shown``."""
    may_see = request.user.has_perm("onebot.change_bot")
    is_shown = may_see and chosen.get("shown") == "1"
    token = settings.ONEBOT_ACCESS_TOKEN if is_shown else HIDDEN
    place = next((one for one in PLACES if one.name == chosen.get("where")), PLACES[0])
    guide = find_guide(chosen.get("client", ""))
    is_secure = request.is_secure() or plain_http.is_for_https_only()
    scheme = "wss" if is_secure else "ws"
    url = client_address(scheme, request.get_host(), place.name, own_hosts())
    return {
        "guide": guide,
        "guides": GUIDES,
        "place": place,
        "places": PLACES,
        "url": url,
        "steps": guide.steps(),
        "settings": guide.settings(url, token),
        "file": guide.configure(url, token),
        "is_shown": is_shown,
        "may_see": may_see,
        "is_unreachable": place.name != "here" and is_loopback(settings.WS_LISTEN_ADDR[0]),
        "port": settings.WS_LISTEN_ADDR[1],
    }


def _playground_url(request: HttpRequest) -> str:
    """The page where the bot is tried without a client; "" where there is none for this user."""
    if not request.user.has_perm("agent.use_playground"):
        return ""
    try:
        return reverse("admin:playground")
    except NoReverseMatch:
        return ""
