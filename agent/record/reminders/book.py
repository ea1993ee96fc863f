"""What people and models may do with reminders: set, list, change and cancel them.

What is refused is refused with one sentence, in the language that is active.
"""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Q
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext

from agent.domain.answer_parts import may_be_person
from agent.domain.reminders import (
    EVERYBODY,
    LEAST_GAP,
    LEAST_GAP_OF_OWNERS,
    LEAST_WAIT,
    MOST_MENTIONED,
    MOST_OF_CHAT,
    MOST_OF_PERSON,
    MOST_RULE,
    MOST_TEXT,
    format_instant,
    pick_language,
)
from agent.domain.states import ReminderKind
from agent.domain.undo import CHANGED
from agent.models import ChatSession, Message, Reminder, ToolCall
from agent.models.reminder import OPEN_STATES
from agent.record.waiting.command_orders import load_last_words
from agent.record.waiting.stops import stop_answer
from agent.reminders.repeats import check_repeat, least_gap, next_due, say_repeat
from agent.reminders.unclear import Unclear, UnclearTime
from agent.reminders.when import When, read_when
from agent.reminders.workdays import WorkCalendar, load_calendar
from tools.local_time import find_zone
from tools.text.readable import escape_direction_chars, shorten_text

logger = logging.getLogger(__name__)
State = Reminder.State
#: Reminders of one list, and characters of the text of each.
LISTED, LISTED_CHARS = 50, 60


class ReminderRefused(Exception):  # noqa: N818 - the word says what happened
    """Nothing was changed; the text is one sentence that says why."""


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks where. ``zone`` is the name of the chat's; ``is_task``: it is asked by a task that
    was due itself."""

    session_pk: int
    person: str
    is_owner: bool = False
    zone: str = ""
    language: str = ""
    is_task: bool = False

    @property
    def reach(self) -> Q:
        """The reminders that he may list, change and cancel."""
        here = Q(session=self.session_pk)
        return here if self.is_owner else here & Q(set_by=self.person)


def asker_of_call(session_pk: int, call_pk: int, language: str, **fields: Any) -> Asker:
    """Who asks by a call of a model, which may answer a task that was due. ``language`` is the
    persona's own."""
    of_task = Q(run__message__reason=Message.Reason.REMINDER)
    is_task = ToolCall.objects.filter(of_task, pk=call_pk).exists()
    spoken = pick_language(load_last_words(session_pk), language)
    return Asker(session_pk, is_task=is_task, language=spoken, **fields)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a reminder is to be. ``repeat`` None: as the words of ``when`` say."""

    text: str
    when: When
    repeat: str | None = None
    kind: str = ReminderKind.TEXT
    mention: Sequence[str] = ()


def read_words(words: str, zone: str) -> When:
    """The time that ``words`` as a whole mean. Raises :class:`ReminderRefused`."""
    try:
        return read_when(words, timezone.now(), find_zone(zone), load_own_calendar())
    except UnclearTime as error:
        raise ReminderRefused(error.say()) from error


def load_own_calendar() -> WorkCalendar:
    """The operator's calendar of holidays, or the one that is shipped."""
    try:
        return load_calendar(settings.WORKDAYS_FILE)
    except (OSError, ValueError) as error:
        logger.error("%s is not used: %s", settings.WORKDAYS_FILE, error)
        return load_calendar()


def set_reminder(asker: Asker, wish: Wish) -> Reminder:
    """The reminder that is on record now. Raises :class:`ReminderRefused`."""
    session = ChatSession.objects.select_for_update().get(pk=asker.session_pk)
    row = Reminder(
        session=session,
        set_by=asker.person,
        text=wish.text.strip(),
        kind=wish.kind,
        mention="\n".join(dict.fromkeys(wish.mention)),
        language=asker.language,
    )
    _check_mentions(asker, wish, session)
    _set_time(row, wish.when, wish.repeat, asker.zone)
    check(row, asker)
    row.save()
    return row


