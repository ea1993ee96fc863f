"""What operators write as the bot, or have sent again: on record before it is sent.

A page puts such a message down as ``pending``, and nobody's. A process that serves claims it and
sends it like an answer: it is ``sent`` before it is written to a socket, and never written twice.
One that was pending when its process died is sent by the next one, unless it is too old by then.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_noop

from agent.domain.errors import ClaimLost, build_apology, build_refusal_apology
from agent.domain.states import FIRST_CLAIM, ActKind
from agent.domain.types import ChatAddress
from agent.models import ChatSession, Message, Run, ServerProcess
from agent.record.chats.chat_record import find_address
from agent.record.chats.own_messages import find_history_run
from agent.record.ground import statements
from agent.record.runs.recorded_answers import RecordedAnswerMessage
from agent.record.runs.replies import FORWARD, SendResult
from agent.record.sums.activity import count_messages
from agent.record.waiting.operator_acts import author_name, record_act
from agent.record.waiting.recovery import MISFILED

Direction, Reason, State = Message.Direction, Message.Reason, Message.State

#: States of a run that has still to say something itself.
GOING_ON = (Run.State.RUNNING, Run.State.INTERRUPTED)
#: Messages that one process takes at a time.
TAKE_LIMIT = 200
#: What was written longer ago is not sent any more: nobody expects it by now.
MOST_AGE = timedelta(minutes=10)
TOO_LATE = gettext_noop("nobody could send it in time")


class HandMessage(NamedTuple):
    """One message that an operator writes: its segments, and its words for the record."""

    segments: list[dict[str, Any]]
    text: str


@dataclass(frozen=True, slots=True)
class HandBatch:
    """Messages of one act, in order, that a process has claimed."""

    chat: ChatAddress
    session_pk: int
    temp_group_id: str
    messages: list[RecordedAnswerMessage]


def put_down(
    session: ChatSession, author: User, messages: Sequence[HandMessage], token: str
) -> list[Message]:
    """Record what ``author`` writes in a chat, to be sent; nothing where something was written with
    the same ``token`` before. Must run in a transaction."""
    key = f"hand:{token}"
    if Message.objects.filter(session=session, event_key=f"{key}:1").exists():
        return []
    temp_group_id = find_temp_group(session)
    rows = [
        Message.objects.create(
            text=one.text,
            segments=one.segments,
            run_id=find_history_run(session.pk),
            temp_group_id=temp_group_id,
            event_key=f"{key}:{number}",
            **_as_pending(session, author),
        )
        for number, one in enumerate(messages, 1)
    ]
    record_act(ActKind.ANSWER, session.pk, author, message=rows[0])
    return rows


def resend(failed: Message, author: User) -> Message | None:
    """Record that ``failed`` is to be sent again, as it was; the copy. None where there is one
    already: that is the one to be sent again. Must run in a transaction."""
    key = f"resend:{failed.pk}"
    if Message.objects.filter(session=failed.session_id, event_key=key).exists():
        return None
    copy = Message.objects.create(
        text=failed.text,
        segments=failed.segments,
        run_id=failed.run_id,
        temp_group_id=failed.temp_group_id,
        part=failed.part,
        resent_from=failed,
        event_key=key,
        **_as_pending(failed.session, author),
    )
    record_act(ActKind.RESEND, failed.session_id, author, message=copy, run=failed.run)
    return copy


def _as_pending(session: ChatSession, author: User) -> dict[str, Any]:
    return {
        "session": session,
        "direction": Direction.OUT,
        "state": State.PENDING,
        "author": author_name(author),
        "place": find_address(session).place,
        "created_at": timezone.now(),
    }


def find_temp_group(session: ChatSession) -> str:
    """The group that a temporary private session goes through, by what was said there last."""
    said = Message.objects.filter(session=session, direction=Direction.IN).order_by("-pk")
    return said.values_list("temp_group_id", flat=True).first() or ""


def claim_hand_messages(process_id: str) -> list[HandBatch]:
    """Take what is to be sent, oldest first. Two processes never get the same message. What is
    sent again waits until its run is over, which says of it how it ended."""
    if not statements.find_by_hand.rows():
        return []  # as nearly always
    living = {process_id, *ServerProcess.objects.values_list("pk", flat=True)}
    waiting = Message.objects.filter(
        ~Q(claimed_by__in=living), state=State.PENDING, direction=Direction.OUT
    ).filter(author__isnull=False)
    waiting = waiting.exclude(resent_from__isnull=False, run__state__in=GOING_ON)
    rows = list(waiting.select_related("session").order_by("pk")[:TAKE_LIMIT])
    taken = [row for row in rows if _take(row, process_id)]
    return [_batch(list(group)) for _, group in groupby(taken, _act_of)]


def _take(row: Message, process_id: str) -> bool:
    """Whether ``row`` is this process's from now on, and to be sent."""
    mine = Message.objects.filter(pk=row.pk, state=State.PENDING, claimed_by=row.claimed_by)
    if timezone.now() - row.created_at > MOST_AGE:
        _fail(mine, TOO_LATE)
        return False
    if row.place != find_address(row.session).place:
        _fail(mine, MISFILED)
        return False
    return bool(mine.update(claimed_by=process_id, claim_number=FIRST_CLAIM))


