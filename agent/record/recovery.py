"""Taking up what other processes left behind."""

import logging
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce, Now
from django.utils import timezone
from django.utils.translation import gettext_noop

from agent.domain.approval_replies import ApprovalReply, parse_approval_reply
from agent.domain.claims import FIRST_CLAIM
from agent.domain.types import DEFAULT_ACCOUNT, AccountSettings, ChatAddress, IncomingMessage
from agent.models import UNSETTLED, ChatSession, Message, Run, ServerProcess, ToolCall
from agent.models.process import NEXT_CLAIM
from agent.record import approvals, deferred_calls
from agent.record.subagent_runs import SERVER_STOPPED, RunBreakOff, break_off_runs

logger = logging.getLogger(__name__)

#: A process not seen for this long is taken for dead, in seconds.
LEASE_SECONDS = 30
#: Messages taken up in one go; as many as may wait in one process.
TAKE_LIMIT = 20_000

State = Message.State
#: Reasons for which a chat may be told that there is no answer.
NOTIFYING = (
    Message.Reason.PERSON_LIMIT,
    Message.Reason.CHAT_LIMIT,
    Message.Reason.TOKEN_LIMIT,
    Message.Reason.LOOP,
)


STOPPED = gettext_noop("the server stopped before the client answered")
MISFILED = gettext_noop("the message stands in the record of another chat; nothing was sent")


@dataclass(frozen=True, slots=True)
class PendingMessage:
    """A message that still waits for its answer. ``claim_number`` is that of the claim of whoever
    has it now."""

    pk: int
    session_pk: int
    message: IncomingMessage
    is_later_result: bool = False
    """Whether it stands for the outcome of an earlier call."""
    claim_number: int = FIRST_CLAIM
    notice: str = ""
    """Of a message that no model is asked for: what its chat is told
    (:mod:`agent.domain.notices`)."""
    approval_reply: ApprovalReply | None = None
    """What it decides over a waiting call, where it is written like such a decision."""
    account: AccountSettings = DEFAULT_ACCOUNT
    """What the operator decided of its account, as the commit saw it; as of the run, once that
    has begun."""


@dataclass(frozen=True, slots=True)
class ProcessHeartbeat:
    """A sign of life. ``alone``: no other process can be serving from this database."""

    process_id: str
    alone: bool
    is_first: bool = False


def record_heartbeats(sightings: Sequence[ProcessHeartbeat]) -> list[bool]:
    """Renew the lease of each process, and settle what dead ones had in their hands.

    True for a process that others had taken for dead: what it had in hand is settled like
    that of any dead one. All leases are counted by the clock of the database. A process whose
    own lease has run out does not judge others until it has renewed it: where the database was
    away, nobody could.
    """
    return [_appear(sighting) for sighting in sightings]


def _appear(sighting: ProcessHeartbeat) -> bool:
    processes, expired = (
        ServerProcess.objects.all(),
        Q(last_seen_at__lt=Now() - timedelta(seconds=LEASE_SECONDS)),
    )
    own = processes.filter(pk=sighting.process_id)
    was_away = own.filter(expired).exists()
    known = own.update(last_seen_at=Now())
    others = processes.exclude(pk=sighting.process_id)
    if not was_away:
        (others if sighting.alone else others.filter(expired)).delete()
    was_dead = not known and not sighting.is_first
    living = set(processes.values_list("pk", flat=True))
    _settle_orphans(living | {sighting.process_id} if sighting.is_first else living)
    if not known:
        host, pid = socket.gethostname()[:200], os.getpid()
        processes.create(pk=sighting.process_id, host=host, pid=pid, last_seen_at=Now())
    approvals.expire_approvals()
    return was_dead


