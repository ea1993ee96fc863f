"""The start page: the way from an empty installation to the first answer, which checks itself
off; and what is entered on it: a model, the default persona, the owners of an account."""

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_lazy
from django.views.decorators.debug import sensitive_post_parameters

from agent.access.chat_access import find_access
from agent.domain import endpoint, states, types
from agent.domain.manners import MarkdownStyle
from agent.llm.providers.presets import PRESETS
from agent.markdown.drawing_packages import explain_missing
from agent.models import EndpointStatus, Manners, Message, ModelEndpoint, Persona
from agent.pages.endpoints import (
    ModelsUnknown,
    ask_row,
    describe_report,
    entered_endpoint,
    has_failed,
    list_alike,
    load_models,
    record_probe,
    try_row,
)
from agent.pages.error_words import explain_error
from agent.record.settings.endpoints import load_endpoint_table
from agent.record.settings.lively_groups import (
    find_lively_row,
    make_groups_lively,
    take_back_lively,
)
from frostproject.cockpit import start_clients
from frostproject.cockpit.check_desk import check_desk
from frostproject.configuration.machine import own_hosts
from frostproject.doctor import checks, diagnosis
from frostproject.signin import plain_http
from onebot.admin.bots import account_words, client_words
from onebot.connections.handshake import explain_refusal, refused_clients
from onebot.models import Bot
from tools.admin.fields import choosing
from tools.admin.record_pages import author_of, parse_row_number, require
from tools.admin.settings_page import SettingsForm
from tools.findings import FindingLevel, fail_finding
from tools.local_time import present_clock
from tools.models import row_history, tool_config
from tools.text import readable
from tools.text.error_words import ErrorWords

#: Models that are offered to choose from.
MOST_OFFERED = 200


def try_model(request: HttpRequest, site: AdminSite) -> dict[str, Any]:
    """Test a new endpoint, or the stored one that ``row`` of the form names. What came of it, for
    the template: ``lines``, ``models`` to choose one of, those that are ``alike``, what was
    ``said``, the row that is ``saved``, and whether it ``may_keep`` what did not work. Raises
    PermissionDenied and Http404."""
    admin: Any = site.get_model_admin(ModelEndpoint)
    try:
        tried = (_try_stored if "row" in request.POST else _try_new)(request, admin)
    except ModelsUnknown as error:
        tried = {"lines": [fail_finding(line) for line in error.lines]}
    is_doubtful = any(one.level is not FindingLevel.OK for one in tried.get("lines", ()))
    return {**tried, "is_doubtful": is_doubtful}


def _try_stored(request: HttpRequest, admin: Any) -> dict[str, Any]:
    row = get_object_or_404(ModelEndpoint, pk=parse_row_number(request.POST["row"]))
    require(admin.has_change_permission(request, row))
    found = try_row(admin, request, row)
    return {**found, "said": found["report"].words if "report" in found else ""}


def _try_new(request: HttpRequest, admin: Any) -> dict[str, Any]:
    """What the page holds are some fields of the endpoint's own form. Without a model, those are
    listed that the provider has; else the endpoint is asked, and kept if it answers, or is to be
    kept anyway."""
    require(admin.has_add_permission(request))
    entered = request.POST.copy()
    entered["model"] = entered.get("model", "").strip() or _first_model(entered.get("preset", ""))
    form = admin.partial_form(request, entered)
    if not entered["model"]:
        found = load_models(request.user, entered_endpoint(form))
        return {"models": [one.name for one in found][:MOST_OFFERED]}
    if not form.is_valid():
        return {
            "lines": [fail_finding(str(one)) for lines in form.errors.values() for one in lines]
        }
    row, started_at = form.save(commit=False), timezone.now()
    report = None if "anyway" in request.POST else ask_row(request.user, row)
    lines = describe_report(report) if report else []
    if report and report.fault:
        alike = list_alike(request.user, report)
        return {"lines": lines, "alike": alike, "said": report.words, "may_keep": True}
    admin.save_model(request, row, form, change=False)
    admin.log_addition(request, row, [{"added": {}}])
    if report:
        record_probe(row, report, request.user.get_username(), started_at)
    return {"lines": lines, "saved": row}


def _first_model(preset: str) -> str:
    """The model that a chat begins with at the provider; "" where none is known."""
    known = PRESETS.get(preset)
    return next((one.name for one in known.models if one.answers), "") if known else ""


#: What the default persona is called until somebody gives it a name.
UNNAMED = "default"


