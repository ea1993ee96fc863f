"""What is said of a reminder that is due, and what people may set. Pure."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext_noop

from agent.domain.errors import HAN, choose_language, pick_sentence
from agent.domain.manners import ChatManners
from agent.domain.states import ReminderKind
from tools.local_time import find_zone

#: Characters of a text, and of a rule.
MOST_TEXT, MOST_RULE = 5_000, 500
#: Waiting or paused ones of one person, and of one chat.
MOST_OF_PERSON, MOST_OF_CHAT = 20, 100
#: Seconds between two instances of one rule, by kind; owners may have them sooner.
LEAST_GAP = {ReminderKind.TEXT: 60, ReminderKind.TASK: 600}
LEAST_GAP_OF_OWNERS = 10
#: Seconds until a task that was set by a task is due, at least.
LEAST_WAIT = 600
_LETTER = re.compile(r"[A-Za-z]")
#: People that one mentions, and the word for everybody.
MOST_MENTIONED, EVERYBODY = 20, "all"
#: What is said later than this after its instant says so.
LATE_AFTER = timedelta(seconds=10)
SAID = ("提醒：{text}", "Reminder: {text}")
LEFT_ALONE = ("（模型没有回答）", " (the model did not answer)")
WAS_DUE = ("（原定 {at}）", "(was due {at}) ")
MISSED = ("（错过 {count} 次）", " (missed {count} times)")


SILENCED = gettext_noop("this chat is silenced")
BY_HAND = gettext_noop("an operator answers here")
FOR_ANOTHER = gettext_noop("only one person is answered here for now")


def find_silence(person: str, manners: ChatManners, now: datetime, *, is_taken_over: bool) -> str:
    """Why nothing that ``person`` wanted is said in a chat, nor later; "" where it is said."""
    if manners.find_silence(now):
        return SILENCED
    if is_taken_over:
        return BY_HAND
    return FOR_ANOTHER if manners.is_for_another(person, now) else ""


@dataclass(frozen=True, slots=True)
class FiredReminder:
    """A reminder as it was when it became a message, which keeps it. ``due`` is the last instant
    that it stands for, of ``count``."""

    pk: int
    due: str
    text: str
    kind: str = ReminderKind.TEXT
    count: int = 1
    mention: tuple[str, ...] = ()
    language: str = ""
    is_last: bool = True
    """Whether none comes after it."""
    is_alone: bool = False
    """Of a task: whether no model may be asked, so that the text is said."""

    @property
    def is_task(self) -> bool:
        """Whether a model is to be asked."""
        return self.kind == ReminderKind.TASK and not self.is_alone

    @property
    def due_at(self) -> datetime:
        return datetime.fromisoformat(self.due)

    def to_raw(self) -> dict[str, Any]:
        """As the message keeps it."""
        return {"reminder": asdict(self)}

    def sentence(self, now: datetime, manners: ChatManners, *, is_left: bool = False) -> str:
        """What is said of it at ``now``; ``is_left``: a model was to say something, and did
        not."""
        said = self._pick(SAID).format(text=self.text)
        said += self._pick(LEFT_ALONE) if is_left or self.is_alone else ""
        said += self._pick(MISSED).format(count=self.count) if self.count > 1 else ""
        return self.late_words(now, manners) + said

    def late_words(self, now: datetime, manners: ChatManners) -> str:
        """What stands before the words of one that is late at ``now``; "" in time."""
        if now - self.due_at <= LATE_AFTER:
            return ""
        zone = find_zone(manners.zone)
        due, today = self.due_at.astimezone(zone), now.astimezone(zone).date()
        at = due.strftime("%H:%M" if due.date() == today else "%Y-%m-%d %H:%M")
        return self._pick(WAS_DUE).format(at=at)

    def _pick(self, texts: tuple[str, str]) -> str:
        return pick_sentence(texts, self.text, self.language)


def read_fired(raw: Mapping[str, Any] | None) -> FiredReminder | None:
    """The reminder that a message keeps; None for every other message."""
    kept = (raw or {}).get("reminder")
    if not isinstance(kept, dict):
        return None
    return FiredReminder(**{**kept, "mention": tuple(kept.get("mention", ()))})


def pick_language(words: str, language: str = "") -> str:
    """The language of the sentence around a reminder that was set with ``words``: a persona's own
    ``language``, or that of the words, or LANGUAGE_CODE where they have none."""
    if language or HAN.search(words) or not _LETTER.search(words):
        return choose_language(words, language)
    return "en"


def format_instant(at: datetime, zone_name: str = "") -> str:
    """``2026-01-31 08:00``, with seconds where there are any."""
    local = at.astimezone(find_zone(zone_name))
    return local.strftime("%Y-%m-%d %H:%M:%S" if local.second else "%Y-%m-%d %H:%M")
