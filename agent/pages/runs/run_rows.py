"""The rows that the page of a run is made from, each kind in one query."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from django.db.models import Q

from agent.models import Approval, Message, Run, Step, ToolCall, ToolOffer
from agent.models.message import BY_HAND

#: Steps, calls and messages of one run that are shown.
STEP_LIMIT, CALL_LIMIT, MESSAGE_LIMIT = 100, 500, 500
#: Runs of agents that a call's page links to.
RUN_LIMIT = 20


@dataclass(frozen=True, slots=True)
class RelatedRows:
    """What belongs to the calls of a run, by their keys: subagents' runs, later runs that announced
    their outcome, approvals."""

    inner: Mapping[int | None, list[Run]] = field(default_factory=dict)
    later: Mapping[int | None, list[Run]] = field(default_factory=dict)
    approvals: Mapping[int | None, Approval] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunRows:
    """A run with all of it that a user may see; what he may not see is empty."""

    run: Run
    asked: Message | None = None
    #: Earlier messages that were answered together with ``asked``, oldest first.
    merged: Sequence[Message] = ()
    steps: Sequence[Step] = ()
    offers: Mapping[int, ToolOffer] = field(default_factory=dict)
    calls: Sequence[ToolCall] = ()
    #: What went out, oldest first.
    messages: Sequence[Message] = ()
    beside: RelatedRows = field(default_factory=RelatedRows)


def load_run_rows(run: Run, sees: "frozenset[str]", *unread: str) -> RunRows:
    """The rows of ``run``; ``sees`` are the names of the models that may be seen, ``unread`` large
    columns of steps that are not shown."""
    rows = Step.objects.filter(run=run).defer(*unread).order_by("number")
    steps = list(rows[:STEP_LIMIT]) if "step" in sees else []
    made = ToolCall.objects.filter(run=run).defer("structured_content", "full_result")
    shown = made.order_by("step_id", "position")[:CALL_LIMIT]
    calls = list(shown) if "toolcall" in sees else []
    asked = merged = None
    messages: list[Message] = []
    if "message" in sees:
        plain = Message.objects.defer("segments", "raw")
        asked = plain.filter(pk=run.message_id or run.trial_of_id or 0).first()
        merged = list(plain.filter(merged_into=asked).order_by("pk")) if asked else []
        messages = list(_messages(run, calls))
    return RunRows(
        run,
        asked,
        merged or (),
        steps,
        ToolOffer.objects.in_bulk({step.offer_id for step in steps if step.offer_id}),
        calls,
        messages,
        RelatedRows(
            load_inner_runs(calls),
            load_outcome_runs(calls),
            _approvals(calls) if "approval" in sees else {},
        ),
    )


def find_parent_call(run: Run) -> ToolCall | None:
    """The call that an agent's run was made for."""
    if run.parent_id is None:
        return None
    return ToolCall.objects.only("run_id", "tool_name").filter(pk=run.parent_id).first()


def find_told_call(asked: Message | None) -> ToolCall | None:
    """The earlier run's call whose outcome a run announces."""
    if asked is None or asked.tool_call_id is None:
        return None
    return (
        ToolCall.objects.only("run_id", "tool_name", "state").filter(pk=asked.tool_call_id).first()
    )


def load_inner_runs(calls: Sequence[ToolCall]) -> dict[int | None, list[Run]]:
    """The runs of agents that ``calls`` set off, by the key of the call, oldest first."""
    inside: dict[int | None, list[Run]] = {}
    runs = Run.objects.filter(parent__in=[call.pk for call in calls]).order_by("pk")
    columns = ("parent_id", "state", "started_at", "finished_at", "persona")
    for run in runs.only(*columns)[:CALL_LIMIT]:
        inside.setdefault(run.parent_id, []).append(run)
    return inside


def load_outcome_runs(calls: Iterable[ToolCall]) -> dict[int | None, list[Run]]:
    """The later runs that announced ``calls`` in the chat, by the key of the call, oldest first.
    One query."""
    told: dict[int | None, list[Run]] = {}
    later = Q(
        message__tool_call__in=[call.pk for call in calls], message__direction=Message.Direction.IN
    )
    found = (
        Run.objects.filter(later)
        .select_related("message")
        .only("state", "parent", "message__tool_call")
    )
    # Without an order, or a condition on the parent: either leads SQLite to walk through all runs.
    for run in sorted(found.order_by(), key=lambda run: run.pk)[:RUN_LIMIT]:
        if run.parent_id is None:
            told.setdefault(run.message.tool_call_id if run.message else None, []).append(run)
    return told


def _approvals(calls: Sequence[ToolCall]) -> dict[int | None, Approval]:
    """The questions to the owners about ``calls``, by the key of the call."""
    columns = ("call_id", "code", "state", "created_at", "decided_at", "decided_by")
    asked = Approval.objects.filter(call__in=[call.pk for call in calls]).only(*columns)
    return {approval.call_id: approval for approval in asked}


def _messages(run: Run, calls: Sequence[ToolCall]) -> Iterable[Message]:
    """What went out. What an agent's tools say is said by the run around it, so it is found by the
    calls."""
    source = Q(tool_call__in=[call.pk for call in calls]) if run.parent_id else Q(run=run)
    sent = (
        Message.objects.filter(source, direction=Message.Direction.OUT)
        .exclude(BY_HAND)
        .order_by("pk")
    )
    return sent.defer("segments", "raw")[:MESSAGE_LIMIT]
