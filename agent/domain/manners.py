"""How the bot behaves in a chat: whom it hears, when it keeps silent, and how it speaks. Pure, but
for what the environment says.

A frozen copy of what the rows of :class:`agent.models.Manners` say together for one chat; the
program's own values stand here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from typing import NamedTuple

from django.conf import settings
from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _

from tools.local_time import find_zone

#: Characters of one message at most, whatever a row says: QQ takes no more.
MOST_PART_CHARS = 4_500
#: Seconds within which messages of one person can be answered together.
MOST_MERGE_SECONDS = 10.0
MIDNIGHT = (24, 0)
_BETWEEN_SPANS = re.compile(r"[\n\r,，;；、]")
_SPAN = re.compile(r"(\d{1,2})[:：](\d{2})\s*[-–—~～至到]\s*(\d{1,2})[:：](\d{2})")


class PrivateChats(TextChoices):
    """Whose private messages are answered."""

    ON = "on", _("everybody's")
    FRIENDS = "friends", _("friends'")
    OFF = "off", _("nobody's")


class Audience(TextChoices):
    """Who is answered at all; in groups nobody can tell who is a friend."""

    EVERYBODY = "everybody", _("everybody")
    FRIENDS = "friends", _("friends and those who are listed")
    LISTED = "listed", _("only those who are listed")
    NOBODY = "nobody", _("nobody")


class MemberCommands(TextChoices):
    """Who may mute, unmute and remove members of a group by commands."""

    OFF = "off", _("off")
    ADMINS = "admins", _("owners, and the group's owner and administrators")


class MarkdownStyle(TextChoices):
    """What becomes of Markdown in an answer; QQ shows it raw."""

    AS_IS = "as_is", _("sent as it is")
    PLAIN = "plain", _("made plain text")
    PICTURE = "picture", _("tables, formulae and code as a picture, the rest as plain text")


class QuietSpan(NamedTuple):
    """Hours of the day in which nothing is said; one that ends before it begins goes over
    midnight."""

    start: time
    end: time

    def covers(self, moment: time) -> bool:
        if self.start <= self.end:
            return self.start <= moment < self.end
        return moment >= self.start or moment < self.end


@dataclass(frozen=True, slots=True)
class ChatManners:
    """What counts in one chat."""

    groups: bool = True
    private: PrivateChats = PrivateChats.ON
    wake_mention: bool = True
    wake_quote: bool = True
    wake_names: tuple[str, ...] = ()
    """Names and aliases, found anywhere in what was typed, whatever their case."""
    wake_prefixes: tuple[str, ...] = ()
    wake_pattern: str = ""
    """A regular expression of RE2, whose matching takes linear time."""
    wake_chance: float = 0.0
    """Percent of the messages of a group that are answered although nothing else wakes the bot."""
    wake_always: bool = False
    answered: Audience = Audience.EVERYBODY
    listed_people: frozenset[str] = frozenset()
    """Answered whoever else is, but where nobody is."""
    allowed_people: frozenset[str] = frozenset()
    """Not empty: nobody else is answered, but for owners."""
    denied_people: frozenset[str] = frozenset()
    person_per_minute: int = 0
    """Answers at most, 0 without a limit; ``person_*`` are one person's in all chats of an
    account."""
    person_per_day: int = 0
    chat_per_minute: int = 0
    chat_per_day: int = 0
    quiet_hours: tuple[QuietSpan, ...] = ()
    zone: str = ""
    """The IANA name of the zone of its hours; "" for the installation's."""
    command_prefix: str = "/"
    """"" for no commands."""
    member_commands: MemberCommands = MemberCommands.OFF
    silenced_by: str = ""
    """The name of the row that silences the chat longest, also when that is over
    (:meth:`find_silence`); "" for none."""
    silenced_until: datetime | None = None
    """When that ends by itself."""
    only_person: str = ""
    """Whom alone the bot answers here, also when that is over (:meth:`find_only`)."""
    only_until: datetime | None = None
    mention: bool | None = None
    """Whether answers in groups begin with an at of the sender; None: as the persona says."""
    quote: bool | None = None
    part_chars: int = 2_000
    """Characters of one message at most; a longer answer is sent in parts."""
    forward_above: int = 15_000
    """Characters of an answer above which it is sent as a merged forward; 0: never."""
    markdown: MarkdownStyle = MarkdownStyle.AS_IS
    sends_per_minute: int | None = None
    """Messages sent to one chat a minute, 0 without a limit; None: as CHAT_ANSWERS_PER_MINUTE."""
    typing: bool = False
    """Whether a private chat shows that the bot is typing."""
    reaction: str = ""
    """The id of the emoji with which a message in a group is marked while it is answered."""
    says_beside_calls: bool = False
    """Whether the words that a model writes beside a tool call are sent."""
    ambient_messages: int = 0
    """Recent messages of a group, not for the bot, that the model is shown."""
    ambient_chars: int = 2_000
    ambient_minutes: int = 30
    merge_seconds: float = 0.0
    """Seconds in which further messages of the same person are awaited and answered together."""
    endpoint: int | None = None
    """The key of the endpoint that is asked first for chat; None: as the persona says."""
    said_by: Mapping[str, str] = field(default_factory=dict)
    """The name of the row that says a field, by the field's name."""

    @property
    def has_limits(self) -> bool:
        """Whether there is a limit of answers."""
        of_person = self.person_per_minute or self.person_per_day
        return bool(of_person or self.chat_per_minute or self.chat_per_day)

    def is_quiet(self, now: datetime) -> bool:
        """Whether ``now`` is within its quiet hours."""
        moment = now.astimezone(find_zone(self.zone)).time()
        return any(span.covers(moment) for span in self.quiet_hours)

    def find_end_of_quiet(self, now: datetime) -> datetime:
        """When quiet hours end, of which ``now`` is within some."""
        zone = find_zone(self.zone)
        at = now.astimezone(zone)
        ends = [span.end for span in self.quiet_hours if span.covers(at.time())]
        nexts = (datetime.combine(at.date(), end, zone) for end in ends)
        return max(one if one > now else one + timedelta(days=1) for one in nexts)

    def leaves_out(self, person: str, *, is_friend: bool) -> bool:
        """Whether ``person``, who is no owner, is not among those whom ``answered`` means."""
        if self.answered == Audience.NOBODY:
            return True
        if self.answered == Audience.EVERYBODY or person in self.listed_people:
            return False
        return not (is_friend and self.answered == Audience.FRIENDS)

    def find_silence(self, now: datetime) -> str:
        """The name of a row that silences the chat at ``now``; "" for none."""
        is_over = self.silenced_until is not None and self.silenced_until <= now
        return "" if is_over else self.silenced_by

    def find_only(self, now: datetime) -> str:
        """Who alone is answered at ``now``; "" where that is not one person."""
        is_over = self.only_until is not None and self.only_until <= now
        return "" if is_over else self.only_person

    def is_for_another(self, person: str, now: datetime) -> bool:
        """Whether somebody else than ``person`` is the only one who is answered at ``now``."""
        return bool(self.only_person) and self.find_only(now) not in ("", person)


