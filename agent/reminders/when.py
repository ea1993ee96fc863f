"""When something is to be: a date and time, a duration from now, or words in Chinese or English.
Pure.

What is not sure is not guessed: :class:`agent.reminders.unclear.UnclearTime` says what to ask.
"""

import re
import unicodedata
from collections.abc import Callable
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from agent.reminders.meaning import Meaning, When
from agent.reminders.phrases import UNTIL, Said, list_phrases, merge_repeats
from agent.reminders.qualifiers import find_qualifier
from agent.reminders.unclear import Unclear, UnclearTime
from agent.reminders.workdays import WorkCalendar

__all__ = ["When", "read_when", "split_when"]

#: No time is said in more characters; what is behind them is not looked at.
_MOST_CHARS = 200
#: What is left out around a text: blanks, punctuation, signs that nobody sees.
_AROUND = (
    " \t\r\n\xa0\u3000,，.。:：;；、-–—\u200b\u200e\u200f\ufeff"
    "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
#: What belongs to a time without saying anything.
_CALLS = {"提醒我", "remind me", "左右", "前后", "or so"}
_AND = {"、", "和", "及", "and"}
_OR = {"或", "或者", "还是", "or", "or at", "or in", "or on"}
_TIMES = {"clock", "part", "day", "span", "every"}
_BREAK = re.compile("[ ,、。;]|$")
Phrase = tuple[str, re.Match[str], Callable[[re.Match[str]], Said]]
_SHORT_UNITS = ("hours", "minutes", "seconds")


def read_when(
    words: str, now: datetime, zone: ZoneInfo, calendar: WorkCalendar | None = None
) -> When:
    """What ``words`` as a whole mean at ``now`` (aware) in ``zone``; working days are those of
    ``calendar``, without one of the calendar that is shipped. Raises
    :class:`agent.reminders.unclear.UnclearTime`. Takes time linear in the words."""
    when, rest = split_when(words, now, zone, calendar)
    if rest:
        raise UnclearTime(Unclear.NO_TIME, words=_shorten(words))
    return when


def split_when(
    words: str, now: datetime, zone: ZoneInfo, calendar: WorkCalendar | None = None
) -> tuple[When, str]:
    """The longest beginning of ``words`` that is a time, and the rest without punctuation and
    blanks around it. Raises as :func:`read_when`, also where the beginning is a time that is not
    sure."""
    text, places = _fold(words[:_MOST_CHARS])
    said, end = _find_phrases(text)
    if not said:
        raise UnclearTime(Unclear.NO_TIME, words=_shorten(words))
    when = Meaning(said, _shorten(words[: places[end]]), now, zone).find(calendar)
    return when, words[places[end] :].strip(_AROUND)


def _shorten(words: str) -> str:
    return "".join(sign for sign in words.strip()[:60] if unicodedata.category(sign) != "Cf")


def _fold(words: str) -> tuple[str, list[int]]:
    # ``words`` in small letters of one width, blanks and signs that nobody sees as one blank; and
    # where each letter stands in ``words``.
    letters: list[str] = []
    places: list[int] = []
    for place, sign in enumerate(words):
        is_blank = sign.isspace() or unicodedata.category(sign) == "Cf"
        for letter in " " if is_blank else unicodedata.normalize("NFKC", sign).lower():
            if letter != " " or (letters and letters[-1] != " "):
                letters.append(letter)
                places.append(place)
    return "".join(letters), [*places, len(words)]


def _find_phrases(text: str) -> tuple[Said, int]:
    # What the phrases at the beginning of ``text`` say together, and where the last one ends.
    said: Said = {}
    end = place = 0
    while place < len(text):
        if said.keys() & {"every", "until"} == {"every"} and (until := _find_until(text, place)):
            said["until"], place = until
            end = place
            continue
        if (found := _find_longest(text, place)) is None:
            break
        slot, match, read = found
        place, joined = match.end(), text[end : match.start()].strip()
        is_next = bool(slot) and not _may_follow(slot, match, said)
        if (slot and said and joined in _OR) or (is_next and slot in _TIMES and joined in _AND):
            reason = Unclear.TWO_TIMES if slot in {"clock", "part"} else Unclear.QUALIFIED
            raise UnclearTime(reason, words=text[:place])
        if is_next:
            if slot != "every" or "every" not in said or not _is_repeat(match, said, read(match)):
                break
            if (both := merge_repeats(said, read(match))) is None:
                raise UnclearTime(Unclear.QUALIFIED, words=text[:place])
            said["every"], end = both, place
            continue
        said |= (new := read(match))
        end = place if new or match[0] in _CALLS else end
    if said and (words := find_qualifier(text[end:], said)):
        raise UnclearTime(Unclear.QUALIFIED, words=text[:end] + words)
    return said, end


def _is_repeat(match: re.Match[str], said: Said, new: Said) -> bool:
    # Whether a second repeat is meant as one: a text may begin with ``每日一题`` or ``周一的例会``.
    text, end = match.string, match.end()
    if _BREAK.match(text, end) or ("BYDAY" in said["every"] and "clock" not in said):
        return True
    if "BYDAY" in new["every"] and text[end] != "的":
        raise UnclearTime(Unclear.QUALIFIED, words=text[:end])
    return False


def _find_longest(text: str, place: int, only: str | None = None) -> Phrase | None:
    found = [
        (match.end(), bool(slot), slot, match, read)
        for slot, pattern, read in list_phrases()
        if only in (None, slot) and (match := pattern.match(text, place)) and match.end() > place
    ]
    return max(found, key=lambda row: row[:2])[2:] if found else None


def _find_until(text: str, place: int) -> tuple[Any, int] | None:
    # The last day of a repeat, and where it ends; behind a mere 到 stands many another thing.
    if (word := UNTIL.match(text, place)) is None:
        return None
    if (found := _find_longest(text, word.end(), "day")) is None:
        return None
    day, end = found[2](found[1])["day"], found[1].end()
    if text.startswith("为止", end):
        return day, end + len("为止")
    is_sure = word["firm"] or day[0] == "date" or _BREAK.match(text, end)
    return (day, end) if is_sure else None


def _may_follow(slot: str, match: re.Match[str], said: Said) -> bool:
    # Whether it belongs to what was said before; the rest may begin with the name of a time.
    words = match[0]
    if slot in said or ({"span", "instant"} & {slot, *said} and said):
        is_days_on = "span" in said and not {*_SHORT_UNITS} & said["span"].keys()
        return is_days_on and slot in {"clock", "part"} - said.keys()
    if slot == "end" and "every" not in said:
        return False
    # In Chinese the day and its part come first; short names in English are words as well.
    is_late = "clock" in said and slot in {"day", "part", "every"}
    if words.isascii():
        return not is_late or len(words) > len("mon")
    return not is_late or bool(_BREAK.match(match.string, match.end()))
