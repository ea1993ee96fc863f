"""Names in an answer that mean one member of the group, as mentions. Pure.

::

    @张三 看这里      [@20002] 看这里
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from itertools import islice

from agent.domain.types import MessagePart

#: Mentions in one answer; names after them stay words.
MOST_MENTIONS = 20
#: Names that mention everybody, or some of them that nobody chose.
_EVERYBODY = ("全体成员", "所有人", "在线成员", "all", "everyone", "here")
_LONGEST_EVERYBODY = max(map(len, _EVERYBODY))
#: Code, also where its end is missing, and addresses: what is in them stays as it is. An address is
#: of ASCII, for in Chinese no space follows it.
_LEFT_ALONE = re.compile(
    r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]*`|(?:https?|ftp|wss?|mqqapi)://[!-~]*|www\.[!-~]*",
    re.DOTALL | re.IGNORECASE,
)
_NUMBER = re.compile(r"\[@([^\[\]\s]{1,64})\]")
#: Before an "@" it makes an e-mail address of what follows.
_BEFORE = re.compile(r"[A-Za-z0-9_/@]")
#: Writing without spaces between words: a name in it may end anywhere.
_UNSPACED = (
    *("CJK", "IDEOGRAPHIC", "HIRAGANA", "KATAKANA", "HALFWIDTH KATAKANA", "BOPOMOFO", "HANGUL"),
    *("THAI", "LAO", "KHMER", "MYANMAR"),
)


def split_mentions(text: str, members: Mapping[str, str]) -> list[MessagePart]:
    """``text`` as parts in which ``@name`` and ``[@number]`` mention who is meant; joined, the
    parts say what the text says.

    ``members`` are the numbers of people by name (:func:`agent.record.chats.members.find_members`);
    a name with "" means nobody. The longest name counts, and what a longer word begins with is no
    name. Nobody is mentioned in code, in addresses, and by a name for everybody.
    """
    parts: list[MessagePart] = []
    told = 0
    for start, end, user_id in islice(_found(text, members), MOST_MENTIONS):
        if start > told:
            parts.append(MessagePart("plain", text=text[told:start]))
        parts.append(MessagePart("mention_user", mention_user_id=user_id))
        told = end
    return [*parts, MessagePart("plain", text=text[told:])] if text[told:] else parts


def _found(text: str, members: Mapping[str, str]) -> Iterator[tuple[int, int, str]]:
    """Where somebody is mentioned, from where to where, and who."""
    if "@" not in text:
        return
    lengths = sorted({len(name) for name in members if name}, reverse=True)
    numbers = set(members.values())
    longest = max([_LONGEST_EVERYBODY, *lengths]) + 2
    for start, end in _open_stretches(text):
        place = text.find("@", start, end)
        while place >= 0:
            known = _NUMBER.match(text, place - 1, end) if place > start else None
            if known:
                following = known.end()
                user_id = known[1] if known[1] in numbers else members.get(known[1], "")
                if _is_somebody(user_id) and _is_somebody(known[1]):
                    yield known.start(), following, user_id
            else:
                name = _name_at(text[place + 1 : min(end, place + 1 + longest)], members, lengths)
                following = place + 1 + len(name)
                if name and not (place and _BEFORE.match(text[place - 1])):
                    yield place, following, members[name]
            place = text.find("@", following, end)


def _open_stretches(text: str) -> Iterator[tuple[int, int]]:
    """What of ``text`` is neither code nor an address."""
    begin = 0
    for left_alone in _LEFT_ALONE.finditer(text):
        yield begin, left_alone.start()
        begin = left_alone.end()
    yield begin, len(text)


def _name_at(text: str, members: Mapping[str, str], lengths: list[int]) -> str:
    """The name of somebody with which ``text`` begins, "" where there is none."""
    folded = text[:_LONGEST_EVERYBODY].casefold()
    for everybody in _EVERYBODY:
        if folded.startswith(everybody) and _ends(text, len(everybody)):
            return ""
    for length in lengths:
        user_id = members.get(text[:length]) if length <= len(text) else None
        if user_id is not None:
            # A longer name, also one that means nobody, hides those that it begins with.
            return text[:length] if _is_somebody(user_id) and _ends(text, length) else ""
    return ""


def _ends(text: str, length: int) -> bool:
    """Whether a word may end after ``length`` characters of ``text``."""
    following = text[length : length + 2]
    if len(following) == 2 and following[0] == ".":  # a host's name
        following = following[1] if following[1].isascii() else ""
    return not (following and _goes_on(text[length - 1]) and _goes_on(following[0]))


def _goes_on(sign: str) -> bool:
    """Whether ``sign`` belongs to words between which there are spaces."""
    return (sign.isalnum() or sign == "_") and not unicodedata.name(sign, "").startswith(_UNSPACED)


def _is_somebody(user_id: str) -> bool:
    return user_id != "" and user_id.casefold() not in _EVERYBODY
