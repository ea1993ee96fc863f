"""Outgoing messages on record, and the end of the runs that made them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db.models.functions import Coalesce
from django.utils import timezone

from agent.domain.types import Delivery
from agent.models import Message, Run
from agent.record.ground import statements
from agent.record.runs.steps import NewStep, record_steps
from agent.record.sums.activity import (
    count_ended,
    count_messages,
    forget_outcomes,
    take_back_outcomes,
)

Direction = Message.Direction
State = Message.State

#: The ``part`` of a merged forward; the parts of an answer are counted from 1.
FORWARD = 0


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """A message about to be written to a socket, or (``pending``) waiting for one.

    ``step`` is the model call that it came from, when that is not on record yet:
    both are committed together.
    """

    session_pk: int
    run_pk: int
    text: str
    segments: list[dict[str, Any]]
    echo: str | None
    state: Message.State
    tool_call_pk: int | None = None
    temp_group_id: str = ""
    step: NewStep | None = None
    part: int | None = None


@dataclass(frozen=True, slots=True)
class AnswerPlan:
    """An answer in several messages, of which the first is about to be written.

    ``text`` is the whole of it, None where it is no answer but said by a tool; ``refused`` is the
    outcome of the merged forward that it was to be.
    """

    run_pk: int
    text: str | None
    messages: Sequence["OutgoingMessage"]
    refused: "SendResult | None" = None


@dataclass(frozen=True, slots=True)
class SendResult:
    """The outcome of an outgoing message. ``is_speech``: part of the conversation, if it was
    delivered."""

    pk: int
    delivery: Delivery
    is_speech: bool = True


@dataclass(frozen=True, slots=True)
class RunCompletion:
    """How a run and the message it answers end.

    ``outcome`` is that of the final message, which is settled in the same commit, and
    ``step`` the last model call, when it is not on record yet.
    """

    run_pk: int
    run_state: Run.State
    message_pk: int | None = None
    message_state: Message.State | None = None
    reason: str = ""
    """Why the message has no answer, where that is another reason than it came with."""
    detail: str = ""
    final_text: str = ""
    error: str = ""
    notes: list[str] = field(default_factory=list)
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    step: NewStep | None = None
    outcome: SendResult | None = None
    in_history: bool = False
    merged: tuple[int, ...] = ()
    """Messages that were answered together with this one: they end like it."""


def add_replies(replies: Sequence[tuple[OutgoingMessage, str]]) -> list[int]:
    """Store messages of processes; in state ``sent`` they may be on the wire from now on."""
    now = timezone.now()
    if steps := [reply.step for reply, _ in replies if reply.step is not None]:
        record_steps(steps)
    rows = [
        {
            "session": reply.session_pk,
            "state": reply.state,
            "text": reply.text,
            "segments": reply.segments,
            "echo": reply.echo,
            "run": reply.run_pk,
            "tool_call": reply.tool_call_pk,
            "temp_group_id": reply.temp_group_id,
            "part": reply.part,
            "claimed_by": process_id,
            "created_at": now,
        }
        for reply, process_id in replies
    ]
    return statements.add_replies.add(rows)


def plan_answers(plan: AnswerPlan, process_id: str) -> list[int]:
    """Store all messages of an answer, or of what a tool says; their keys. What is pending of an
    answer is sent whatever happens."""
    if plan.refused is not None:
        record_send_results([plan.refused])
    if plan.text is not None:
        statements.tell_run.rows(text=plan.text, pk=plan.run_pk)
    return add_replies([(message, process_id) for message in plan.messages])


def mark_replies_sent(resent: Sequence[tuple[int, str, str]]) -> list[int]:
    """Pending messages go out now: key, the echo that they will be answered with, and the process
    that sends them, which is another one than planned them where that one died; their keys."""
    forget_outcomes([pk for pk, *_ in resent])
    statements.send_message.each(
        {"pk": pk, "echo": echo, "process": process_id} for pk, echo, process_id in resent
    )
    return [pk for pk, *_ in resent]


def record_send_results(outcomes: Sequence[SendResult]) -> list[None]:
    now = timezone.now()
    count_ended(_settle(_reply_rows(outcomes, now)), now)
    return [None] * len(outcomes)


def _with_answers(outcomes: Sequence[SendResult]) -> list[SendResult]:
    """The outcomes; of those that are unknown to whoever waited, what the client has told another
    process."""
    doubtful = [one.pk for one in outcomes if one.delivery.state == State.UNKNOWN]
    if not doubtful:
        return list(outcomes)
    rows = Message.objects.filter(pk__in=doubtful).order_by("pk").select_for_update(no_key=True)
    known = {
        row.pk: Delivery(State(row.state), row.message_id, row.detail)
        for row in rows
        if row.state in (State.DELIVERED, State.FAILED)
    }
    return [replace(one, delivery=known.get(one.pk, one.delivery)) for one in outcomes]


def _reply_rows(outcomes: Sequence[SendResult], now: datetime) -> list[dict[str, Any]]:
    return [
        {
            "pk": outcome.pk,
            "state": outcome.delivery.state,
            "message_id": outcome.delivery.message_id[:128],
            "detail": outcome.delivery.error,
            "run": None,
            "in_history": outcome.is_speech and outcome.delivery.state != State.FAILED,
            "now": now,
            "again": False,
        }
        for outcome in _with_answers(outcomes)
    ]


def _settle(rows: Sequence[dict[str, Any]]) -> list[Sequence[Any]]:
    """Write how messages end, each once, by its last row; what they are counted by."""
    last = {row["pk"]: row for row in rows}
    ended = statements.settle_messages.many(list(last.values()))
    if again := sorted(last.keys() - {pk for pk, *_ in ended}):
        take_back_outcomes(again)
        ended += statements.settle_messages.many([{**last[pk], "again": True} for pk in again])
    return ended


def correct_send_result(account: str, echo: str, delivery: Delivery) -> bool:
    """Record the true outcome of a message whose outcome was unknown, by a client's late answer:
    the wait for it is over. Whether the answer was used."""
    told = Message.objects.filter(echo=echo).order_by("pk")
    list(told.select_for_update(no_key=True).values_list("pk"))  # others may settle them now
    late = told.filter(session__account=account, state__in=(State.UNKNOWN, State.SENT))
    count_messages(late, delivery.state)
    changes: dict[str, Any] = {"in_history": False} if delivery.state == State.FAILED else {}
    changed = late.order_by().update(
        state=delivery.state,
        message_id=delivery.message_id[:128],
        detail=delivery.error,
        settled_at=Coalesce("settled_at", timezone.now()),
        **changes,
    )
    return changed > 0


def is_wanted(echo: str) -> bool:
    """Whether what another process wants to have written is still to be: of a message that it has
    given up, the outcome is on record, and later ones may have been said. What is no message has
    no row."""
    states = Message.objects.filter(echo=echo).values_list("state", flat=True)
    return all(state == State.SENT for state in states)


def complete_runs(endings: Sequence[RunCompletion]) -> list[None]:
    """Settle the final message, the message answered, and the run, together."""
    now = timezone.now()
    if steps := [ending.step for ending in endings if ending.step is not None]:
        record_steps(steps)
    replies = [one.outcome for one in endings if one.outcome is not None]
    answered = [
        {
            "pk": pk,
            "state": one.message_state,
            "message_id": None,
            "detail": one.detail,
            "run": one.run_pk,
            "in_history": one.in_history,
            "now": now,
            "again": False,
        }
        for one in endings
        if one.message_pk is not None
        for pk in (one.message_pk, *one.merged)
    ]
    runs = {one.message_pk: one.run_state for one in endings if one.message_pk is not None}
    count_ended(_settle(_reply_rows(replies, now) + answered), now, runs)
    explained = [one for one in endings if one.reason and one.message_pk]
    statements.explain_message.each({"pk": e.message_pk, "reason": e.reason} for e in explained)
    _end(endings, now)
    return [None] * len(endings)


def _end(endings: Sequence[RunCompletion], now: datetime) -> None:
    """Write how runs end, each once, by its last ending."""
    rows = {
        e.run_pk: {
            "pk": e.run_pk,
            "state": e.run_state,
            "final_text": e.final_text,
            "error": e.error,
            "notes": e.notes,
            "now": now,
            "model_calls": e.model_calls,
            "input_tokens": e.input_tokens,
            "output_tokens": e.output_tokens,
        }
        for e in endings
    }
    statements.finish_runs.many(list(rows.values()))