def environment_manners() -> ChatManners:
    """What counts where no row says otherwise."""
    names = tuple(filter(None, (settings.BOT_NAME, *settings.BOT_ALIASES)))
    return ChatManners(
        groups=settings.GROUP_REPLY_ON_MENTION,
        wake_names=names,
        person_per_minute=settings.PERSON_ANSWERS_PER_MINUTE,
        person_per_day=settings.PERSON_ANSWERS_PER_DAY,
        chat_per_minute=settings.CHAT_ANSWERS_PER_MINUTE,
        chat_per_day=settings.CHAT_ANSWERS_PER_DAY,
    )


def parse_quiet_hours(text: str) -> tuple[QuietSpan, ...]:
    """``23:00-07:30``, one a line or separated by commas; 24:00 is midnight. Raises
    :class:`ValueError` with the part that is none."""
    parts = (part.strip() for part in _BETWEEN_SPANS.split(text))
    return tuple(_parse_span(part) for part in parts if part)


def _parse_span(text: str) -> QuietSpan:
    found = _SPAN.fullmatch(text)
    if found is None:
        raise ValueError(text[:40])
    try:
        start, end = (
            time(0 if (int(hour), int(minute)) == MIDNIGHT else int(hour), int(minute))
            for hour, minute in (found.group(1, 2), found.group(3, 4))
        )
    except ValueError as error:
        raise ValueError(text[:40]) from error
    if start == end:
        raise ValueError(text[:40])
    return QuietSpan(start, end)