def _fail(rows: Any, why: str) -> None:
    count_messages(rows, State.FAILED)
    rows.update(state=State.FAILED, detail=why, settled_at=timezone.now())


def _act_of(row: Message) -> str:
    """What the messages of one act have in common."""
    key = row.event_key or str(row.pk)
    return key.rpartition(":")[0] if key.startswith("hand:") else key


def _batch(rows: Sequence[Message]) -> HandBatch:
    first = rows[0]
    messages = [
        RecordedAnswerMessage(
            row.pk, State(row.state), row.segments, row.detail, row.part == FORWARD
        )
        for row in rows
    ]
    return HandBatch(find_address(first.session), first.session_id, first.temp_group_id, messages)


def mark_hand_message_sent(pk: int, process_id: str, echo: str) -> int | ClaimLost:
    """A message (its key, the process that has claimed it, the echo) goes out now.
    :class:`ClaimLost` where another process may have it: then it must not be written."""
    mine = Message.objects.filter(
        pk=pk, claimed_by=process_id, state__in=(State.PENDING, State.SENT)
    )
    return pk if mine.update(state=State.SENT, echo=echo) else ClaimLost(pk)


def settle_hand_message(outcome: SendResult, process_id: str) -> None:
    """The outcome of a message; nothing changes where this process has it no more. What a resent
    answer answers was answered after all."""
    delivery = outcome.delivery
    is_open = delivery.state == State.PENDING
    mine = Message.objects.filter(
        pk=outcome.pk, claimed_by=process_id, state__in=(State.PENDING, State.SENT)
    )
    row = mine.select_related("run__message", "resent_from").first()
    if row is None:
        return
    is_said = delivery.state in (State.DELIVERED, State.UNKNOWN) and _is_speech(row)
    count_messages(mine, delivery.state)
    mine.update(
        state=delivery.state,
        message_id=delivery.message_id[:128],
        detail=delivery.error,
        in_history=is_said,
        settled_at=None if is_open else timezone.now(),
    )
    if is_said and row.resent_from is not None:
        Message.objects.filter(resent=row.pk).update(in_history=False)  # it was said once
        asked = Message.objects.filter(runs=row.run, state=State.FAILED)
        if row.run is not None:
            count_messages(asked, State.ANSWERED)
            asked.update(state=State.ANSWERED, in_history=True)


def _is_speech(row: Message) -> bool:
    """Whether a message is part of the conversation: neither a copy of an apology, nor of what was
    said of a command."""
    if row.resent_from is None:
        return True
    run = row.run
    if run is None or row.resent_from.tool_call_id:
        return True
    is_order = run.message is not None and run.message.reason == Reason.COMMAND
    is_apology = row.text in {
        build("", language)
        for build in (build_apology, build_refusal_apology)
        for language, _name in settings.LANGUAGES
    }
    return run.state == Run.State.FINISHED and not (is_order or is_apology)
