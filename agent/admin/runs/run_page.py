"""Runs: everything done for one message, on one page; and asking a message again."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile, zip_longest
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.db.models import Model, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _

from agent.admin.runs import waterfall
from agent.admin.runs.undoing import describe_undo, undo_run
from agent.domain.persona import PersonaKind
from agent.llm.requests.tokens import MESSAGE, PICTURE, estimate_text_tokens
from agent.models import Message, ModelEndpoint, Persona, Run, Step, ToolCall
from agent.models.message import BY_HAND
from agent.pages import run_facts
from agent.pages.error_words import VIEW_ENDPOINT, format_error
from agent.pages.own_chats import OwnRunsAdmin
from agent.record.runs.requests import rebuild_request
from agent.record.settings.manners import ONEBOT
from agent.record.waiting.trials import TrialRefusal, TrialWish
from agent.runtime import serving
from tools.admin.kept_lists import KeptListAdmin
from tools.admin.record_pages import (
    Column,
    RecordedSince,
    Rows,
    by_post,
    clamp_text,
    format_moment,
    label_of,
    parse_row_number,
    record_link,
    require,
)
from tools.refusals import CallVerdict
from tools.text.readable import (
    TEXT_LIMIT,
    arguments_text,
    drop_surrogates,
    fill,
    format_readable,
    shorten_text,
)

#: Steps at the beginning of a run that is over which are shown whole: of others the page of each is
#: fetched when it is opened.
WHOLE_STEPS = 10
#: Trials that stand beside the answer, and rows that can be chosen.
BESIDE, ROW_LIMIT = 3, 200
NEEDED = ("agent.speak_in_chat", "agent.change_chatsession")


def may_ask_again(request: HttpRequest) -> bool:
    """Whether the user may ask messages of the chats in his reach again."""
    return all(request.user.has_perm(name) for name in NEEDED)


def _find_answer(run: Run, asked: Message) -> Run:
    """The run that answered: ``run``, unless that asks again or works for another one."""
    if run.trial_of_id is None and run.parent_id is None:
        return run
    if (found := Run.objects.filter(message=asked, parent=None).order_by("-pk").first()) is None:
        raise Http404
    return found


def _personas() -> list[Persona]:
    rows = Persona.objects.filter(enabled=True, kind=PersonaKind.PERSONA)
    return list(rows.only("name", "is_default").order_by("-is_default", "name")[:ROW_LIMIT])


def _endpoints(request: HttpRequest, asked: Message) -> list[ModelEndpoint]:
    """Those that answer chats; for users who may not see endpoints those that have answered this
    one."""
    rows = (
        ModelEndpoint.objects.all()
        if request.user.has_perm(VIEW_ENDPOINT)
        else run_facts.find_answering_endpoints(asked.session_id)
    )
    return list(rows.filter(enabled=True, can_chat=True).order_by("position", "pk")[:ROW_LIMIT])


def _chosen(
    request: HttpRequest, name: str, permission: str, offered: Iterable[Model]
) -> int | None:
    """The key of the row that was chosen; None for none. Raises PermissionDenied for one that is
    not ``offered``, unless the user may see all."""
    number = parse_row_number(request.POST.get(name, "")) or None
    if number is None or request.user.has_perm(permission):
        return number
    require(number in {row.pk for row in offered})
    return number


def _ask(request: HttpRequest, asked: Message, answer: Run) -> None:
    """Begin, or tell the user why not."""
    user: Any = request.user
    wish = TrialWish(
        asked.pk,
        answer.pk,
        user.pk,
        user.get_username(),
        _chosen(request, "persona", run_facts.VIEW_PERSONA, _personas()),
        _chosen(request, "endpoint", VIEW_ENDPOINT, _endpoints(request, asked)),
    )
    serves = serving.get_serving()
    if serves is None:
        messages.error(
            request,
            gettext("This process serves no client, so it cannot ask a model. Start the server."),
        )
        return
    try:
        begun = serves.ask_again(wish)
    except (TimeoutError, LookupError):
        messages.error(request, gettext("The database takes nothing at the moment: try again."))
        return
    if isinstance(begun, TrialRefusal):
        messages.error(request, gettext(begun.reason))


# Runs side by side: what each was asked with, did and said, and in what they differ.


def compare(runs: Sequence[Run], user: object) -> list[dict[str, Any]]:
    """What a page says of each of ``runs`` that ``user`` may see: ``said`` are the texts that went
    out, ``calls`` the tool calls, each with what it was given, ``facts`` are (label, value, whether
    the runs differ in it)."""
    found = [_describe_run(run, user) for run in runs]
    for label in found[0]["facts"]:
        values = [one["facts"][label] for one in found]
        for one, value in zip(found, values, strict=True):
            one.setdefault("shown", []).append((label, value, len(set(values)) > 1))
    return found


def _describe_run(run: Run, user: Any) -> dict[str, Any]:
    run_facts.hold_back_model(run, user)
    sees = {one for one in ("toolcall", "message", "step") if user.has_perm(f"agent.view_{one}")}
    calls = ToolCall.objects.filter(run=run).order_by("step_id", "position")
    columns = ("pk", "tool_name", "arguments", "verdict", "state", "run_id")
    made = list(calls.only(*columns)[: run_facts.CALL_LIMIT]) if "toolcall" in sees else []
    sent = Message.objects.filter(Q(run=run), direction=Message.Direction.OUT).exclude(BY_HAND)
    said = sent.order_by("pk").defer("segments", "raw")[: run_facts.CALL_LIMIT]
    took = waterfall.format_span(run.finished_at - run.started_at) if run.finished_at else ""
    tokens = gettext("%(input)s in, %(output)s out")
    facts = {
        gettext("persona"): run.persona,
        gettext("model"): run.model,
        gettext("tools"): ", ".join(call.tool_name for call in made),
        gettext("tokens"): tokens % {"input": run.input_tokens, "output": run.output_tokens},
        gettext("duration"): took,
        gettext("steps"): str(run.steps.count()) if "step" in sees else "",
        gettext("cost"): " + ".join(run_facts.load_sums(run)["costs"]) if "step" in sees else "",
    }
    return {
        "run": run,
        "is_trial": run.trial_of_id is not None,
        "said": list(said) if "message" in sees else [],
        "facts": {label: value or "-" for label, value in facts.items()},
        "calls": [
            {
                "call": call,
                "given": arguments_text(call.arguments),
                "stood_in": call.verdict == CallVerdict.STOOD_IN,
            }
            for call in made
        ],
    }


# Model calls as conversations: who said what, and which tools were asked for. Pure.

ROLES = {"system": _("system"), "user": _("user"), "assistant": _("assistant"), "tool": _("tool")}


def parse_transcript(messages: object, limit: int = TEXT_LIMIT) -> list[dict[str, Any]]:
    """Chat-completion messages one by one: who speaks (``role``, ``role_name``), what is said
    (``text``, at most ``limit`` characters of each), which tools are called (``calls``, each its
    name and arguments), and how much it is before anything is cut (``characters``, and ``tokens``
    as they are estimated). Anything else is one turn of JSON."""
    listed = messages if isinstance(messages, list) else [messages]
    return [_parse_message(message, limit) for message in listed]


def _parse_message(message: object, limit: int) -> dict[str, Any]:
    if not isinstance(message, dict) or not ("content" in message or "tool_calls" in message):
        words = format_readable(message, limit=limit)
        return {"role": "", "text": words, "calls": [], "characters": 0, "tokens": 0}
    characters, tokens = _measure(message)
    role = drop_surrogates(str(message.get("role") or "assistant"))
    calls = message.get("tool_calls")
    return {
        "role": role,
        "role_name": str(ROLES.get(role, role)),
        "text": _content(message.get("content"), limit),
        "calls": [_call(call) for call in calls] if isinstance(calls, list) else [],
        "characters": characters,
        "tokens": tokens,
    }


def _measure(message: dict[str, Any]) -> tuple[int, int]:
    """Characters and estimated tokens of a message."""
    content, calls = message.get("content"), message.get("tool_calls")
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    pictures = sum(isinstance(part, dict) and "image_url" in part for part in parts)
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            texts += [function.get("name"), function.get("arguments")]
    words = [text for text in texts if isinstance(text, str)]
    tokens = sum(map(estimate_text_tokens, words)) + MESSAGE + pictures * PICTURE
    return sum(map(len, words)), round(tokens)


def _content(content: object, limit: int) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return drop_surrogates(shorten_text(content, limit))
    if isinstance(content, list):
        return "\n".join(_part(part, limit) for part in content)
    return format_readable(content, limit=limit)


def _part(part: object, limit: int) -> str:
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return drop_surrogates(shorten_text(part["text"], limit))
    return format_readable(part, limit=200)


def _call(call: object) -> tuple[str, str]:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return "", format_readable(call)
    return drop_surrogates(str(function.get("name"))), arguments_text(function.get("arguments"))


# What a model call was sent: the new messages, the whole request, the tools, and what was left
# out.


def read_contexts(
    rows: run_facts.RunRows, whole: int, read: int, *, shows_prompts: bool
) -> Iterator[dict[str, Any]]:
    """The request of each step up to ``read``: ``messages`` are those since the step before, or all
    of the step ``whole``, and where it ``is_whole``; ``count``, ``characters`` and ``tokens`` are
    those of the whole request.

    ``tools`` stand at the first step that was offered them, each with its ``name`` and what is on
    record of it; others name that step in ``tools_as_in``. ``left_out`` are messages that were not
    sent for lack of room, ``tools_left_out`` tools. ``reshaped`` is how many messages were really
    sent, where some were shortened, or put into the form that the endpoint takes."""
    limit = min(TEXT_LIMIT, SHOWN_CHARACTERS // max(1, len(rows.steps)))
    total, first_offered = [0, 0, 0], dict[int, int]()
    for step in takewhile(lambda one: one.number <= read, rows.steps):
        new = parse_transcript(step.request, limit)
        size = [len(new), *(sum(one[name] for one in new) for name in ("characters", "tokens"))]
        if step.phase == Step.Phase.ACTION:  # the timing gate is sent a request of its own
            size = total = [before + now for before, now in zip(total, size, strict=True)]
        sent = len(json.loads(step.sent)) if step.sent is not None else size[0]
        found = _read_whole(step, shows_prompts=shows_prompts) if step.number == whole else []
        names = [drop_surrogates(str(name)) for name in step.tools]
        offer = rows.offers.get(step.offer_id or 0)
        known = [*map(_offered, run_facts.read_definitions(offer.definitions if offer else ()))]
        first = first_offered.setdefault(step.offer_id or -step.number, step.number)
        listed = [{"name": name} for name in names] if step.offer_id is None else known
        tools = listed if first == step.number else []
        lacking = set(names) - {tool["name"] for tool in known} if known else ()
        yield {
            "messages": found or new,
            "is_whole": bool(found) or size[0] == len(new),
            "count": size[0],
            "characters": size[1],
            "tokens": size[2],
            "tools": tools,
            "tools_as_in": first if names and not tools else None,
            "tool_count": len(names),
            "left_out": max(size[0] - sent, 0),
            "tools_left_out": [name for name in names if name in lacking],
            "reshaped": sent if step.sent is not None and sent >= size[0] else None,
        }


def _read_whole(step: Step, *, shows_prompts: bool) -> list[dict[str, Any]]:
    """All that was really sent, without the pictures themselves; [] where it is not on record."""
    if (body := rebuild_request(step)) is None:
        return []
    messages = json.loads(body)["messages"]
    return parse_transcript(messages if shows_prompts else run_facts.veil_whole(messages))


def _offered(definition: object) -> dict[str, Any]:
    inner = definition.get("function") if isinstance(definition, dict) else None
    named = inner if isinstance(inner, dict) else definition
    name = str(named.get("name")) if isinstance(named, dict) else ""
    shown, characters = format_readable(definition), len(json.dumps(definition))
    return {"name": name, "definition": shown, "characters": characters}


#: Characters of requests that one page shows: of many steps less of each text.
SHOWN_CHARACTERS = 400_000
UNSETTLED_OUT = (Message.State.PENDING, Message.State.SENT)


class StartedSince(RecordedSince):
    field = "started_at"


@admin.register(Run)
class RunAdmin(OwnRunsAdmin, KeptListAdmin):
    addresses = (
        *(("again", "<int:pk>/again/"), ("undo", "<int:pk>/undo/")),
        ("compare", "compare/"),
    )
    always = ("chosen", "number")
    choosable = (
        *("started", "took", "outcome", "chat", "persona", "model_name", "steps", "tokens"),
        *("origin", "answer"),
    )
    list_display = ("started", "took", "outcome", "chat", "persona", "tokens", "answer")
    list_display_links = ("number",)
    list_filter = (StartedSince, "state", "origin")
    list_select_related = ("session",)
    list_excerpts = ("final_text", "error")
    list_defer = ("notes",)
    text_fields = ("final_text", "error")
    indexed_lookups = frozenset({"state__exact", "origin__exact", "session__id__exact"})
    search_help_text: ClassVar = _(
        "The number of a run; words of answers and errors are found among the newest 100,000 runs,"
        " or the newest 20,000 of a filtered list."
    )
    change_list_template = "admin/agent/run/change_list.html"
    change_form_template = "admin/agent/run/change_form.html"
    fields = ()
    columns: ClassVar = {
        "chosen": Column(_("compare"), lambda run: _choice(run)),
        "number": Column(_("run"), lambda run: f"#{run.pk}"),
        "started": Column(_("started"), lambda run: format_moment(run.started_at)),
        "took": Column(_("duration"), run_facts.format_run_duration),
        "chat": Column(
            _("chat"),
            lambda run: (
                record_link(
                    "agent_chatsession", run.session_id, run.session.title or run.session.key
                )
                if run.session
                else "-"
            ),
        ),
        "persona": Column(_("persona"), lambda run: run.persona or "-"),
        "model_name": Column(_("model"), lambda run: run.model or "-"),
        "steps": Column(_("model calls"), lambda run: run.model_calls),
        "origin": Column(_("origin"), lambda run: label_of(Run.Origin, run.origin)),
        "answer": Column(
            _("final answer"),
            lambda run: (
                format_error(error)
                if (error := getattr(run, "error_excerpt", ""))
                else clamp_text(getattr(run, "final_text_excerpt", ""))
            ),
        ),
        "tokens": Column(_("tokens"), lambda run: f"{run.input_tokens:,} + {run.output_tokens:,}"),
    }

    def offered_columns(self, request: HttpRequest) -> tuple[str, ...]:
        """Which model was to be asked is told to those who may see endpoints."""
        sees = request.user.has_perm(VIEW_ENDPOINT)
        return tuple(name for name in self.choosable if sees or name != "model_name")

    def get_queryset(self, request: HttpRequest) -> Rows:
        return super().get_queryset(request).select_related("session")

    def again_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """The message of the run ``pk``, its answer and its trials; by POST one more."""
        run = get_object_or_404(self.get_queryset(request), pk=pk)
        messages_asked = Message.objects.select_related("session").defer("segments", "raw")
        asked = get_object_or_404(messages_asked, pk=run.trial_of_id or run.message_id or 0)
        require(self.has_view_permission(request) and request.user.has_perm("agent.view_message"))
        answer = _find_answer(run, asked)
        if request.method == "POST":
            require(may_ask_again(request))
            _ask(request, asked, answer)
            return redirect("admin:agent_run_again", answer.pk)
        trials = Run.objects.filter(trial_of=asked).order_by("-pk")[:BESIDE]
        page: dict[str, Any] = {
            "asked": asked,
            "answer": answer,
            "compared": compare([answer, *trials], request.user),
            "personas": _personas(),
            "endpoints": _endpoints(request, asked),
            "may_ask": may_ask_again(request),
            "is_serving": serving.get_serving() is not None,
        }
        return self.show_page(request, "again", gettext("Ask again without sending"), **page)

    @by_post
    def undo_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Take back what the run said and did; then back to its page."""
        run = get_object_or_404(self.get_queryset(request), pk=pk)
        require(self.has_view_permission(request) and request.user.has_perm("agent.speak_in_chat"))
        undo_run(request, run)
        return redirect("admin:agent_run_change", run.pk)

    def compare_view(self, request: HttpRequest) -> HttpResponse:
        """The two runs that the address names, side by side."""
        require(self.has_view_permission(request))
        pks = dict.fromkeys(map(parse_row_number, request.GET.getlist("run")))
        if len(pks) != 2:
            messages.info(request, gettext("Choose two runs to see them side by side."))
            return redirect("admin:agent_run_changelist")
        runs = [get_object_or_404(self.get_queryset(request), pk=pk) for pk in pks]
        compared: Any = compare(runs, request.user)
        return self.show_page(request, "compare", gettext("Side by side"), compared=compared)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """The page; 204 for a page that asks whether it is still as it is ``known``."""
        known = request.GET.get("known", "")
        if known and "HX-Request" in request.headers and self.has_view_permission(request):
            run = self.get_object(request, unquote(object_id))
            if run is not None and known == stamp_run(run):
                return HttpResponse(status=204)
        return super().change_view(request, object_id, form_url, extra_context)

    def page_context(self, request: HttpRequest, obj: Run) -> dict[str, Any]:
        sees = frozenset(
            name
            for name in ("step", "toolcall", "message", "approval")
            if request.user.has_perm(f"agent.view_{name}")
        )
        whole = parse_row_number(request.GET.get("whole", ""))
        chosen = whole or parse_row_number(request.GET.get("step", ""))
        most = run_facts.STEP_LIMIT if obj.state == Run.State.RUNNING else WHOLE_STEPS
        read = min(max(most, chosen), run_facts.STEP_LIMIT)
        rows, may_see = run_facts.load_run_rows(obj, sees, whole=read), "toolcall" in sees
        run_facts.hold_back_model(obj, request.user)
        for step in rows.steps:
            if step.number <= read:
                run_facts.hold_back(step, request.user)
            else:
                run_facts.hold_back_endpoints(step, request.user)
        within = {call.pk for step in rows.steps for call in rows.made.get(step.pk, ())}
        sees_prompts = run_facts.may_see_prompts(request.user)
        contexts = read_contexts(rows, whole, read, shows_prompts=sees_prompts)
        steps: list[dict[str, Any]] = [
            {
                "step": step,
                "context": context,
                "answer": parse_transcript(step.response) if step.response is not None else [],
                **run_facts.describe_step(step),
                "calls": run_facts.describe_calls(step, rows),
            }
            if step.number <= most or step.number == chosen
            else {"step": step, "folded": _fold(step, rows)}
            for step, context in zip_longest(rows.steps, contexts)
        ]
        is_unsettled = any(one.state in UNSETTLED_OUT for one in rows.messages)
        return {
            "title": gettext("Run #%(number)s") % {"number": obj.pk},
            "subtitle": None,
            "seconds": run_facts.format_run_duration(obj),
            "sums": run_facts.load_sums(obj) if "step" in sees else None,
            "notes": [run_facts.shown_note(drop_surrogates(str(note))) for note in obj.notes],
            "asked": rows.asked,
            "merged": rows.merged,
            "asked_badge": _asked_badge(rows),
            # the call whose outcome this run announces, and that which an agent's was made for
            "told": run_facts.find_call(
                getattr(rows.asked, "tool_call_id", None) if may_see else None
            ),
            "made_for": run_facts.find_call(obj.parent_id if may_see else None),
            "steps": steps,
            "messages_sent": [m for m in rows.messages if m.tool_call_id not in within],
            "was_sent": obj.final_text in {m.text for m in rows.messages},
            "waterfall": waterfall.build_waterfall(rows, timezone.now()),
            "stamp": stamp_run(obj) if obj.state == Run.State.RUNNING or is_unsettled else "",
            "may_cancel": may_cancel(request, obj),
            **describe_undo(request, obj, rows.asked),
            "may_stop": run_facts.may_stop(request.user, obj),
            "sees_prompts": sees_prompts,
            "can_ask_again": bool(rows.asked and rows.steps) and may_ask_again(request),
        }


