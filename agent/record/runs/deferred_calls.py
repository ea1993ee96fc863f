"""Tool calls whose outcome comes after their run, and the messages that announce it in the chat.

Such a message is an incoming one like any other: work on record, taken up by the inbox
in its turn, also after a restart. It stands for the person who had asked.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone

from agent.domain.event_rules import read_fired_rule
from agent.domain.notices import CallNews
from agent.domain.states import BY_RULES, ToolCallState
from agent.llm.answers.completion import reasoning_of
from agent.llm.requests.messages import ChatMessage
from agent.models import Approval, Message, Step, ToolCall
from agent.record.runs.steps import CallOutcome, record_call_outcomes
from agent.record.sums.activity import count_failed_calls
from tools.text.fences import neutralize_marks

INTERRUPTED = "工具执行失败: 服务在执行过程中重启，结果未知，请勿重复执行"
State = ToolCall.State
#: States in which the outcome of a call is still to come.
OPEN = (State.RUNNING, State.PENDING)
PROGRESS = "progress:"


@dataclass(frozen=True, slots=True)
class DeferredCall:
    """An earlier run's call, as the run that announces its outcome sees it.

    ``is_to_be_made``: an owner has approved it, and it has not begun; otherwise ``text`` is the
    result for the model, and ``following`` the messages after it. ``is_stale``: it was to report
    progress, but the outcome has come meanwhile. ``reasoning`` is what the model thought before it
    called.
    """

    pk: int
    call_id: str
    tool_name: str
    arguments: Any
    is_to_be_made: bool = False
    text: str = ""
    following: list[ChatMessage] = field(default_factory=list)
    is_stale: bool = False
    reasoning: str | None = None
    approved_by: str = ""
    """The owner or user who has approved it."""
    is_by_rule: bool = False
    """Whether a rule made it, so that no model tells its outcome."""


@dataclass(frozen=True, slots=True)
class CallSuspension:
    """A call whose run continues without its outcome; ``worker`` is the process that still works on
    it."""

    pk: int
    provider_name: str
    told: str
    worker: str = ""
    next_pk: int | None = None
    verdict: str = ""
    decided_by: str = ""


@dataclass(frozen=True, slots=True)
class CallCompletion:
    """The later outcome of a call, and the messages for the model that come after its result."""

    outcome: CallOutcome
    following: list[ChatMessage] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ProgressReport:
    """The progress of a long-running tool; ``number`` is set if it is to be announced in the
    chat."""

    pk: int
    text: str
    number: int | None = None


def suspend_calls(suspension: CallSuspension) -> None:
    """Leave a call open, unless its outcome has come already."""
    ToolCall.objects.filter(pk=suspension.pk, state__in=OPEN).update(
        state=State.PENDING,
        provider_name=suspension.provider_name,
        result=suspension.told,
        claimed_by=suspension.worker,
        verdict=suspension.verdict or None,
        decided_by=suspension.decided_by[:200] or None,
    )
    if suspension.next_pk is not None:
        ToolCall.objects.filter(pk=suspension.next_pk).update(state=State.RUNNING)


def complete_calls(completion: CallCompletion) -> bool:
    """Settle an open call and announce its outcome in the chat; whether it was still open."""
    calls = ToolCall.objects.select_related("run__message")
    call = calls.filter(pk=completion.outcome.pk, state__in=OPEN).first()
    if call is None:
        return False
    record_call_outcomes([completion.outcome])
    announce_outcome(call, f"later:{call.pk}", completion.following)
    return True


def record_progress(report: ProgressReport) -> None:
    """Store the latest progress for the admin, and announce it in the chat where that is wanted.

    Nothing is announced while the call's own run is still active.
    """
    ToolCall.objects.filter(pk=report.pk, state__in=OPEN).update(progress=report.text)
    if report.number is not None:
        calls = ToolCall.objects.select_related("run__message")
        for call in calls.filter(pk=report.pk, state=State.PENDING):
            announce_outcome(call, f"{PROGRESS}{call.pk}:{report.number}")


def announce_outcome(call: ToolCall, key: str, following: Sequence[ChatMessage] = ()) -> None:
    """Record the message that announces the call in its chat, once for each ``key``."""
    asked = call.run.message
    if asked is None:  # a question over HTTP: there is no chat
        return
    message = Message(
        session_id=asked.session_id,
        direction=Message.Direction.IN,
        state=Message.State.WAITING,
        reason=Message.Reason.LATER_RESULT,
        sender_id=asked.sender_id,
        sender_name=asked.sender_name,
        sender_role=asked.sender_role,
        message_id=asked.message_id,
        temp_group_id=asked.temp_group_id,
        text=f"[工具结果: {call.tool_name}]",
        raw={"following": list(following)} if following else None,
        tool_call=call,
        event_key=key,
        created_at=timezone.now(),
    )
    Message.objects.bulk_create([message], ignore_conflicts=True)


def load_call_outcome(call_pk: int) -> CallNews:
    """What can be told of a call as it is on record."""
    call = ToolCall.objects.select_related("run__message").get(pk=call_pk)
    asked = call.run.message.text if call.run.message else ""
    is_open = call.state in OPEN
    told = call.progress if is_open else call.result
    return CallNews(call.tool_name, ToolCallState(call.state), told, asked)


def give_up_calls(calls: Sequence[ToolCall]) -> None:
    """Settle calls whose process died during them: their outcome is unknown."""
    for call in calls:
        still_open = ToolCall.objects.filter(pk=call.pk, state__in=OPEN)
        count_failed_calls(still_open)
        if still_open.update(state=State.UNKNOWN, result=INTERRUPTED, error=INTERRUPTED):
            announce_outcome(call, f"later:{call.pk}")


def find_news(call_pk: int) -> Message | None:
    """The message that tells the chat the outcome of a call; None before there is one."""
    news = Message.objects.filter(tool_call=call_pk, reason=Message.Reason.LATER_RESULT)
    return news.exclude(event_key__startswith=PROGRESS).order_by("-pk").first()


def find_untold(since: datetime) -> QuerySet[Message]:
    """Messages that were to tell a chat the outcome of a call that was approved after ``since``,
    and did not."""
    approved = Approval.objects.filter(state=Approval.State.APPROVED, decided_at__gt=since)
    news = Message.objects.filter(
        tool_call__in=approved.values("call"), reason=Message.Reason.LATER_RESULT
    )
    is_stopped = Q(state=Message.State.SILENT, detail__startswith="the budget ")
    failed = Q(state__in=(Message.State.FAILED, Message.State.EXPIRED))
    return news.filter(is_stopped | failed).order_by()


def _is_by_rule(asking: Message | None) -> bool:
    """Whether ``asking`` is answered by a rule, without a model."""
    rule = read_fired_rule(asking.raw) if asking and asking.reason in BY_RULES else None
    return rule is not None and not rule.asks_model


def find_deferred_call(message_pk: int, *, resumed: bool) -> DeferredCall | None:
    """The call that the message announces. ``resumed``: the process that had the message before is
    gone."""
    said = Message.objects.select_related("tool_call__run__message")
    message = said.get(pk=message_pk)
    call = message.tool_call
    if call is None:
        return None
    approval = Approval.objects.filter(call=call).first()
    if call.state == State.RUNNING and resumed and approval is not None:
        count_failed_calls(ToolCall.objects.filter(pk=call.pk))
        call.state, call.result = State.UNKNOWN, INTERRUPTED
        call.save(update_fields=["state", "result"])
    return DeferredCall(
        call.pk,
        call.call_id,
        call.tool_name,
        call.arguments,
        is_to_be_made=call.state == State.PENDING
        and approval is not None
        and approval.state == Approval.State.APPROVED,
        text=neutralize_marks(f"仍在执行: {call.progress}") if call.state in OPEN else call.result,
        following=(message.raw or {}).get("following", []),
        is_stale=(message.event_key or "").startswith(PROGRESS) and call.state not in OPEN,
        reasoning=reasoning_of(
            Step.objects.values_list("response", flat=True).get(pk=call.step_id) or {}
        ),
        approved_by=approval.decided_by if approval else "",
        is_by_rule=_is_by_rule(call.run.message),
    )
