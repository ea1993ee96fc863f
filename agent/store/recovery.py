"""Taking up what other processes left behind."""

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_noop

from agent.models import UNSETTLED, ChatSession, Message, Run, ServerProcess, ToolCall
from agent.store import approvals, later
from agent.store.agent_runs import SERVER_STOPPED, BrokenOff, break_off
from agent.types import ChatAddress, IncomingMessage

#: A process not seen for this long is taken for dead, in seconds.
LEASE_SECONDS = 30
#: Messages taken up in one go; as many as may wait in one process.
TAKE_LIMIT = 20_000

State = Message.State


@dataclass(frozen=True, slots=True)
class Left:
    """A message that still waits for its answer."""

    pk: int
    session_pk: int
    message: IncomingMessage
    is_later_result: bool = False
    """Whether it stands for the outcome of an earlier call."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """A sign of life. ``alone``: no other process can be serving from this database."""

    process_id: str
    alone: bool


def appear(sightings: Sequence[Sighting]) -> list[None]:
    """Renew the lease of this process, and settle what dead ones had in their hands."""
    now = timezone.now()
    for sighting in sightings:
        ServerProcess.objects.update_or_create(
            pk=sighting.process_id,
            defaults={"last_seen_at": now},
            create_defaults={"last_seen_at": now, "host": socket.gethostname()[:200], "pid": os.getpid()},
        )
        others = ServerProcess.objects.exclude(pk=sighting.process_id)
        dead = others if sighting.alone else others.filter(last_seen_at__lt=now - timedelta(seconds=LEASE_SECONDS))
        dead.delete()
        _settle_orphans(_living(sighting.process_id))
        approvals.expire()
    return [None] * len(sightings)


def _living(own_id: str) -> set[str]:
    return {own_id, *ServerProcess.objects.values_list("pk", flat=True)}


def _settle_orphans(living: set[str]) -> None:
    """What was on the wire when its process died was heard or not: nobody can know, so it is not sent again."""
    now = timezone.now()
    orphaned = ~Q(claimed_by__in=living) & ~Q(claimed_by="")
    Message.objects.filter(orphaned, direction=Message.Direction.OUT, state=State.SENT).update(
        state=State.UNKNOWN, detail=gettext_noop("the server stopped before the client answered"), in_history=True, settled_at=now
    )
    # What a tool wanted to say belongs to a moment that is over; an answer is still wanted.
    Message.objects.filter(orphaned, direction=Message.Direction.OUT, state=State.PENDING).exclude(tool_call=None).update(
        state=State.FAILED, detail=gettext_noop("the account is not connected"), settled_at=now
    )
    runs = Run.objects.filter(orphaned, state=Run.State.RUNNING)
    break_off([BrokenOff(pk, SERVER_STOPPED) for pk in runs.exclude(parent=None).values_list("pk", flat=True)[:TAKE_LIMIT]])
    if pks := list(runs.values_list("pk", flat=True)[:TAKE_LIMIT]):
        ToolCall.objects.filter(run__in=pks, state=ToolCall.State.RUNNING).update(state=ToolCall.State.UNKNOWN)
        Run.objects.filter(pk__in=pks).update(state=Run.State.INTERRUPTED)
    abandoned = ToolCall.objects.filter(orphaned, state=ToolCall.State.PENDING)
    later.give_up(list(abandoned.select_related("run__message")[:TAKE_LIMIT]))


@dataclass(frozen=True, slots=True)
class Claim:
    """The wish to take up what waits in the chats of ``account`` and is in nobody's hands."""

    account: str
    process_id: str


def claim(claims: Sequence[Claim]) -> list[list[Left]]:
    """Take waiting messages over, oldest first. Two processes never get the same one."""
    return [_claim(one) for one in claims]


def _claim(claim: Claim) -> list[Left]:
    orphaned = ~Q(claimed_by__in=_living(claim.process_id))
    waiting = Message.objects.filter(UNSETTLED, orphaned, session__account=claim.account)
    taken = []
    for row in waiting.select_related("session").order_by("pk")[:TAKE_LIMIT]:
        mine = Message.objects.filter(UNSETTLED, orphaned, pk=row.pk).update(claimed_by=claim.process_id)
        if mine:
            is_later = row.reason == Message.Reason.LATER_RESULT
            taken.append(Left(row.pk, row.session_id, _as_incoming(row, row.session), is_later))
    return taken


def _as_incoming(row: Message, session: ChatSession) -> IncomingMessage:
    return IncomingMessage(
        chat=ChatAddress(
            session.account, "group" if session.kind == ChatSession.Kind.GROUP else "private", session.peer_id, session.platform
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


def release(message_pks: Sequence[int]) -> list[None]:
    """Give messages back to the inbox, unfinished: whoever starts next takes them up."""
    runs = Run.objects.filter(message__in=message_pks, state=Run.State.RUNNING)
    ToolCall.objects.filter(run__in=runs, state=ToolCall.State.RUNNING).update(state=ToolCall.State.UNKNOWN)
    runs.update(state=Run.State.INTERRUPTED)
    Message.objects.filter(UNSETTLED, pk__in=message_pks).update(state=State.WAITING, claimed_by="")
    return [None] * len(message_pks)


def disappear(process_ids: Sequence[str]) -> list[None]:
    """A process that ends cleanly keeps nothing."""
    ServerProcess.objects.filter(pk__in=process_ids).delete()
    return [None] * len(process_ids)


def is_next(candidates: Sequence[tuple[int, int]]) -> list[bool]:
    """For each (message, session): whether no earlier message of the session is still being worked on."""
    return [
        not Message.objects.filter(UNSETTLED, session_id=session_pk, pk__lt=message_pk).exists()
        for message_pk, session_pk in candidates
    ]