#: A step that is fetched when it is opened, or read on a page of its own; links lead inside it.
_FOLDED = """<details class="module step folded" id="step-{0}" hx-get="?step={0}"
hx-trigger="toggle once" hx-select="#step-{0}" hx-swap="outerHTML"><summary><h2><span>{1}</span>
<span class="measures">{2}</span></h2></summary>
<p class="offered"><a href="?step={0}#step-{0}">{3}</a></p>{4}</details>"""


def _fold(step: Step, rows: run_facts.RunRows) -> SafeString:
    calls = rows.made.get(step.pk, ())
    made = {call.pk for call in calls}
    places = [f"call-{pk}" for pk in made]
    places += (f"sent-{one.pk}" for one in rows.messages if one.tool_call_id in made)
    tokens = gettext("%(input)s tokens in, %(output)s out") % {
        "input": f"{step.input_tokens:,}",
        "output": f"{step.output_tokens:,}",
    }
    tools = ", ".join(dict.fromkeys(call.tool_name for call in calls))
    ended = gettext("failed") if step.error else step.finish_reason
    return fill(
        _FOLDED,
        step.number,
        gettext("Step %(number)s") % {"number": step.number},
        " · ".join(filter(None, (tools, tokens, f"{step.latency_ms} ms", ended))),
        gettext("Show the whole step"),
        SafeString("".join(fill('<span id="{}"></span>', place) for place in places)),
    )


