"""The start page: the way from an empty installation to the first answer, which checks itself
off."""

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _, gettext_lazy
from django.views.decorators.debug import sensitive_post_parameters

from agent.access.chat_access import find_access
from agent.domain import endpoint, states, types
from agent.models import EndpointStatus, Message, Persona
from agent.pages.endpoints.state import has_failed
from agent.pages.error_words import explain_error
from agent.record.settings.endpoints import load_endpoint_table
from frostproject.cockpit import start_clients, start_forms, start_model
from frostproject.cockpit.check_desk import check_desk
from frostproject.configuration.machine import own_hosts
from frostproject.doctor import checks, diagnosis
from frostproject.signin import plain_http
from onebot.admin.names import account_words, client_words
from onebot.connections.handshake import explain_refusal, refused_clients
from onebot.models import Bot
from tools.local_time import present_clock
from tools.text import error_words, readable

# The steps of the start page: what is done, what is to do, and what is wrong, with a few short
# queries.

#: Rows of each kind that are looked at.
MOST_BOTS, MOST_MESSAGES = 20, 50
#: The prompt of an installation for which nobody has written one.
PLAIN_PROMPT = "你是一个乐于助人的助手。"


class StepState(StrEnum):
    DONE = "done"
    TODO = "todo"
    WRONG = "wrong"

    @property
    def label(self) -> str | Promise:
        return {
            "done": gettext_lazy("done"),
            "todo": gettext_lazy("to do"),
            "wrong": gettext_lazy("wrong"),
        }[self.value]

    @property
    def badge(self) -> str:
        return {"done": "succeeded", "todo": "waiting", "wrong": "failed"}[self.value]


@dataclass(frozen=True)
class SetupStep:
    """One step; ``facts`` are what its template shows besides."""

    name: str
    title: str | Promise
    state: StepState
    facts: dict[str, Any] = field(default_factory=dict)
    error: error_words.ErrorWords | None = None


def may_set_up(user: Any) -> bool:
    """Whether ``user`` is somebody who sets the installation up: connects clients or models, of
    all chats."""
    names = ("onebot.change_bot", "agent.add_modelendpoint")
    return find_access(user).is_everything and any(user.has_perm(name) for name in names)


def leads_to_start(user: Any) -> bool:
    """Whether ``user`` is shown the start page first."""
    if not may_set_up(user):
        return False
    can_answer = load_endpoint_table().resolve(endpoint.ModelRole.CHAT) and real_bots()
    return not can_answer  # for lack of a model, or of a client that was ever here


def real_bots() -> list[Bot]:
    """The accounts of clients, those that are connected first; none of playgrounds."""
    rows = Bot.objects.order_by("-online", "-connected_at", "self_id")[: 2 * MOST_BOTS]
    return [row for row in rows if not types.is_playground(row.self_id)][:MOST_BOTS]


def find_steps(user: Any, *, is_refused: bool = False) -> list[SetupStep]:
    """The steps that ``user`` may see, in order; ``is_refused`` as for :func:`client_step`."""
    bots = real_bots() if user.has_perm("onebot.view_bot") else []
    steps = []
    if user.has_perm("agent.view_modelendpoint"):
        steps.append(model_step())
    if user.has_perm("onebot.view_bot"):
        steps.append(client_step(bots, is_refused=is_refused))
    if user.has_perm("agent.view_persona"):
        steps.append(persona_step())
    if user.has_perm("onebot.view_bot"):
        steps.append(owners_step(bots))
    if user.has_perm("agent.view_message"):
        steps.append(try_step(bots))
    return steps


def model_step() -> SetupStep:
    """The endpoint that is asked first for chats."""
    title = gettext_lazy("A model")
    endpoints = load_endpoint_table().resolve(endpoint.ModelRole.CHAT)
    if not endpoints:
        return SetupStep("model", title, StepState.TODO)
    first: endpoint.Endpoint = endpoints[0]
    facts = {"endpoint": first, "name": first.name or first.model, "others": len(endpoints) - 1}
    if first.pk:
        facts["url"] = reverse("admin:agent_modelendpoint_change", args=(first.pk,))
    status = EndpointStatus.objects.filter(pk=first.pk).first() if first.pk else None
    facts["was_asked"] = status is not None and bool(status.answered_at or status.error_at)
    if status is not None and has_failed(status):
        return SetupStep("model", title, StepState.WRONG, facts, explain_error(status.error))
    return SetupStep("model", title, StepState.DONE, facts)


def client_step(bots: list[Bot], *, is_refused: bool = False) -> SetupStep:
    """Whether a client is connected; ``bots`` are all that ever were, ``is_refused`` whether one
    was turned away of late."""
    shown = [
        {
            "bot": bot,
            "words": account_words(bot),
            "client": client_words(bot),
            "is_offline": bot.online and bot.account_online is False,
        }
        for bot in bots
    ]
    online = [one for one in shown if one["bot"].online]  # type: ignore[attr-defined]
    state = StepState.DONE if online else StepState.WRONG if bots or is_refused else StepState.TODO
    if online and all(one["is_offline"] for one in online):
        state = StepState.WRONG
    return SetupStep(
        "client", gettext_lazy("A OneBot client"), state, {"bots": shown, "online": online}
    )


def persona_step() -> SetupStep:
    """The persona that answers where no other was chosen."""
    row = Persona.objects.filter(is_default=True).first()
    is_own = bool((row and row.prompt.strip()) or settings.SYSTEM_PROMPT != PLAIN_PROMPT)
    facts = {"persona": row, "prompt": (row and row.prompt) or settings.SYSTEM_PROMPT}
    return SetupStep(
        "persona", gettext_lazy("A persona"), StepState.DONE if is_own else StepState.TODO, facts
    )


