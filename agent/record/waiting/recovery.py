"""Claiming the messages that other processes left behind."""

import logging
import os
import socket
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce, Now
from django.utils import timezone
from django.utils.translation import gettext_noop

from agent.domain.commands import Command, parse_command
from agent.domain.event_rules import FiredRule, read_fired_rule
from agent.domain.manners import ChatManners, environment_manners
from agent.domain.persona import PersonaSettings, environment_persona
from agent.domain.reminders import FiredReminder, read_fired
from agent.domain.requests import OwnerReply
from agent.domain.states import BY_RULES, FIRST_CLAIM, UNSAID
from agent.domain.types import (
    DEFAULT_ACCOUNT,
    AccountSettings,
    IncomingMessage,
    Mention,
)
from agent.llm.requests.messages import SpokenMessage
from agent.models import UNSETTLED, ChatSession, Message, Run, ServerProcess, ToolCall
from agent.models.message import BY_HAND
from agent.models.process import NEXT_CLAIM
from agent.record.chats.chat_record import find_address
from agent.record.ground import statements
from agent.record.requests.telling import read_request_reply
from agent.record.runs import deferred_calls
from agent.record.runs.merged import HeldMessage
from agent.record.runs.subagent_runs import SERVER_STOPPED, break_off_run
from agent.record.settings.manners import MannersTable, load_manners_table
from agent.record.sums.activity import count_failed_calls, count_messages, count_runs
from agent.record.waiting import approvals
from agent.record.waiting.pauses import is_paused
from agent.record.waiting.stops import settle_outgoing, stop_answer
from tools.time_limits import TIME_LIMITS

logger = logging.getLogger(__name__)

#: A process not seen for this long is taken for dead, in seconds.
LEASE_SECONDS = TIME_LIMITS.lease
#: Rows of a process looked at, and of the dead settled, at a time.
TAKE_LIMIT = 20_000
#: Messages claimed in one transaction, at most: the signs of life of other processes wait for it.
CLAIMS_AT_ONCE = 50

State = Message.State
#: Reasons for which a chat may get a notice instead of an answer.
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
    """A message that still waits for its answer. ``claim_number`` is that of the current claim on
    it."""

    pk: int
    session_pk: int
    message: IncomingMessage
    is_later_result: bool = False
    """Whether nobody said it now: it stands for the outcome of an earlier call, for a
    reminder, or for an event."""
    reminder: FiredReminder | None = None
    rule: FiredRule | None = None
    """What is done about the event that it stands for, or the keyword that it says."""
    claim_number: int = FIRST_CLAIM
    notice: str = ""
    """For a message that gets no model call: the notice for its chat
    (:mod:`agent.domain.notices`)."""
    approval_reply: OwnerReply | None = None
    """What it decides over a waiting call, or over requests, where it is written like such a
    decision."""
    command: Command | None = None
    """What it orders, where it is a command."""
    was_cut_off: bool = False
    """Whether a process that worked on it was killed, and could not put down what it was doing."""
    has_begun: bool = False
    """Whether a run of it was left by an earlier process."""
    earlier: "tuple[PendingMessage, ...]" = ()
    """Those that are merged into it on record, where it is taken up from there."""
    merged: tuple[SpokenMessage, ...] = ()
    """Earlier messages of the same person that are answered together with it, oldest first, with
    what was read in their media; complete once its run has begun."""
    manners: ChatManners = field(default_factory=environment_manners)
    """Those of its chat, as the commit saw them; as of the run, once that has begun."""
    persona: PersonaSettings = field(default_factory=environment_persona)
    account: AccountSettings = DEFAULT_ACCOUNT
    """What the operator decided of its account, as the commit saw it; as of the run, once that
    has begun."""


