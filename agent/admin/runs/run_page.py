"""Runs: everything done for one message, on one page."""

import hashlib
from collections.abc import Iterable
from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agent.admin.runs.again import again_urls, may_ask_again
from agent.admin.runs.sent_context import ContextReader
from agent.admin.runs.turns import parse_transcript
from agent.admin.runs.waterfall import build_waterfall
from agent.models import Message, Run, Step, ToolCall
from agent.pages.error_words import format_error
from agent.pages.own_chats import OwnRunsAdmin
from agent.pages.runs.held_back import hold_back, hold_back_model, may_see_prompts
from agent.pages.runs.run_rows import RunRows, find_parent_call, find_told_call, load_run_rows
from agent.pages.runs.step_facts import (
    describe_step,
    describe_verdict,
    format_run_duration,
    load_sums,
    shown_note,
)
from agent.record.settings.manners import ONEBOT
from tools.admin.filters import RecordedSince, Rows
from tools.admin.record_pages import (
    StateRecordAdmin,
    clamp_text,
    format_moment,
    parse_row_number,
    record_link,
)
from tools.refusals import CallVerdict
from tools.text.readable import TEXT_LIMIT, arguments_text, drop_surrogates

#: Characters of requests that one page shows: of many steps less of each text.
SHOWN_CHARACTERS = 400_000
UNSETTLED_OUT = (Message.State.PENDING, Message.State.SENT)


class StartedSince(RecordedSince):
    field = "started_at"


@admin.register(Run)
class RunAdmin(OwnRunsAdmin, StateRecordAdmin):
    list_display = ("number", "started", "outcome", "chat", "answer", "tokens")
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
    change_form_template = "admin/agent/run/change_form.html"
    fields = ()

    def get_queryset(self, request: HttpRequest) -> Rows:
        return super().get_queryset(request).select_related("session")

    def exact_matches(self, term: str) -> Iterable[Q]:
        yield Q(pk=parse_row_number(term))

    @admin.display(description=_("run"))
    def number(self, run: Run) -> str:
        return f"#{run.pk}"

    @admin.display(description=_("started"))
    def started(self, run: Run) -> str:
        return format_html(
            '{} <div class="quiet">{}</div>',
            format_moment(run.started_at),
            format_run_duration(run),
        )

    @admin.display(description=_("chat"))
    def chat(self, run: Run) -> str:
        return (
            record_link("agent_chatsession", run.session_id, run.session.title or run.session.key)
            if run.session
            else "-"
        )

    @admin.display(description=_("final answer"))
    def answer(self, run: Run) -> str:
        if error := getattr(run, "error_excerpt", ""):
            return format_error(error)
        return clamp_text(getattr(run, "final_text_excerpt", ""))

    @admin.display(description=_("tokens"))
    def tokens(self, run: Run) -> str:
        return f"{run.input_tokens:,} + {run.output_tokens:,}"

    def get_urls(self) -> list[Any]:
        return [*again_urls(self), *super().get_urls()]

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
        rows = load_run_rows(obj, sees)
        hold_back_model(obj, request.user)
        for step in rows.steps:
            hold_back(step, request.user)
        reader = _context_reader(rows, request)
        steps = [_shown_step(step, rows, reader) for step in rows.steps]
        shown = {m.pk for step in steps for shown_call in step["calls"] for m in shown_call["sent"]}
        is_unsettled = any(one.state in UNSETTLED_OUT for one in rows.messages)
        return {
            "title": gettext("Run #%(number)s") % {"number": obj.pk},
            "subtitle": None,
            "seconds": format_run_duration(obj),
            "sums": load_sums(obj) if "step" in sees else None,
            "notes": [shown_note(drop_surrogates(str(note))) for note in obj.notes],
            "asked": rows.asked,
            "merged": rows.merged,
            "asked_badge": _asked_badge(rows),
            "told": find_told_call(rows.asked) if "toolcall" in sees else None,
            "made_for": find_parent_call(obj) if "toolcall" in sees else None,
            "steps": steps,
            "messages_sent": [m for m in rows.messages if m.pk not in shown],
            "was_sent": obj.final_text in {m.text for m in rows.messages},
            "waterfall": build_waterfall(rows, timezone.now()),
            "stamp": stamp_run(obj) if obj.state == Run.State.RUNNING or is_unsettled else "",
            "may_cancel": may_cancel(request, obj),
            "sees_prompts": may_see_prompts(request.user),
            "can_ask_again": bool(rows.asked and rows.steps) and may_ask_again(request),
        }


def _asked_badge(rows: RunRows) -> str:
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
    calls = ToolCall.objects.filter(run=run).order_by("pk").values_list("state", "progress")
    sent = Message.objects.filter(run=run).order_by("pk").values_list("state")
    found = (run.state, run.model_calls, steps, list(calls), list(sent))
    return hashlib.sha256(repr(found).encode()).hexdigest()[:16]


def _context_reader(rows: RunRows, request: HttpRequest) -> ContextReader:
    """What reads the requests of the steps; of the one that is asked for the whole."""
    limit = min(TEXT_LIMIT, SHOWN_CHARACTERS // max(1, len(rows.steps)))
    whole = parse_row_number(request.GET.get("whole", ""))
    return ContextReader(rows.offers, whole, limit, may_see_prompts(request.user))


def _shown_step(step: Step, rows: RunRows, reader: ContextReader) -> dict[str, Any]:
    """A step with its calls inside, and inside each call the messages it sent and what else there
    is on record of it."""
    return {
        "step": step,
        "context": reader.read(step),
        "answer": parse_transcript(step.response) if step.response is not None else [],
        **describe_step(step),
        "calls": [_shown_call(call, rows) for call in rows.calls if call.step_id == step.pk],
    }


def _shown_call(call: ToolCall, rows: RunRows) -> dict[str, Any]:
    return {
        "call": call,
        "arguments": arguments_text(call.arguments),
        "verdict": describe_verdict(call.verdict),
        "stood_in": call.verdict == CallVerdict.STOOD_IN,
        "sent": [message for message in rows.messages if message.tool_call_id == call.pk],
        "runs": rows.beside.inner.get(call.pk, []),
        "told": rows.beside.later.get(call.pk, []),
        "approval": rows.beside.approvals.get(call.pk),
    }
