"""Runs: everything done for one message, on one page."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agent.admin.own_chats import OwnRunsAdmin
from agent.admin.runs.calls import load_outcome_runs
from agent.admin.runs.step_facts import describe_step, describe_verdict, load_sums
from agent.admin.runs.turns import parse_transcript
from agent.models import Approval, Message, Run, Step, ToolCall
from tools.admin.filters import RecordedSince, Rows
from tools.admin.record_pages import (
    StateRecordAdmin,
    clamp_text,
    format_moment,
    parse_row_number,
    record_link,
)
from tools.text.readable import arguments_text, drop_surrogates

#: Steps, calls and messages of one run that are shown.
STEP_LIMIT, CALL_LIMIT, MESSAGE_LIMIT = 100, 500, 500


@dataclass(frozen=True, slots=True)
class RelatedRows:
    """What belongs to the calls of a run, by their keys: subagents' runs, later runs that announced
    their outcome, approvals."""

    inner: Mapping[int | None, list[Run]]
    later: Mapping[int | None, list[Run]]
    approvals: Mapping[int | None, Approval]


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
        return clamp_text(
            getattr(run, "error_excerpt", "") or getattr(run, "final_text_excerpt", "")
        )

    @admin.display(description=_("tokens"))
    def tokens(self, run: Run) -> str:
        return f"{run.input_tokens:,} + {run.output_tokens:,}"

    def page_context(self, request: HttpRequest, obj: Run) -> dict[str, Any]:
        sees = request.user.has_perm
        calls = list(_calls(obj)) if sees("agent.view_toolcall") else []
        messages = list(_messages(obj, calls)) if sees("agent.view_message") else []
        asked = Message.objects.defer("segments", "raw").filter(pk=obj.message_id or 0).first()
        beside = RelatedRows(
            load_inner_runs(calls),
            load_outcome_runs(calls),
            _approvals(calls) if sees("agent.view_approval") else {},
        )
        steps = (
            [_shown_step(step, calls, messages, beside) for step in _steps(obj)]
            if sees("agent.view_step")
            else []
        )
        shown = {m.pk for step in steps for shown_call in step["calls"] for m in shown_call["sent"]}
        return {
            "seconds": format_run_duration(obj),
            "sums": load_sums(obj) if sees("agent.view_step") else None,
            "notes": [shown_note(drop_surrogates(str(note))) for note in obj.notes],
            "asked": asked if sees("agent.view_message") else None,
            "told": _told(asked) if sees("agent.view_toolcall") else None,
            "made_for": _made_for(obj) if sees("agent.view_toolcall") else None,
            "steps": steps,
            "messages_sent": [m for m in messages if m.pk not in shown],
            "was_sent": obj.final_text in {m.text for m in messages},
        }


def shown_note(note: str) -> str:
    """A note whose first line is a fixed sentence, and the rest what it is about."""
    sentence, _newline, about = note.partition("\n")
    return f"{gettext(sentence)} {about}" if sentence and about else note


def format_run_duration(run: Run) -> str:
    """How long a run took; "" while it is active."""
    return f"{(run.finished_at - run.started_at).total_seconds():.2f} s" if run.finished_at else ""


def _steps(run: Run) -> Iterable[Step]:
    return Step.objects.filter(run=run).order_by("number")[:STEP_LIMIT]


def _calls(run: Run) -> Iterable[ToolCall]:
    return (
        ToolCall.objects.filter(run=run)
        .defer("structured_content", "full_result")
        .order_by("step_id", "position")[:CALL_LIMIT]
    )


def _made_for(run: Run) -> ToolCall | None:
    """The call that an agent's run was made for."""
    if run.parent_id is None:
        return None
    return ToolCall.objects.only("run_id", "tool_name").filter(pk=run.parent_id).first()


def _told(asked: Message | None) -> ToolCall | None:
    """The earlier run's call whose outcome a run announces."""
    if asked is None or asked.tool_call_id is None:
        return None
    return (
        ToolCall.objects.only("run_id", "tool_name", "state").filter(pk=asked.tool_call_id).first()
    )


def _approvals(calls: Sequence[ToolCall]) -> dict[int | None, Approval]:
    """The questions to the owners about ``calls``, by the key of the call."""
    asked = Approval.objects.filter(call__in=[call.pk for call in calls]).only(
        "call_id", "code", "state"
    )
    return {approval.call_id: approval for approval in asked}


def load_inner_runs(calls: Sequence[ToolCall]) -> dict[int | None, list[Run]]:
    """The runs of agents that ``calls`` set off, by the key of the call, oldest first."""
    inside: dict[int | None, list[Run]] = {}
    runs = Run.objects.filter(parent__in=[call.pk for call in calls]).order_by("pk")
    for run in runs.only("parent_id", "state", "started_at", "finished_at")[:CALL_LIMIT]:
        inside.setdefault(run.parent_id, []).append(run)
    return inside


def _messages(run: Run, calls: Sequence[ToolCall]) -> Iterable[Message]:
    """What went out. What an agent's tools say is said by the run around it, so it is found by the
    calls."""
    source = Q(tool_call__in=[call.pk for call in calls]) if run.parent_id else Q(run=run)
    sent = Message.objects.filter(source, direction=Message.Direction.OUT).order_by("pk")
    return sent.defer("segments", "raw")[:MESSAGE_LIMIT]


def _shown_step(
    step: Step, calls: list[ToolCall], messages: list[Message], beside: "RelatedRows"
) -> dict[str, Any]:
    """A step with its calls inside, and inside each call the messages it sent and what else there
    is on record of it."""
    inside = [call for call in calls if call.step_id == step.pk]
    return {
        "step": step,
        "offered": drop_surrogates(", ".join(map(str, step.tools))),
        "request": parse_transcript(step.request),
        "answer": parse_transcript(step.response) if step.response is not None else [],
        **describe_step(step),
        "calls": [
            {
                "call": call,
                "arguments": arguments_text(call.arguments),
                "verdict": describe_verdict(call.verdict),
                "sent": [message for message in messages if message.tool_call_id == call.pk],
                "runs": beside.inner.get(call.pk, []),
                "told": beside.later.get(call.pk, []),
                "approval": beside.approvals.get(call.pk),
            }
            for call in inside
        ],
    }