class PersonaStepForm(SettingsForm):
    """Name and prompt of the default persona; the rest is on its own page."""

    class Meta:
        model = Persona
        fields = ("name", "prompt")
        widgets = {"prompt": forms.Textarea(attrs={"rows": 5, "class": "vLargeTextField"})}  # noqa: RUF012 - Django's own way to say it
        help_texts = {  # noqa: RUF012 - as above
            "prompt": gettext_lazy(
                "Who it is and how it talks. It counts from the next message on."
            ),
        }

    def clean_prompt(self) -> str:
        prompt: str = self.cleaned_data["prompt"]
        if not prompt.strip():
            raise ValidationError(_("Write at least a sentence about who it is."))
        return prompt


class OwnersStepForm(SettingsForm):
    """The owners of one account."""

    class Meta:
        model = Bot
        fields = ("owners",)

    owners = forms.CharField(
        label=gettext_lazy("QQ numbers"),
        max_length=2_000,
        help_text=gettext_lazy("Your own number first; several with a space between."),
        widget=forms.TextInput(attrs=choosing("person", then="person")),
    )

    def clean_owners(self) -> str:
        text: str = self.cleaned_data["owners"]
        if problem := tool_config.check_ids(text):
            raise ValidationError(problem)
        return "\n".join(tool_config.parse_ids(text))


def persona_form(row: Persona, request: HttpRequest, prompt: str) -> PersonaStepForm:
    """The form, filled in by ``request`` where that is what it posts; else ``prompt`` stands in an
    empty one."""
    if request.POST.get("step") == "persona":
        return PersonaStepForm(request.POST, instance=row)
    name = "" if row.name == UNNAMED else row.name
    return PersonaStepForm(instance=row, initial={"name": name, "prompt": row.prompt or prompt})


def owners_form(bot: Bot, request: HttpRequest) -> OwnersStepForm:
    """The same for the owners of ``bot``."""
    if request.POST.get("step") == "owners" and request.POST.get("bot") == str(bot.pk):
        return OwnersStepForm(request.POST, instance=bot, auto_id=f"id_{bot.pk}_%s")
    owners = {"owners": " ".join(tool_config.parse_ids(bot.owners))}
    return OwnersStepForm(initial=owners, instance=bot, auto_id=f"id_{bot.pk}_%s")


def save_step(request: HttpRequest, site: AdminSite) -> bool:
    """Store what ``request`` posts; False where it says something that cannot be. Raises
    PermissionDenied and Http404."""
    match request.POST.get("step"):
        case "persona":
            persona = get_object_or_404(Persona, is_default=True)
            return _save_row(request, site, persona, persona_form(persona, request, ""))
        case "owners":
            bot = get_object_or_404(Bot, pk=parse_row_number(request.POST.get("bot", "")))
            return _save_row(request, site, bot, owners_form(bot, request))
        case "group":
            return _save_group(request, site)
        case _:
            raise Http404


def _save_row(request: HttpRequest, site: AdminSite, row: Model, form: SettingsForm) -> bool:
    admin = site.get_model_admin(type(row))
    require(admin.has_change_permission(request, row))
    if not form.is_valid():
        return False
    stamps = [one.name for one in row._meta.fields if getattr(one, "auto_now", False)]
    with row_history.record_changes(author_of(request), row):
        row.save(update_fields=[*form.fields, *stamps])
    admin.log_change(request, row, [{"changed": {"fields": form.changed_data}}])
    return True


def describe_lively(request: HttpRequest, site: AdminSite) -> dict[str, Any]:
    """What the page shows of the button for groups: the row that is on, what it lacks, and whether
    the user may press it."""
    row = find_lively_row()
    is_drawn = row is not None and row.markdown == MarkdownStyle.PICTURE
    return {
        "row": row,
        "lacking": explain_missing() if is_drawn else "",
        "may_change": _may_make_lively(request, site),
    }


def _may_make_lively(request: HttpRequest, site: AdminSite) -> bool:
    admin = site.get_model_admin(Manners)
    return admin.has_add_permission(request) and admin.has_change_permission(request)


def _save_group(request: HttpRequest, site: AdminSite) -> bool:
    require(_may_make_lively(request, site))
    admin, author = site.get_model_admin(Manners), author_of(request)
    if request.POST.get("lively") == "on":
        row = make_groups_lively(_("A lively group"), author)
        admin.log_change(request, row, _("Made groups lively."))
    elif taken := take_back_lively(author):
        admin.log_change(request, taken, _("Took back what made groups lively."))
    return True


# The steps of the start page: what is done, what is to do, and what is wrong, with a few short
# queries.

#: Rows of each kind that are looked at.
MOST_BOTS, MOST_MESSAGES = 20, 50
#: The prompt of an installation for which nobody has written one.
PLAIN_PROMPT = "你是一个乐于助人的助手。"


#: States of a step: what each is called, and the badge that it has.
STATES = {
    "done": (gettext_lazy("done"), "succeeded"),
    "todo": (gettext_lazy("to do"), "waiting"),
    "wrong": (gettext_lazy("wrong"), "failed"),
}
TITLES = {
    "model": gettext_lazy("A model"),
    "client": gettext_lazy("A OneBot client"),
    "persona": gettext_lazy("A persona"),
    "owners": gettext_lazy("Its owners"),
    "try": gettext_lazy("Try it"),
}