def record_heartbeat(process_id: str, alone: bool, is_first: bool = False) -> bool:
    """Renew the lease of a process, and settle the work that dead ones had claimed. ``alone``: no
    other process can be serving from this database.

    True for a process that others had taken for dead: its claimed work is settled like that of any
    dead one. All leases are counted by the clock of the database. A process whose own lease has run
    out does not judge others until it has renewed it: while the database was away, no process could
    renew its lease.
    """
    processes = ServerProcess.objects.all()
    expired = Q(last_seen_at__lt=Now() - timedelta(seconds=LEASE_SECONDS))
    own = processes.filter(pk=process_id)
    was_away = own.filter(expired).exists()
    known = own.update(last_seen_at=Now())
    others = processes.exclude(pk=process_id)
    if not was_away:
        (others if alone else others.filter(expired)).delete()
    was_dead = not known and not is_first
    living = set(processes.values_list("pk", flat=True))
    _settle_orphans(living | {process_id} if is_first else living)
    if not known:
        host, pid = socket.gethostname()[:200], os.getpid()
        processes.create(pk=process_id, host=host, pid=pid, last_seen_at=Now())
    approvals.expire_approvals()
    return was_dead


def _settle_orphans(living: set[str]) -> None:
    """A message on the wire when its process died may have arrived or not, so it is not sent
    again."""
    if living.issuperset(owner for (owner,) in statements.find_claimants.rows()):
        return  # as nearly always: what follows takes ten statements
    orphaned = ~Q(claimed_by__in=living) & ~Q(claimed_by="")
    runs = Run.objects.filter(orphaned, state=Run.State.RUNNING)
    given_up = runs.exclude(parent=None, trial_of=None).values_list("pk", flat=True)
    for pk in given_up[:TAKE_LIMIT]:
        break_off_run(pk, SERVER_STOPPED)
    _interrupt(list(runs.values_list("pk", flat=True)[:TAKE_LIMIT]))
    _settle_outgoing(Message.objects.filter(orphaned, direction=Message.Direction.OUT))
    Message.objects.filter(UNSETTLED, orphaned).update(claimed_by="", claim_number=NEXT_CLAIM)
    abandoned = ToolCall.objects.filter(orphaned, state=ToolCall.State.PENDING)
    deferred_calls.give_up_calls(list(abandoned.select_related("run__message")[:TAKE_LIMIT]))


def _settle_outgoing(messages: "QuerySet[Message]") -> None:
    """Settle the messages of dead processes. An unsent answer stays pending: it is still wanted. A
    message that a tool wanted to send is out of date by now."""
    late = messages.filter(state=State.PENDING).exclude(tool_call=None)
    settle_outgoing(messages, late, STOPPED, gettext_noop("the account is not connected"))


def _interrupt(run_pks: list[int]) -> None:
    """End every claim on runs that can be taken up again: a process that still works on them can
    write no more.

    The runs come first: that waits for what is just being written under a claim, so that what
    follows sees it.
    """
    if run_pks:
        going_on = Run.objects.filter(pk__in=run_pks, state=Run.State.RUNNING)
        going_on.update(state=Run.State.INTERRUPTED, claim_number=NEXT_CLAIM)
        begun = ToolCall.objects.filter(run__in=run_pks, state=ToolCall.State.RUNNING)
        count_failed_calls(begun)
        begun.update(state=ToolCall.State.UNKNOWN)


def claim_messages(
    account: str,
    process_id: str,
    read_manners: Callable[[], MannersTable] = load_manners_table,
) -> list[PendingMessage]:
    """Take over the oldest waiting messages of ``account`` that no process has claimed; none if
    none is left. Two processes never get the same one.

    What a dead process has claimed is settled first, with its runs: a process that was taken for
    dead may still be working on it.
    """
    if not statements.find_claimable.rows(account=account, process=process_id):
        return []
    waiting = Message.objects.filter(UNSETTLED, session__account=account)
    waiting = waiting.exclude(is_paused(timezone.now(), "session__"))
    living = {process_id, *ServerProcess.objects.values_list("pk", flat=True)}
    if waiting.exclude(claimed_by="").exclude(claimed_by__in=living).exists():
        _settle_orphans(living)
    while rows := _lock(waiting.filter(claimed_by=""))[:CLAIMS_AT_ONCE]:
        if claimed := _claim(rows, process_id, read_manners()):
            return claimed
    return []