def _settle_orphans(living: set[str]) -> None:
    """What was on the wire when its process died was heard or not: nobody can know, so it is not
    sent again."""
    orphaned = ~Q(claimed_by__in=living) & ~Q(claimed_by="")
    runs = Run.objects.filter(orphaned, state=Run.State.RUNNING)
    break_off_runs(
        [
            RunBreakOff(pk, SERVER_STOPPED)
            for pk in runs.exclude(parent=None).values_list("pk", flat=True)[:TAKE_LIMIT]
        ]
    )
    _interrupt(list(runs.values_list("pk", flat=True)[:TAKE_LIMIT]))
    _settle_outgoing(Message.objects.filter(orphaned, direction=Message.Direction.OUT))
    Message.objects.filter(UNSETTLED, orphaned).update(claimed_by="", claim_number=NEXT_CLAIM)
    abandoned = ToolCall.objects.filter(orphaned, state=ToolCall.State.PENDING)
    deferred_calls.give_up_calls(list(abandoned.select_related("run__message")[:TAKE_LIMIT]))


def _settle_outgoing(messages: "QuerySet[Message]") -> None:
    """Messages nobody waits for any more. An answer that is still to be sent stays so: it is still
    wanted."""
    now = timezone.now()
    messages.filter(state=State.SENT).update(
        state=State.UNKNOWN, detail=STOPPED, in_history=True, settled_at=now
    )
    # What a tool wanted to say belongs to a moment that is over.
    messages.filter(state=State.PENDING).exclude(tool_call=None).update(
        state=State.FAILED, detail=gettext_noop("the account is not connected"), settled_at=now
    )


def _interrupt(run_pks: list[int]) -> None:
    """End every claim on runs that can be taken up again: whoever still works on them can write no
    more.

    The runs come first: that waits for what is just being written under a claim, so that what
    follows sees it.
    """
    if run_pks:
        going_on = Run.objects.filter(pk__in=run_pks, state=Run.State.RUNNING)
        going_on.update(state=Run.State.INTERRUPTED, claim_number=NEXT_CLAIM)
        ToolCall.objects.filter(run__in=run_pks, state=ToolCall.State.RUNNING).update(
            state=ToolCall.State.UNKNOWN
        )


@dataclass(frozen=True, slots=True)
class ClaimMessages:
    """The wish to take up what waits in the chats of ``account`` and is in nobody's hands."""

    account: str
    process_id: str


def claim_messages(wishes: Sequence[ClaimMessages]) -> list[list[PendingMessage]]:
    """Take waiting messages over, oldest first. Two processes never get the same one."""
    return [_claim(wish) for wish in wishes]


def _claim(wish: ClaimMessages) -> list[PendingMessage]:
    living = {wish.process_id, *ServerProcess.objects.values_list("pk", flat=True)}
    orphaned = ~Q(claimed_by__in=living)
    waiting = Message.objects.filter(UNSETTLED, orphaned, session__account=wish.account)
    rows = waiting.select_related("session").order_by("pk")[:TAKE_LIMIT]
    return [left for row in rows if (left := _taken(row, wish.process_id))]


def _taken(row: Message, process_id: str) -> PendingMessage | None:
    """The message of ``row`` in the hands of ``process_id``; None where somebody was faster, or
    where it must not be answered."""
    number = (row.claim_number or 0) + 1
    mine = Message.objects.filter(
        UNSETTLED, pk=row.pk, claimed_by=row.claimed_by, claim_number=row.claim_number
    )
    message = _as_incoming(row, row.session)
    if row.place and row.place != message.chat.place:
        logger.critical(
            "Message %s of %s stands in the record of %s", row.pk, row.place, message.chat.place
        )
        mine.update(state=State.FAILED, detail=MISFILED, claimed_by="", settled_at=timezone.now())
    elif mine.update(claimed_by=process_id, claim_number=number):
        is_later_result = row.reason == Message.Reason.LATER_RESULT
        return PendingMessage(
            row.pk,
            row.session_id,
            message,
            is_later_result,
            number,
            build_notice(row),
            None if is_later_result else parse_approval_reply(message.text),
        )
    return None


def build_notice(row: Message) -> str:
    """What is told because of the message instead of an answer; "" where one is to be made."""
    return (
        row.detail
        if row.reason in NOTIFYING
        else row.text
        if row.reason == Message.Reason.OWNER_NOTE
        else ""
    )


def find_held_messages(process_ids: Sequence[str]) -> list[dict[int, int]]:
    """For each process the messages that it has to answer, with the numbers of the claims on
    them."""
    return [
        dict(
            Message.objects.filter(UNSETTLED, claimed_by=process_id)
            .order_by("pk")
            .values_list("pk", Coalesce("claim_number", 0))[:TAKE_LIMIT]
        )
        for process_id in process_ids
    ]