def check(row: Reminder, asker: Asker) -> None:
    """Raise :class:`ReminderRefused` for what nobody may have, or ``asker`` may not."""
    if not row.text.strip():
        raise ReminderRefused(gettext("What is it to remind of? Write it behind the time."))
    if len(row.text) > MOST_TEXT or len(row.repeat) > MOST_RULE:
        text = gettext("That is too long: at most %(most)d characters.")
        raise ReminderRefused(text % {"most": MOST_TEXT})
    check_gap(row, is_owner=asker.is_owner, zone=asker.zone)
    if asker.is_owner:
        return
    soonest = timezone.now() + timedelta(seconds=LEAST_WAIT)
    if asker.is_task and row.kind == ReminderKind.TASK and row.due_at < soonest:
        text = gettext("A task sets no task that is due sooner than in %(minutes)d minutes.")
        raise ReminderRefused(text % {"minutes": LEAST_WAIT // 60})
    _check_count(row)


def check_gap(row: Reminder, *, is_owner: bool, zone: str) -> None:
    """Raise :class:`ReminderRefused` for a rule that comes too often."""
    if not row.repeat:
        return
    seconds = LEAST_GAP_OF_OWNERS if is_owner else LEAST_GAP[ReminderKind(row.kind)]
    if least_gap(row.repeat, row.due_at, find_zone(zone)) < timedelta(seconds=seconds):
        text = gettext("That is too often: at least %(seconds)d seconds between two.")
        raise ReminderRefused(text % {"seconds": seconds})


def _check_count(row: Reminder) -> None:
    rows = Reminder.objects.filter(state__in=OPEN_STATES).exclude(pk=row.pk)
    of_person = rows.filter(set_by=row.set_by, session__platform=row.session.platform)
    if row.set_by and of_person.count() >= MOST_OF_PERSON:
        text = gettext("You have %(most)d reminders already: cancel one first.")
        raise ReminderRefused(text % {"most": MOST_OF_PERSON})
    if rows.filter(session=row.session).count() >= MOST_OF_CHAT:
        text = gettext("This chat has %(most)d reminders already: cancel one first.")
        raise ReminderRefused(text % {"most": MOST_OF_CHAT})


def _check_mentions(asker: Asker, wish: Wish, session: ChatSession) -> None:
    people = [one for one in wish.mention if one != EVERYBODY]
    if len(people) > MOST_MENTIONED:
        text = gettext("At most %(most)d people can be mentioned.")
        raise ReminderRefused(text % {"most": MOST_MENTIONED})
    if EVERYBODY in wish.mention and not asker.is_owner:
        raise ReminderRefused(gettext("Only owners can have everybody mentioned."))
    for one in people:
        if not may_be_person(one, asker.person):
            raise ReminderRefused(gettext("“%(id)s” is not an id.") % {"id": one[:64]})


def _set_time(row: Reminder, when: When, repeat: str | None, zone: str) -> None:
    """Have ``row`` due as ``when`` says, or as the rule ``repeat`` that is given besides."""
    row.due_at, row.starts_at = when.due_at, None
    row.repeat = when.repeat
    if repeat is None:
        return
    try:
        row.repeat = check_repeat(repeat) if repeat.strip() else ""
        if row.repeat:
            # The instant is the first of the rule, where the rule has it.
            before = when.due_at - timedelta(seconds=1)
            rule = (row.repeat, when.due_at, before, find_zone(zone), load_own_calendar())
            if (due := next_due(*rule)) is None:
                raise UnclearTime(Unclear.NEVER, words=row.repeat)
            row.due_at = due
    except UnclearTime as error:
        raise ReminderRefused(error.say()) from error


def list_reminders(asker: Asker, *, everywhere: bool = False) -> list[Reminder]:
    """Those that wait or are paused, the next first; ``everywhere``: the asker's own of other chats
    too, behind those of this one."""
    rows = Reminder.objects.filter(state__in=OPEN_STATES).select_related("session")
    here = list(rows.filter(asker.reach).order_by("due_at", "pk")[:LISTED])
    if everywhere:
        account = ChatSession.objects.values_list("account", flat=True).get(pk=asker.session_pk)
        own = rows.filter(set_by=asker.person, session__account=account)
        here += own.exclude(session=asker.session_pk).order_by("due_at", "pk")[:LISTED]
    return here


def find_open(asker: Asker, number: int) -> Reminder:
    """The reminder with this number, locked. Raises :class:`ReminderRefused` where there is none
    within reach, or it is over."""
    rows = Reminder.objects.select_for_update()
    row: Reminder | None = rows.filter(asker.reach, pk=number).first()
    if row is None:
        text = gettext("There is no reminder #%(number)d here.")
        raise ReminderRefused(text % {"number": number})
    if not row.is_open:
        text = gettext("#%(number)d is over already: %(state)s.")
        raise ReminderRefused(text % {"number": number, "state": row.get_state_display()})
    return row


def change_reminder(
    asker: Asker, number: int, *, text: str = "", when: str = "", repeat: str | None = None
) -> Reminder:
    """The reminder as it is now; what is just being said stays as it was. Raises
    :class:`ReminderRefused`."""
    row = find_open(asker, number)
    row.text = text.strip() or row.text
    if when or repeat is not None:
        known = When(row.due_at, row.repeat)
        new = read_words(when, asker.zone) if when else known
        # Another hour of a repeat is no end of it.
        kept = None if new.repeat else row.repeat
        _set_time(row, new, kept if repeat is None else repeat, asker.zone)
    check(row, asker)
    row.save()
    return row


def cancel(row: Reminder) -> Reminder:
    """Cancel a reminder that is locked, also one that is on its way; it is done where that was said
    already."""
    row.state = State.CANCELLED
    if row.fired:
        stop_answer(row.fired, Message.Reason.STOPPED)
        said = Message.objects.filter(pk=row.fired, state=Message.State.ANSWERED)
        row.state = State.DONE if said.exists() and not row.repeat else State.CANCELLED
    row.save(update_fields=["state"])
    return row


def note_down(row: Reminder) -> dict[str, str]:
    """What calls change of a reminder, in JSON."""
    instants = {"starts_at": row.starts_at or row.due_at, "due_at": row.due_at}
    times = {name: at.astimezone(UTC).isoformat() for name, at in instants.items()}
    return {"text": row.text, "repeat": row.repeat, "state": row.state, **times}


def keep_change(row: Reminder, before: dict[str, str]) -> dict[str, Any] | None:
    """What :func:`take_back` needs of a row that was as ``before``; None for one that was just
    being said. The person is named, so that it goes where the person is erased."""
    after = note_down(row)
    names = [name for name, value in after.items() if value != before[name]]
    parts = {"before": before, "after": after}
    kept = {part: {name: values[name] for name in names} for part, values in parts.items()}
    return None if row.fired else {"reminder": row.pk, "set_by": row.set_by, **kept}


def take_back(session_pk: int, call_pk: int, owners: Collection[str]) -> None:
    """Have a reminder be as it was before the call changed or cancelled it. What fell due since is
    told as late, or dropped, as the row says. Raises :class:`ReminderRefused`."""
    call = ToolCall.objects.select_related("run").get(pk=call_pk)
    kept = call.structured_content or {}
    rows = Reminder.objects.select_for_update().filter(session=session_pk)
    row: Reminder | None = rows.filter(pk=kept.get("reminder")).first()
    if row is None:
        raise ReminderRefused(gettext("nothing is kept of it"))
    if row.created_at >= call.run.started_at:
        return  # the same answer has set it, which is taken back as well
    was_open, now, after = row.is_open, note_down(row), kept["after"]
    changed = [name for name in after.keys() - {"due_at"} if now[name] != after[name]]
    if row.fired or changed or not (was_open or "state" in after):
        raise ReminderRefused(gettext(CHANGED))
    for name, value in kept["before"].items():
        setattr(row, name, parse_datetime(value) if name.endswith("_at") else value)
    if not was_open and row.set_by not in ("", *owners):
        _check_count(row)
    row.save()


def describe(row: Reminder, zone: str, *, shows_person: bool = False) -> str:
    """``#12 2026-01-31 08:00 …`` in one line."""
    parts = [f"#{row.pk}", format_instant(row.due_at, zone)]
    if row.repeat:
        parts.append(f"({say_repeat(row.repeat)})")
    if row.state == State.PAUSED:
        parts.append(f"[{row.get_state_display()}]")
    parts.append(show_words(row.text, LISTED_CHARS))
    return " ".join([*parts, f"({row.set_by})"] if shows_person and row.set_by else parts)


def show_words(words: str, most: int) -> str:
    """The beginning of ``words`` as a part of a line, which they neither end nor turn around."""
    return shorten_text(escape_direction_chars(" ".join(words.split())), most)


#: What operators do with single reminders: the states in which it can be done, and that after it.
MOVES = {
    "pause": ((State.WAITING,), State.PAUSED),
    "resume": ((State.PAUSED,), State.WAITING),
    "cancel": (OPEN_STATES, State.CANCELLED),
}


def act(row: Reminder, name: str) -> bool:
    """Do one of :data:`MOVES` with a row that is locked, or ``run`` it: a repeat is said once more
    now, whatever its rule says, any other instead of later. Whether there was anything to do. What
    fell due while it was paused is told as late, or dropped, as the row says."""
    if name == "run":
        if row.repeat and not row.fired:
            Reminder.objects.filter(pk=row.pk).update(is_extra=True, next_at=timezone.now())
        elif not row.fired:
            row.due_at, row.state = timezone.now(), State.WAITING
            row.save(update_fields=["due_at", "state"])
        return not row.fired
    before, after = MOVES[name]
    if row.state not in before:
        return False
    if name == "cancel":
        cancel(row)
    else:
        row.state = after
        row.save(update_fields=["state"])
    return True