def _lock(waiting: "QuerySet[Message]") -> "QuerySet[Message]":
    """What another process is just claiming is waited for, and left to it."""
    waiting = waiting.select_for_update(of=("self",), no_key=True)
    return waiting.select_related("session").order_by("pk")


def _claim(rows: Iterable[Message], process_id: str, manners: MannersTable) -> list[PendingMessage]:
    """The messages of ``rows``, which are locked, claimed by ``process_id``: those that are to be
    answered. With as many statements for fifty as for one, since a process may leave thousands."""
    own = {row.pk: row for row in rows if not _is_misfiled(row)}
    merged: defaultdict[int | None, list[Message]] = defaultdict(list)
    for one in Message.objects.filter(merged_into__in=own).order_by("pk"):
        merged[one.merged_into_id].append(one)
    Message.objects.filter(pk__in=own).update(claimed_by=process_id, claim_number=NEXT_CLAIM)
    for pk, row in list(own.items()):
        if any(one.recalled_at is not None for one in (row, *merged[pk])):
            stop_answer(pk, Message.Reason.RECALLED)
            del own[pk]  # what is left of it waits for the next one who claims
    begun = set(Run.objects.filter(message__in=own).values_list("message_id", flat=True))
    return [_to_pending(row, merged[pk], manners, pk in begun) for pk, row in own.items()]


def _is_misfiled(row: Message) -> bool:
    """Whether ``row`` stands in the record of another chat, where it fails."""
    place = find_address(row.session).place
    if not row.place or row.place == place:
        return False
    logger.critical("Message %s of %s stands in the record of %s", row.pk, row.place, place)
    message = Message.objects.filter(pk=row.pk)
    count_messages(message, State.FAILED)
    message.update(state=State.FAILED, detail=MISFILED, claimed_by="", settled_at=timezone.now())
    return True


def _to_pending(
    row: Message, earlier: Sequence[Message], manners: MannersTable, has_begun: bool
) -> PendingMessage:
    message = to_incoming(row, row.session)
    heard = manners.find(message.chat)
    is_later_result = row.reason in UNSAID
    is_command = row.reason == Message.Reason.COMMAND
    return PendingMessage(
        row.pk,
        row.session_id,
        message,
        is_later_result=is_later_result,
        reminder=read_fired(row.raw) if row.reason == Message.Reason.REMINDER else None,
        rule=read_fired_rule(row.raw) if row.reason in BY_RULES else None,
        claim_number=(row.claim_number or 0) + 1,
        notice=build_notice(row),
        approval_reply=None if is_later_result else _read_reply(message, row.session_id),
        command=parse_command(message.text, heard.command_prefix, on_members=True)
        if is_command
        else None,
        manners=heard,
        was_cut_off=row.state == State.RUNNING,
        has_begun=has_begun,
        earlier=tuple(
            PendingMessage(one.pk, row.session_id, to_incoming(one, row.session), manners=heard)
            for one in earlier
        ),
    )


def _read_reply(message: IncomingMessage, session_pk: int) -> OwnerReply | None:
    """Whether it is an owner's is judged once it is obeyed."""
    reply = approvals.read_approval_reply(message, session_pk)
    if reply is None and message.chat.kind == "private":
        return read_request_reply(message, session_pk)
    return reply


def build_notice(row: Message) -> str:
    """The notice that is sent instead of an answer; "" if the message is to be answered."""
    if row.reason in NOTIFYING:
        return row.detail
    return row.text if row.reason == Message.Reason.OWNER_NOTE else ""


def find_held_messages(process_id: str) -> dict[int, int]:
    """The messages that a process has to answer, with the numbers of the claims on them."""
    return dict(
        Message.objects.filter(UNSETTLED, claimed_by=process_id)
        .order_by("pk")
        .values_list("pk", Coalesce("claim_number", 0))[:TAKE_LIMIT]
    )