def _step(
    name: str, state: str, error: ErrorWords | None = None, /, **facts: object
) -> dict[str, Any]:
    """One step; ``facts`` are what its template shows besides."""
    label, badge = STATES[state]
    said = {"name": name, "title": TITLES[name], "state": state, "label": label, "badge": badge}
    return {**said, "error": error, "facts": facts}


def may_set_up(user: Any) -> bool:
    """Whether ``user`` is somebody who sets the installation up: connects clients or models, of
    all chats."""
    names = ("onebot.change_bot", "agent.add_modelendpoint")
    return find_access(user).is_everything and any(user.has_perm(name) for name in names)


def leads_to_start(user: object) -> bool:
    """Whether ``user`` is shown the start page first."""
    if not may_set_up(user):
        return False
    can_answer = load_endpoint_table().resolve(endpoint.ModelRole.CHAT) and real_bots()
    return not can_answer  # for lack of a model, or of a client that was ever here


def real_bots() -> list[Bot]:
    """The accounts of clients, those that are connected first; none of playgrounds."""
    rows = Bot.objects.order_by("-online", "-connected_at", "self_id")[: 2 * MOST_BOTS]
    return [row for row in rows if not types.is_playground(row.self_id)][:MOST_BOTS]


def find_steps(user: Any, *, is_refused: bool = False) -> list[dict[str, Any]]:
    """The steps that ``user`` may see, in order; ``is_refused``: a client was turned away of
    late."""
    bots = real_bots() if user.has_perm("onebot.view_bot") else []
    steps: tuple[tuple[str, Callable[[], dict[str, Any]]], ...] = (
        ("agent.view_modelendpoint", model_step),
        ("onebot.view_bot", partial(client_step, bots, is_refused=is_refused)),
        ("agent.view_persona", persona_step),
        ("onebot.view_bot", partial(owners_step, bots)),
        ("agent.view_message", partial(try_step, bots)),
    )
    return [look() for permission, look in steps if user.has_perm(permission)]


def model_step() -> dict[str, Any]:
    """The endpoint that is asked first for chats."""
    endpoints = load_endpoint_table().resolve(endpoint.ModelRole.CHAT)
    if not endpoints:
        return _step("model", "todo")
    first: endpoint.Endpoint = endpoints[0]
    name, others = first.name or first.model, len(endpoints) - 1
    facts: dict[str, Any] = {"endpoint": first, "name": name, "others": others}
    if first.pk:
        facts["url"] = reverse("admin:agent_modelendpoint_change", args=(first.pk,))
    status = EndpointStatus.objects.filter(pk=first.pk).first() if first.pk else None
    facts["was_asked"] = status is not None and bool(status.answered_at or status.error_at)
    if status is not None and has_failed(status):
        return _step("model", "wrong", explain_error(status.error), **facts)
    return _step("model", "done", **facts)


def client_step(bots: list[Bot], *, is_refused: bool) -> dict[str, Any]:
    """Whether a client is connected; ``bots`` are all that ever were."""
    shown: list[dict[str, Any]] = [
        {
            "bot": bot,
            "words": account_words(bot),
            "client": client_words(bot),
            "is_offline": bot.online and bot.account_online is False,
        }
        for bot in bots
    ]
    online = [one for one in shown if one["bot"].online]
    state = "done" if online else "wrong" if bots or is_refused else "todo"
    if online and all(one["is_offline"] for one in online):
        state = "wrong"
    return _step("client", state, bots=shown, online=online)


def persona_step() -> dict[str, Any]:
    """The persona that answers where no other was chosen."""
    row = Persona.objects.filter(is_default=True).first()
    is_own = bool((row and row.prompt.strip()) or settings.SYSTEM_PROMPT != PLAIN_PROMPT)
    prompt = (row and row.prompt) or settings.SYSTEM_PROMPT
    return _step("persona", "done" if is_own else "todo", persona=row, prompt=prompt)


def owners_step(bots: list[Bot]) -> dict[str, Any]:
    """The people that each account belongs to."""
    lacking = sum(not bot.owner_ids for bot in bots)
    return _step("owners", "done" if bots and not lacking else "todo", bots=bots, lacking=lacking)