def _choice(run: Run) -> str:
    """A box that chooses a run for the comparison, which is a form beside the list."""
    words = gettext("Compare run #%(number)s") % {"number": run.pk}
    box = '<input type="checkbox" name="run" value="{}" form="compare" aria-label="{}">'
    return fill(box, run.pk, words)


def _asked_badge(rows: run_facts.RunRows) -> str:
    """The state of what was asked, and "unknown" where nobody knows whether the answer arrived."""
    if rows.asked is None:
        return ""
    is_doubtful = any(one.state == Message.State.UNKNOWN for one in rows.messages)
    is_answered = rows.asked.state == Message.State.ANSWERED
    return "unknown" if is_doubtful and is_answered else rows.asked.state


def may_cancel(request: HttpRequest, run: Run) -> bool:
    """Whether ``run`` works on an answer that the reader may stop."""
    if run.state != Run.State.RUNNING or run.trial_of_id or not (run.session and run.message):
        return False
    is_chat = run.session.platform == ONEBOT and run.message.reason != Message.Reason.COMMAND
    return is_chat and request.user.has_perm("agent.speak_in_chat")


def stamp_run(run: Run) -> str:
    """A text that differs whenever the page of ``run`` does. Three queries."""
    steps = Step.objects.filter(run=run).count()
    calls = (
        ToolCall.objects.filter(run=run)
        .order_by("pk")
        .values_list("state", "progress", "stopped_by")
    )
    sent = Message.objects.filter(run=run).order_by("pk").values_list("state")
    found = (run.state, run.model_calls, steps, list(calls), list(sent))
    return hashlib.sha256(repr(found).encode()).hexdigest()[:16]
