"""Why the bot spoke or kept silent in a chat, from the record alone.

Only messages and runs of that chat are looked at: of what a run of another chat did here, only that
it did.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from django.db.models import Q, Sum

from agent.domain.event_rules import FiredRule, read_fired_rule
from agent.domain.reminders import read_fired
from agent.domain.states import (
    BY_RULES,
    ApprovalState,
    MessageReason,
    MessageState,
    RunState,
    ToolCallState,
)
from agent.llm.requests.messages import ChatMessage, content_text
from agent.models import Approval, Message, MessageMedia, Reminder, Run, Step, ToolCall, UndoStep
from agent.models.message import BY_HAND
from tools.text.fences import FenceKind

Direction = Message.Direction
Reason = MessageReason
#: Levels of agents that work for other ones.
LEVELS = 4
#: What a first request holds beside history, by the fence it stands in.
BACKGROUND = (FenceKind.SUMMARY, FenceKind.MEMORY, FenceKind.AMBIENT)
INSIDE = (FenceKind.QUOTED, FenceKind.FORWARDED)


class HeardFacts(NamedTuple):
    """The message that was answered, or not."""

    sender_id: str
    sender_name: str
    at: datetime
    state: MessageState
    reason: MessageReason | None
    detail: str
    is_merged: bool
    media: Mapping[str, int]
    """How many of each kind were read in it (:class:`agent.models.MessageMedia.MediaKind`)."""
    reminder: int = 0
    """The number of the reminder that it is, 0 for other messages; and when that was set."""
    set_at: datetime | None = None
    rule: FiredRule | None = None
    """What it is that a rule was followed for: an event, or a keyword."""


class ApprovalFacts(NamedTuple):
    tool_name: str
    state: ApprovalState
    decided_by: str
    decided_at: datetime | None


class SentFacts(NamedTuple):
    """A message of the run. ``error`` is in the client's words."""

    state: MessageState
    at: datetime
    error: str


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What one run did, with the agents that worked for it. ``history`` is None where its request
    is not kept any more."""

    pk: int
    state: RunState
    persona: str
    models: tuple[str, ...]
    error: str
    model_calls: int
    input_tokens: int
    output_tokens: int
    costs: Mapping[str, int]
    """Billionths, by currency."""
    tools: Sequence[tuple[str, ToolCallState, int]]
    """Names with outcomes, and how often each."""
    approvals: Sequence[ApprovalFacts]
    history: int | None
    shown: frozenset[FenceKind]
    sent: Sequence[SentFacts]
    undone: tuple[str, datetime] | None = None
    """Who took it back, and when."""


@dataclass(frozen=True, slots=True)
class WhyFacts:
    """``heard`` is None for words without a message that they answer; ``foreign_run`` is the run of
    another chat that sent them here."""

    heard: HeardFacts | None = None
    run: RunFacts | None = None
    sent: Sequence[SentFacts] = field(default_factory=tuple)
    foreign_run: int | None = None
    is_by_hand: bool = False
    """Whether an operator wrote it."""


def load_why(session_pk: int, quoted_id: str, command_pk: int) -> WhyFacts | None:
    """What is on record of the message with the client's id ``quoted_id`` in this chat, or else of
    the newest answer; None for a message that is not of this chat."""
    found = _find_message(session_pk, quoted_id, command_pk)
    if found is None:
        return None
    if found.direction == Direction.IN:
        answered = found.merged_into or found
        run = answered.run or answered.runs.filter(parent=None).order_by("-pk").first()
        return WhyFacts(_heard(found), _run_facts(run, session_pk) if run else None)
    run, sent = found.run, (_sent(found),)
    if found.author and found.resent_from_id is None:
        return WhyFacts(sent=sent, is_by_hand=True)
    if run is None:
        return WhyFacts(sent=sent)
    if run.session_id != session_pk:
        return WhyFacts(sent=sent, foreign_run=run.pk)
    heard = _heard(run.message) if run.message else None
    return WhyFacts(heard, _run_facts(run, session_pk), sent)


def _find_message(session_pk: int, quoted_id: str, command_pk: int) -> Message | None:
    rows = Message.objects.filter(session_id=session_pk, pk__lt=command_pk).order_by("-pk")
    if quoted_id:
        # The outcome of an earlier call stands for the message that asked for it, under its id.
        said = rows.filter(message_id=quoted_id).exclude(reason=Reason.LATER_RESULT)
        return said.select_related("run__message", "merged_into").first()
    answers = rows.filter(direction=Direction.OUT, run__session=session_pk)
    return answers.exclude(run__message__reason=Reason.COMMAND).select_related("run").first()


def _heard(message: Message) -> HeardFacts:
    fired = read_fired(message.raw) if message.reason == Reason.REMINDER else None
    reminder = Reminder.objects.filter(pk=fired.pk).first() if fired else None
    read = MessageMedia.objects.filter(message=message, reason="").order_by("position")
    return HeardFacts(
        message.sender_id,
        message.sender_name,
        message.created_at,
        MessageState(message.state),
        MessageReason(message.reason) if message.reason in Reason.values else None,
        message.detail,
        message.merged_into_id is not None,
        Counter(read.values_list("kind", flat=True)),
        fired.pk if fired else 0,
        reminder.created_at if reminder else None,
        read_fired_rule(message.raw) if message.reason in BY_RULES else None,
    )


def _sent(message: Message) -> SentFacts:
    return SentFacts(MessageState(message.state), message.created_at, message.detail)


def _run_facts(run: Run, session_pk: int) -> RunFacts:
    pks = _with_agents(run.pk)
    used = Run.objects.filter(pk__in=pks).aggregate(
        calls=Sum("model_calls"), asked=Sum("input_tokens"), said=Sum("output_tokens")
    )
    priced = Step.objects.filter(run__in=pks, cost_nano__isnull=False).order_by()
    costs = priced.values_list("currency").annotate(cost=Sum("cost_nano"))
    out = Message.objects.filter(run=run, session_id=session_pk, direction=Direction.OUT)
    out = out.exclude(BY_HAND)
    request = _first_request(run)
    return RunFacts(
        run.pk,
        RunState(run.state),
        run.persona or "",
        _models(run),
        run.error,
        used["calls"],
        used["asked"],
        used["said"],
        {currency or "": int(cost) for currency, cost in costs},
        _tools(run),
        _approvals(run),
        None if request is None else count_history(request),
        find_shown(request or []),
        [_sent(one) for one in out.order_by("pk")],
        UndoStep.objects.filter(run=run).order_by("pk").values_list("author", "created_at").first(),
    )


def _with_agents(run_pk: int) -> set[int]:
    """The run and those of the agents that it had work for it."""
    found = newest = {run_pk}
    for _ in range(LEVELS):
        below = Run.objects.filter(parent__run__in=newest).values_list("pk", flat=True)
        newest = set(below) - found
        found = found | newest
    return found


def _models(run: Run) -> tuple[str, ...]:
    steps = Step.objects.filter(run=run, phase=Step.Phase.ACTION, model__isnull=False)
    names = steps.order_by("number").values_list("endpoint_name", "model")
    asked = [f"{model} ({name})" if name else model for name, model in names if model]
    planned = [run.model] if run.model and run.model_calls else []
    return tuple(dict.fromkeys(asked or planned))


def _tools(run: Run) -> list[tuple[str, ToolCallState, int]]:
    calls = ToolCall.objects.filter(run=run).order_by("step_id", "position")
    counts = Counter(calls.values_list("tool_name", "state"))
    return [(name, ToolCallState(state), count) for (name, state), count in counts.items()]


def _approvals(run: Run) -> list[ApprovalFacts]:
    """Of the run's own calls, and of the one whose outcome it tells."""
    told = run.message.tool_call_id if run.message else None
    rows = (
        Approval.objects.filter(Q(call__run=run) | Q(call=told))
        if told
        else (Approval.objects.filter(call__run=run))
    )
    names = ("call__tool_name", "state", "decided_by", "decided_at")
    return [
        ApprovalFacts(tool, ApprovalState(state), by, at)
        for tool, state, by, at in rows.order_by("pk").values_list(*names)
    ]


def _first_request(run: Run) -> list[ChatMessage] | None:
    """What the model was shown first; None where it is not kept, or none was asked."""
    first = Step.objects.filter(run=run, phase=Step.Phase.ACTION).order_by("number")
    for request, sent in first.values_list("request", "sent")[:1]:
        return sent or request or None
    return None


def count_history(request: Sequence[ChatMessage]) -> int:
    """The messages of a first request that are history: neither the prompt, nor the background,
    nor the last one, which is answered."""
    said = [one for one in request[:-1] if one.get("role") in ("user", "assistant")]
    return sum(not _background(one) for one in said)


def find_shown(request: Sequence[ChatMessage]) -> frozenset[FenceKind]:
    """What stood in fences in a first request, beside what it says of earlier messages."""
    shown = {kind for one in request for kind in _background(one)}
    current = content_text(request[-1].get("content")) if request else ""
    return frozenset(shown | {kind for kind in INSIDE if kind.opening in current})


def _background(message: ChatMessage) -> list[FenceKind]:
    text = content_text(message.get("content"))
    return [kind for kind in BACKGROUND if text.startswith(kind.opening)]