def try_step(bots: list[Bot]) -> dict[str, Any]:
    """Whether a message of a client was answered, and if the last one failed, why. Without a
    client, an answer in a playground counts."""
    account = next((account_words(bot) for bot in bots if bot.online), "")
    answered, played = _newest(states.MessageState.ANSWERED)
    failed, _played = _newest(states.MessageState.FAILED)
    facts: dict[str, Any] = {"account": account, "now": timezone.now(), "failed": failed}
    facts |= {"answered": answered, "played": None if answered else played}
    if failed and (answered is None or failed.pk > answered.pk):
        return _step("try", "wrong", explain_error(failed.detail), **facts)
    return _step("try", "done" if answered or played else "todo", **facts)


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
    require(may_set_up(request.user))
    if request.method == "POST" and save_step(request, site):
        messages.success(request, _("Saved."))
        return redirect(f"{request.path}#step-{request.POST['step']}")
    return _page(request, site, _setup(request, {}))


@sensitive_post_parameters("keys")
def model_part(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """Test a model with what is entered, and keep it if it works."""
    require(may_set_up(request.user))
    tried = try_model(request, site)
    if "HX-Request" not in request.headers:
        return _page(request, site, _setup(request, {}), tried)
    answer = render(request, "admin/start/model_result.html", {"tried": tried})
    answer.headers["HX-Trigger"] = "start:changed"
    return answer


def client_part(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """What to enter in a chosen client, with the token where that was asked for."""
    require(may_set_up(request.user))
    if asked := request.POST.get("download"):
        return _download(_setup(request, {**request.POST.dict(), "client": asked, "shown": "1"}))
    setup = _setup(request, request.POST)
    if "HX-Request" in request.headers:
        return render(request, "admin/start/client_setup.html", {"setup": setup})
    return _page(request, site, setup)


def _download(setup: dict[str, Any]) -> HttpResponse:
    """The client's file, with the token where whoever asks may see that."""
    name = str(setup["guide"].file).rpartition("/")[2]
    return HttpResponse(
        setup["file"],
        content_type="text/plain; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def live_part(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """What changes by itself: the state of each step. 204 while it is as the page shows it."""
    require(may_set_up(request.user))
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
    require(may_set_up(request.user))
    asks_others = (request.POST or request.GET).get("others") == "1"
    if request.method == "POST":
        wanted = [one for one in checks.CHECKS if asks_others or not one.asks_others]
        port = parse_row_number(str(request.META.get("SERVER_PORT", "")))  # 0: not known
        check_desk.start(wanted, checks.own_url(port), asks_others=asks_others)
    lot = check_desk.find(asks_others=asks_others)
    if "HX-Request" in request.headers:
        page = {"lot": lot, "asks_others": asks_others}
        answer = render(request, "admin/start/checks.html", page)
        if request.method != "POST" and lot is not None and not lot.is_running:
            answer.headers["HX-Reswap"] = "outerHTML show:#checks:top"
        return answer
    return redirect(reverse("admin:start") + "#checks")


def _page(
    request: HttpRequest, site: AdminSite, setup: dict[str, Any], tried: object = None
) -> HttpResponse:
    page = _live(request)
    _add_forms(request, page["steps"])
    may_play = request.user.has_perm("agent.use_playground")
    context = {
        **site.each_context(request),
        **page,
        "title": _("First steps"),
        "setup": setup,
        "tried": tried,
        "providers": [
            {
                "preset": preset,
                "first": _first_model(preset.id),
                "models": [one.name for one in preset.models if one.answers],
                "needs_address": not preset.base_url,
            }
            for preset in PRESETS.values()
        ],
        "lively": describe_lively(request, site),
        "playground_url": reverse("admin:playground") if may_play else "",
        "clock": present_clock(),
        "lot": check_desk.find(asks_others=True) or check_desk.find(asks_others=False),
    }
    return render(request, "admin/start/page.html", context)


def _add_forms(request: HttpRequest, steps: list[dict[str, Any]]) -> None:
    for step, facts in ((one["name"], one["facts"]) for one in steps):
        if step == "persona" and (row := facts["persona"]):
            facts["form"] = persona_form(row, request, facts["prompt"])
        if step == "owners":
            facts["forms"] = [
                (bot, account_words(bot), owners_form(bot, request)) for bot in facts["bots"]
            ]


def _live(request: HttpRequest) -> dict[str, Any]:
    sees_bots = request.user.has_perm("onebot.view_bot")
    refused = [  # clients that this process refused of late, in words
        {
            "peer": readable.escape_invisible_chars(one.peer),
            "words": [*map(readable.escape_invisible_chars, explain_refusal(one.reason))],
            "count": one.count,
            "at": datetime.fromtimestamp(one.last_at, UTC),
        }
        for one in (refused_clients.recent(REFUSED_SECONDS)[:MOST_REFUSED] if sees_bots else [])
    ]
    steps = find_steps(request.user, is_refused=bool(refused))
    bots = [bot.pk for one in steps if one["name"] == "owners" for bot in one["facts"]["bots"]]
    return {"steps": steps, "refused": refused, "known_bots": ",".join(map(str, sorted(bots)))}


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
    scheme = "wss" if (request.is_secure() or plain_http.is_for_https_only()) else "ws"
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