def owners_step(bots: list[Bot]) -> SetupStep:
    """The people that each account belongs to."""
    lacking = [bot for bot in bots if not bot.owner_ids]
    is_done = bool(bots) and not lacking
    facts = {"bots": bots, "lacking": len(lacking)}
    return SetupStep(
        "owners", gettext_lazy("Its owners"), StepState.DONE if is_done else StepState.TODO, facts
    )


def try_step(bots: list[Bot]) -> SetupStep:
    """Whether a message of a client was answered, and if the last one failed, why. Without a
    client, an answer in a playground counts."""
    account = next((account_words(bot) for bot in bots if bot.online), "")
    facts: dict[str, Any] = {"account": account, "now": timezone.now()}
    answered, played = _newest(states.MessageState.ANSWERED)
    failed, _played = _newest(states.MessageState.FAILED)
    facts |= {"answered": answered, "failed": failed, "played": None if answered else played}
    if failed and (answered is None or failed.pk > answered.pk):
        return SetupStep(
            "try", gettext_lazy("Try it"), StepState.WRONG, facts, explain_error(failed.detail)
        )
    state = StepState.DONE if answered or played else StepState.TODO
    return SetupStep("try", gettext_lazy("Try it"), state, facts)


def _newest(state: states.MessageState) -> tuple[Message | None, Message | None]:
    """The newest messages in ``state`` among the last few: of a client, and of a playground."""
    rows = Message.objects.filter(state=state).select_related("session").defer("segments", "raw")
    found: dict[bool, Message] = {}
    for row in rows.order_by("-pk")[:MOST_MESSAGES]:
        found.setdefault(types.is_playground(row.session.account), row)
    return found.get(False), found.get(True)


#: How long a client that was refused is shown, in seconds, and how many are.
REFUSED_SECONDS, MOST_REFUSED = 600.0, 5


def start_page(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """The whole page; by POST what is entered in it, then the page again."""
    _require(request)
    if request.method == "POST" and start_forms.save_step(request, site):
        messages.success(request, _("Saved."))
        return redirect(f"{request.path}#step-{request.POST['step']}")
    return _page(request, site, _setup(request, {}))


@sensitive_post_parameters("keys")
def model_part(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """Test a model with what is entered, and keep it if it works."""
    _require(request)
    tried = start_model.try_model(request, site)
    if "HX-Request" not in request.headers:
        return _page(request, site, _setup(request, {}), tried)
    answer = render(request, "admin/start/model_result.html", {"tried": tried})
    answer.headers["HX-Trigger"] = "start:changed"
    return answer


def client_part(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """What to enter in a chosen client, with the token where that was asked for."""
    _require(request)
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
        wanted = [one for one in checks.CHECKS if asks_others or not one.asks_others]
        check_desk.start(wanted, checks.own_url(_port(request)), asks_others=asks_others)
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
    request: HttpRequest,
    site: AdminSite,
    setup: dict[str, Any],
    tried: start_model.ModelTry | None = None,
) -> HttpResponse:
    page = _live(request)
    _add_forms(request, page["steps"])
    context = {
        **site.each_context(request),
        **page,
        "title": _("First steps"),
        "setup": setup,
        "tried": tried,
        "providers": start_model.describe_providers(),
        "lively": start_forms.describe_lively(request, site),
        "playground_url": _playground_url(request),
        "clock": present_clock(),
        "lot": check_desk.find(asks_others=True) or check_desk.find(asks_others=False),
    }
    return render(request, "admin/start/page.html", context)


def _add_forms(request: HttpRequest, steps: list[SetupStep]) -> None:
    for step in steps:
        if step.name == "persona" and (row := step.facts["persona"]):
            step.facts["form"] = start_forms.persona_form(row, request, step.facts["prompt"])
        if step.name == "owners":
            step.facts["forms"] = [
                (bot, account_words(bot), start_forms.owners_form(bot, request))
                for bot in step.facts["bots"]
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
            "peer": readable.escape_invisible_chars(one.peer),
            "words": [
                readable.escape_invisible_chars(text) for text in explain_refusal(one.reason)
            ],
            "count": one.count,
            "at": datetime.fromtimestamp(one.last_at, UTC),
        }
        for one in found
    ]


def _setup(request: HttpRequest, chosen: Any) -> dict[str, Any]:
    """What the part about clients shows: ``chosen`` are ``client``, ``where`` and ``shown``."""
    may_see = request.user.has_perm("onebot.change_bot")
    is_shown = may_see and chosen.get("shown") == "1"
    token = settings.ONEBOT_ACCESS_TOKEN if is_shown else start_clients.HIDDEN
    site = next(
        (one for one in start_clients.SITES if one["name"] == chosen.get("where")),
        start_clients.SITES[0],
    )
    guide = start_clients.find_guide(chosen.get("client", ""))
    is_secure = request.is_secure() or plain_http.is_for_https_only()
    scheme = "wss" if is_secure else "ws"
    url = start_clients.client_address(scheme, request.get_host(), str(site["name"]), own_hosts())
    return {
        "guide": guide,
        "guides": start_clients.GUIDES,
        "site": site,
        "sites": start_clients.SITES,
        "url": url,
        "steps": guide.steps(),
        "settings": guide.settings(url, token),
        "file": guide.configure(url, token),
        "is_shown": is_shown,
        "may_see": may_see,
        "is_unreachable": site["name"] != "here"
        and diagnosis.is_loopback(settings.WS_LISTEN_ADDR[0]),
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