def to_incoming(row: Message, session: ChatSession) -> IncomingMessage:
    """The message of ``row`` as it came in."""
    return IncomingMessage(
        chat=find_address(session),
        sender_id=row.sender_id,
        sender_name=row.sender_name,
        text=row.text,
        media_text=row.media_text,
        context_text=row.context_text or "",
        segments=row.segments,
        sender_role=row.sender_role,
        message_id=row.message_id,
        temp_group_id=row.temp_group_id,
        chat_title=session.title,
        happened_at=row.happened_at,
        mentions=tuple(Mention(**one) for one in (row.header or {}).get("mentions", ())),
        quoted_id=row.quoted_id or "",
        mentions_bot=_mentions_bot(row, session.account),
        header=row.header,
    )


def _mentions_bot(row: Message, account: str) -> bool:
    """Of a command, the reason on record does not say it."""
    if row.reason != Message.Reason.COMMAND:
        return row.reason == Message.Reason.MENTION
    mentions = (part["data"] for part in row.segments if part["type"] == "at")
    return any(str(data.get("qq")) == account for data in mentions)


def release_messages(held: Sequence[HeldMessage]) -> list[bool]:
    """Give messages back to the inbox, unfinished: the next process to claim one continues where
    the record ends. All at once, since a process that ends has hundreds in hand and seconds left.

    False for one that is settled, or claimed by another process: nothing was changed.
    """
    unsettled = Message.objects.filter(UNSETTLED, pk__in=[one.message_pk for one in held])
    claims = dict(unsettled.select_for_update().order_by("pk").values_list("pk", "claim_number"))
    is_held = [claims.get(one.message_pk) == one.claim_number for one in held]
    own = [one.message_pk for one, is_own in zip(held, is_held, strict=True) if is_own]
    if own:
        _release(own)
    return is_held


def _release(pks: Sequence[int]) -> None:
    given_back = {"state": State.WAITING, "claimed_by": "", "claim_number": NEXT_CLAIM}
    Message.objects.filter(pk__in=pks).update(**given_back)
    runs = Run.objects.filter(message__in=pks, state=Run.State.RUNNING)
    own = []
    for pk, parent in runs.values_list("pk", "parent_id"):
        if parent:
            break_off_run(pk, SERVER_STOPPED)
        else:
            own.append(pk)
    if own:
        _interrupt(own)
        out = Message.objects.filter(run__in=own, direction=Message.Direction.OUT)
        _settle_outgoing(out.exclude(BY_HAND))


def reclaim_messages(held: HeldMessage, process_id: str) -> PendingMessage | None:
    """Release a message, and claim it for the same process again, under a new number.

    None for one that is settled, or claimed by another process.
    """
    if not all(release_messages([held])):
        return None
    rows = _lock(Message.objects.filter(UNSETTLED, pk=held.message_pk))
    return next(iter(_claim(rows, process_id, load_manners_table())), None)


def give_up_messages(held: HeldMessage, error: str) -> None:
    """Fail a message whose run cannot end, with the given error: it is visible, and blocks
    nothing."""
    if all(release_messages([held])):
        now = timezone.now()
        message = Message.objects.filter(pk=held.message_pk)
        count_messages(message, State.FAILED)
        message.update(state=State.FAILED, detail=error, settled_at=now)
        runs = Run.objects.filter(message=held.message_pk, state=Run.State.INTERRUPTED, parent=None)
        count_runs(runs, failed=True)
        runs.update(state=Run.State.FAILED, error=error, finished_at=now)


def touch_processes(process_id: str) -> None:
    """A write that changes nothing but the time: whether the database takes one."""
    ServerProcess.objects.filter(pk=process_id).update(last_seen_at=Now())


def remove_processes(process_id: str) -> None:
    """A process that ends cleanly keeps nothing."""
    ServerProcess.objects.filter(pk=process_id).delete()


def is_next_in_session(message_pk: int, session_pk: int) -> bool:
    """Whether, for (a message, its session), no earlier message of the session is still being
    worked on. Nobody waits for an event that gathers others."""
    return not statements.find_earlier.rows(message=message_pk, session=session_pk)