def _as_incoming(row: Message, session: ChatSession) -> IncomingMessage:
    return IncomingMessage(
        chat=ChatAddress(
            session.account,
            "group" if session.kind == ChatSession.Kind.GROUP else "private",
            session.peer_id,
            session.platform,
        ),
        sender_id=row.sender_id,
        sender_name=row.sender_name,
        text=row.text,
        media_text=row.media_text,
        segments=row.segments,
        sender_role=row.sender_role,
        message_id=row.message_id,
        temp_group_id=row.temp_group_id,
        chat_title=session.title,
        happened_at=row.happened_at,
    )


@dataclass(frozen=True, slots=True)
class HeldMessage:
    """A message in somebody's hands, under a claim of that number."""

    message_pk: int
    claim_number: int


def release_messages(given_back: Sequence[HeldMessage]) -> list[bool]:
    """Give messages back to the inbox, unfinished: whoever takes them up goes on where the record
    ends.

    False for one that is settled, or in other hands: nothing was changed.
    """
    return [_release(one) for one in given_back]


def reclaim_messages(failed: Sequence[tuple[HeldMessage, str]]) -> list[PendingMessage | None]:
    """For each (message, process): the message given back and in the same hands again, under a new
    claim.

    None for one that is settled, or in other hands.
    """
    return [_take_again(one, process_id) for one, process_id in failed]


def _take_again(one: HeldMessage, process_id: str) -> PendingMessage | None:
    return (
        _taken(Message.objects.select_related("session").get(pk=one.message_pk), process_id)
        if _release(one)
        else None
    )


def _release(one: HeldMessage) -> bool:
    message = Message.objects.filter(UNSETTLED, pk=one.message_pk, claim_number=one.claim_number)
    if not message.update(state=State.WAITING, claimed_by="", claim_number=NEXT_CLAIM):
        return False
    runs = list(
        Run.objects.filter(message=one.message_pk, state=Run.State.RUNNING).values_list(
            "pk", "parent_id"
        )
    )
    break_off_runs([RunBreakOff(pk, SERVER_STOPPED) for pk, parent in runs if parent])
    own = [pk for pk, parent in runs if not parent]
    _interrupt(own)
    _settle_outgoing(Message.objects.filter(run__in=own, direction=Message.Direction.OUT))
    return True


@dataclass(frozen=True, slots=True)
class GivenUpMessage:
    """A message in somebody's hands that cannot be brought to its end, and why."""

    message_pk: int
    claim_number: int
    error: str


def give_up_messages(given_up: Sequence[GivenUpMessage]) -> list[None]:
    """End messages whose runs come to no end of themselves: visible, and in nobody's way."""
    now = timezone.now()
    for one in given_up:
        if _release(HeldMessage(one.message_pk, one.claim_number)):
            Message.objects.filter(pk=one.message_pk).update(
                state=State.FAILED, detail=one.error, settled_at=now
            )
            Run.objects.filter(
                message=one.message_pk, state=Run.State.INTERRUPTED, parent=None
            ).update(state=Run.State.FAILED, error=one.error, finished_at=now)
    return [None] * len(given_up)


def touch_processes(process_ids: Sequence[str]) -> list[None]:
    """A write that changes nothing but the time: whether the database takes one."""
    ServerProcess.objects.filter(pk__in=process_ids).update(last_seen_at=Now())
    return [None] * len(process_ids)


def remove_processes(process_ids: Sequence[str]) -> list[None]:
    """A process that ends cleanly keeps nothing."""
    ServerProcess.objects.filter(pk__in=process_ids).delete()
    return [None] * len(process_ids)


def is_next_in_session(candidates: Sequence[tuple[int, int]]) -> list[bool]:
    """For each (message, session): whether no earlier message of the session is still being worked
    on."""
    return [
        not Message.objects.filter(UNSETTLED, session_id=session_pk, pk__lt=message_pk).exists()
        for message_pk, session_pk in candidates
    ]
