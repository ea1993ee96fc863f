"""When something is to be: a date and time, a duration from now, or words in Chinese or English.
Pure.

What is not sure is not guessed: :class:`agent.reminders.unclear.UnclearTime` says what to ask.
"""

import unicodedata
from datetime import datetime
from zoneinfo import ZoneInfo

from agent.reminders.meaning import Meaning, When
from agent.reminders.phrases import Said, list_phrases
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
_CALLS = {"提醒我", "remind me"}
_AND = {"、", "和", "及", "and"}
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
        found = [
            (match.end(), bool(slot), slot, match, read)
            for slot, pattern, read in list_phrases()
            if (match := pattern.match(text, place)) and match.end() > place
        ]
        if not found:
            break
        place, _, slot, match, read = max(found, key=lambda row: row[:2])
        if slot and not _may_follow(slot, match[0], said):
            if slot in {"clock", "part"} and text[end : match.start()].strip() in _AND:
                raise UnclearTime(Unclear.TWO_TIMES, words=text[: match.end()])
            break
        said |= (new := read(match))
        end = place if new or match[0] in _CALLS else end
    return said, end


def _may_follow(slot: str, words: str, said: Said) -> bool:
    # Whether it belongs to what was said before; the rest may begin with the name of a time.
    if slot in said or ({"span", "instant"} & {slot, *said} and said):
        is_days_on = "span" in said and not {*_SHORT_UNITS} & said["span"].keys()
        return is_days_on and slot in {"clock", "part"} - said.keys()
    if slot in {"end", "until"} and "every" not in said:
        return False
    # In Chinese the day and its part come first; short names in English are words as well.
    is_late = "clock" in said and slot in {"day", "part", "every"}
    return not is_late or (words.isascii() and len(words) > len("mon"))
