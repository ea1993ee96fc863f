"""Reminders that are due: each becomes a message of its chat, once, as work of the inbox, and is
settled by what became of that.

A reminder fires in a process that its account is connected to. What cannot be said for now, for the
account is away or muted or the hours are quiet, waits as it is, so that of many instances that were
missed one message comes.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from django.db.models import F, Min
from django.utils import timezone
from django.utils.translation import gettext_noop

from agent.domain.answer_triggers import TriggerDecision
from agent.domain.manners import ChatManners
from agent.domain.reminders import LATE_AFTER, FiredReminder, find_silence, read_fired
from agent.domain.states import AWAY, NOT_WRITTEN
from agent.models import UNSETTLED, Message, Reminder
from agent.record.chats.chat_record import find_address
from agent.record.reminders.book import load_own_calendar
from agent.record.runs.runs import RunStarter
from agent.record.sums.quotas import AnswerCandidate, AnswerQuotas
from agent.record.waiting.hand_messages import find_temp_group
from agent.record.waiting.pauses import is_paused
from agent.record.waiting.recovery import to_incoming
from agent.reminders.repeats import count_missed, next_due
from agent.reminders.workdays import WorkCalendar
from tools.local_time import find_zone

State, Reason = Reminder.State, Message.Reason
#: Reminders that become messages in one transaction.
FIRED_AT_ONCE = 200
#: Without telling other processes: theirs are those of other accounts.
rows = Reminder._base_manager
DROPPED = gettext_noop("dropped: it could not be said in time")
SAID = gettext_noop("said")
NOT_SAID = gettext_noop("nothing was said")
ENDS: dict[str | None, tuple[str, str]] = {
    Message.State.ANSWERED: (State.DONE, SAID),
    Message.State.FAILED: (State.FAILED, NOT_SAID),
    None: (State.MISSED, NOT_SAID),
}
"""How a reminder ends, and its outcome without other words, by how its message does."""
UNWRITTEN = frozenset({AWAY, *NOT_WRITTEN.values()})
"""Of a message that was certainly not written: it is said once the account can speak."""


@dataclass(frozen=True, slots=True)
class DueReminders:
    """What a look at the reminders came to: the ``accounts`` that have something to say now, when
    to look again (None: not before something changes), and whether any waits, or is being said."""

    accounts: frozenset[str] = frozenset()
    next_at: datetime | None = None
    is_waiting: bool = True
    is_under_way: bool = False


class Firing:
    """Fires for one server process. Used in the database thread only."""

    def __init__(self, starter: RunStarter, quotas: AnswerQuotas) -> None:
        self._starter = starter
        self._quotas = quotas

    def fire_due(self, accounts: Collection[str], afresh: bool = False) -> DueReminders:
        """Turn what is due in the chats of ``accounts`` into messages; ``afresh``: also what was
        put off until quiet hours end."""
        settle_fired()
        now, waiting = timezone.now(), rows.filter(next_at__isnull=False)
        going = rows.filter(fired__isnull=False)
        if not waiting.exists():
            return DueReminders(is_waiting=False, is_under_way=going.exists())
        own = waiting.filter(session__account__in=accounts)
        if afresh:
            own.filter(next_at__gt=now, due_at__lte=now).update(next_at=F("due_at"))
        own = own.exclude(is_paused(now, "session__"))
        due = own.filter(next_at__lte=now).select_related("session").order_by("next_at", "pk")
        taken = list(due.select_for_update(of=("self",), no_key=True)[:FIRED_AT_ONCE])
        fired = _Batch(now, self._starter, self._quotas).fire(taken) if taken else ()
        soonest = now if len(taken) == FIRED_AT_ONCE else own.aggregate(at=Min("next_at"))["at"]
        return DueReminders(frozenset(fired), soonest, is_under_way=bool(fired) or going.exists())


class _Batch:
    """Reminders that are due at one moment."""

    def __init__(self, now: datetime, starter: RunStarter, quotas: AnswerQuotas) -> None:
        self._now, self._quotas = now, quotas
        self._manners, self._live = starter.read_manners(), starter.live
        self._messages: list[tuple[Reminder, Message]] = []

    @cached_property
    def _calendar(self) -> WorkCalendar:
        return load_own_calendar()

    def fire(self, due: Sequence[Reminder]) -> set[str]:
        """The accounts of those that became messages."""
        for row in due:
            self._judge(row)
        Message.objects.bulk_create([message for _, message in self._messages])
        for row, message in self._messages:
            row.fired = row.last_message = message.pk
        fields = ("state", "outcome", "due_at", "next_at", "is_extra", "fired", "last_message")
        rows.bulk_update(due, fields)
        return {row.session.account for row, _ in self._messages}

    def _judge(self, row: Reminder) -> None:
        """Have ``row`` said, put off, or missed."""
        manners = self._manners.find(find_address(row.session))
        due_at = row.next_at if row.is_extra and row.next_at else row.due_at
        is_late, is_quiet = self._now - due_at > LATE_AFTER, manners.is_quiet(self._now)
        is_taken_over = row.session.is_taken_over
        if silence := find_silence(row.set_by, manners, self._now, is_taken_over=is_taken_over):
            self._miss(row, manners, silence)
        elif row.late == Reminder.Late.DROP and (is_late or is_quiet):
            self._miss(row, manners, DROPPED)
        elif is_quiet:
            row.next_at = manners.find_end_of_quiet(self._now)
        else:
            self._say(row, manners, due_at)

    def _miss(self, row: Reminder, manners: ChatManners, why: str) -> None:
        self._advance(row, manners)
        row.outcome = why
        if row.next_at is None and row.state == State.WAITING:
            row.state = State.MISSED

    def _advance(self, row: Reminder, manners: ChatManners) -> int:
        """Move ``row`` on to what comes after this moment; how many instants are over."""
        count, row.next_at = 1, None
        if row.is_extra:
            row.is_extra = False
            row.next_at = row.due_at if row.state == State.WAITING else None
        elif row.repeat:
            zone, first = find_zone(manners.zone), row.starts_at or row.due_at
            rule = row.repeat, first, row.due_at
            count += count_missed(*rule, self._now, zone, self._calendar)
            row.next_at = next_due(row.repeat, first, self._now, zone, self._calendar)
            row.due_at = row.next_at or row.due_at
        return count

    def _say(self, row: Reminder, manners: ChatManners, due_at: datetime) -> None:
        is_extra, count = row.is_extra, self._advance(row, manners)
        fired = FiredReminder(
            pk=row.pk,
            due=due_at.isoformat(),
            text=row.text,
            kind=row.kind,
            count=count,
            mention=tuple(row.mention.split()),
            language=row.language,
            is_last=row.next_at is None and not is_extra,
        )
        message = _to_message(row, fired, self._now)
        if fired.is_task and not self._may_ask(row, message, manners):
            message.raw = replace(fired, is_alone=True).to_raw()
        row.next_at = None
        self._messages.append((row, message))

    def _may_ask(self, row: Reminder, message: Message, manners: ChatManners) -> bool:
        """Whether whoever set it may have the model asked now, which counts as an answer."""
        account = self._live.find_account(row.session.account)
        if row.set_by in account.owners:
            return True
        left_out = manners.allowed_people and row.set_by not in manners.allowed_people
        if left_out or row.set_by in manners.denied_people:
            return False
        decision = TriggerDecision(Message.State.WAITING, Reason.REMINDER)
        heard = to_incoming(message, row.session)
        candidate = AnswerCandidate(heard, decision, manners, self._now)
        return self._quotas.decide([candidate]) == [decision]


def _to_message(row: Reminder, fired: FiredReminder, now: datetime) -> Message:
    """What the inbox is given, for whoever set it, with the name and the rank that he has now."""
    said = Message.objects.filter(session=row.session_id, sender_id=row.set_by)
    known = said.order_by("-pk").values_list("sender_name", "sender_role").first() or ("", "")
    return Message(
        session_id=row.session_id,
        direction=Message.Direction.IN,
        state=Message.State.WAITING,
        reason=Reason.REMINDER,
        sender_id=row.set_by,
        sender_name=known[0],
        sender_role=known[1],
        temp_group_id=find_temp_group(row.session),
        text=f"[提醒 #{row.pk}] {row.text}",
        raw=fired.to_raw(),
        place=find_address(row.session).place,
        happened_at=now,
        created_at=now,
    )


def settle_fired() -> None:
    """Put down what came of reminders whose message has ended."""
    going = [row.fired for row in rows.filter(fired__isnull=False).only("fired") if row.fired]
    if not going:
        return
    open_ones = Message.objects.filter(UNSETTLED, pk__in=going).values("pk")
    ended = rows.filter(fired__in=going).exclude(fired__in=open_ones)
    taken = list(ended.select_for_update(no_key=True).order_by("pk"))
    messages = Message.objects.in_bulk([row.fired for row in taken])
    for row in taken:
        settle(row, messages.get(row.fired or 0))
    fields = ("state", "outcome", "due_at", "next_at", "is_extra", "fired")
    rows.bulk_update(taken, fields)


def settle(row: Reminder, message: Message | None) -> None:
    """What comes after ``message``, which has ended, or is not on record any more."""
    fired = read_fired(message.raw) if message else None
    row.fired = None
    if message and fired and row.is_open and _is_unwritten(message):
        row.due_at = fired.due_at if row.repeat else row.due_at
        row.next_at = row.due_at if row.state == State.WAITING else None
        return
    ended = (State.DONE, "") if message is None else ENDS.get(message.state, ENDS[None])
    state, row.outcome = ended[0], (message.detail if message else "") or ended[1]
    is_over = fired.is_last and row.due_at <= fired.due_at if fired else not row.repeat
    if row.state == State.WAITING and not is_over:
        row.next_at = row.due_at
    elif row.state == State.WAITING or (state == State.DONE and is_over):
        row.state = state


def _is_unwritten(message: Message) -> bool:
    """Whether nothing of it reached the client, which was not there or may not speak."""
    if message.state != Message.State.FAILED or message.detail not in UNWRITTEN:
        return False
    said = Message.objects.filter(run=message.run_id, direction=Message.Direction.OUT)
    return not said.exclude(state=Message.State.FAILED).exists()
