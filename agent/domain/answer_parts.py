"""A long answer as several messages. Pure.

Cuts stand at the end of a paragraph, a line, a sentence, a clause or a word, in this order, and
never inside what is broken by a cut: a code block, an address, a CQ look-alike, what is seen as one
character. Only what is longer than a message by itself is cut, a code block into several.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

from agent.domain.manners import MOST_PART_CHARS
from agent.domain.types import MessagePart

#: The part of a message that has to be full before it ends at something better than a word.
FULL_ENOUGH = 0.4
#: Characters of the name of a language that a code block keeps in each of its parts.
LANGUAGE_CHARS = 20

_ADDRESS = re.compile(r"(?:https?|ftp|file|base64|magnet|mqqapi):[!#-;=?-~]+")
_CQ = re.compile(r"\[CQ:[^\[\]\n]*\]")
_FENCE = re.compile(r"^([ \t>]{0,12})(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
_CLOSERS = r"[”’\"'」』）)】》\]*_~]*"
#: Where a part may end, the best first: each match ends where the next part may begin.
_ENDS = (
    re.compile(r"\n(?:[ \t]*\n)+"),
    re.compile(r"\n"),
    re.compile(rf"[。！？!?…]+{_CLOSERS}|(?<=[^\W\d_]{{2}})\.{_CLOSERS}(?=\s)"),
    re.compile(rf"[；，、：]{_CLOSERS}|[;,:](?=\s)"),
    re.compile(r"\s+"),
)
_BLANK_LINES = re.compile(r"(?:[ \t]*\n)+")
_ZWJ = "\u200d"
_IN_ATOM, _IN_BLOCK = 1, 2


class _Block(NamedTuple):
    """A code block: where it begins and ends, and the lines that open and close its parts."""

    begin: int
    body: int
    closer: int
    end: int
    opening: str
    closing: str


def split_answer(text: str, limit: int) -> list[str]:
    """``text`` in parts of at most ``limit`` characters (never more than
    :data:`agent.domain.manners.MOST_PART_CHARS`), none of them blank; one part where it fits.

    Without spaces at the cuts, and without the lines that close and open the parts of a code block,
    the parts together are ``text``. Takes time in proportion to its length.
    """
    limit = max(1, min(limit, MOST_PART_CHARS))
    text = text.strip()
    if len(text) <= limit:
        return [text] if text else []
    return [part for part in _Splitter(text, limit).parts() if part.strip()]


def split_message(parts: Sequence[MessagePart], limit: int) -> list[list[MessagePart]]:
    """``parts`` as messages of at most ``limit`` characters of text each, in order; what is no text
    stays beside the words that it stood beside. One message where they fit."""
    if sum(len(part.text) for part in parts) <= limit:
        return [list(parts)]
    messages: list[list[MessagePart]] = [[]]
    room = limit
    for part in parts:
        pieces = [part] if len(part.text) <= room else _split_text(part, limit)
        for position, piece in enumerate(pieces):
            if position or len(piece.text) > room:
                messages.append([])
                room = limit
            messages[-1].append(piece)
            room -= len(piece.text)
    return messages


def _split_text(part: MessagePart, limit: int) -> list[MessagePart]:
    """The text of ``part`` in pieces; a space that parts it from what stands before it is kept."""
    lead = " " if part.text.startswith(" ") else ""
    first, *others = split_answer(part.text, limit - len(lead)) or [""]
    return [replace(part, text=text) for text in (lead + first, *others)]


@dataclass(slots=True)
class _Splitter:
    """The marks of one text: which places are inside of something."""

    text: str
    limit: int
    marks: bytearray
    blocks: list[_Block]

    def __init__(self, text: str, limit: int) -> None:
        self.text, self.limit = text, limit
        self.blocks = [
            block
            for block in _find_blocks(text)
            if len(block.opening) + len(block.closing) <= limit // 2
        ]
        self.marks = bytearray(len(text) + 1)
        for block in self.blocks:
            inner = block.end - block.begin - 1
            self.marks[block.begin + 1 : block.end] = bytes([_IN_BLOCK]) * inner
        for pattern in (_ADDRESS, _CQ):
            for found in pattern.finditer(text):
                for position in range(found.start() + 1, found.end()):
                    self.marks[position] |= _IN_ATOM
        for position in _joints(text):
            self.marks[position] |= _IN_ATOM

    def parts(self) -> Iterator[str]:
        at, end = 0, len(self.text)
        while at < end:
            block = self._block_around(at)
            opening = block.opening if block else ""
            room = self.limit - len(opening)
            if end - at <= room:
                yield opening + self.text[at:].rstrip()
                return
            cut = self._cut(at, room)
            block = self._block_around(cut)
            if block is None:
                yield opening + self.text[at:cut].rstrip()
                at = self._begin(cut)
            else:
                yield opening + self.text[at:cut].removesuffix("\n") + block.closing
                at = self._begin(block.end) if cut >= block.closer else cut

    def _begin(self, position: int) -> int:
        """Where the part after a cut begins: without blank lines, and without the spaces at which a
        line was cut."""
        if lines := _BLANK_LINES.match(self.text, position):
            return lines.end()
        if position and self.text[position - 1] != "\n":
            while position < len(self.text) and self.text[position] in " \t":
                position += 1
        return position

    def _block_around(self, position: int) -> _Block | None:
        """The code block that ``position`` is inside of."""
        found = bisect_left(self.blocks, position, key=lambda block: block.begin) - 1
        return self.blocks[found] if found >= 0 and position < self.blocks[found].end else None

    def _cut(self, begin: int, room: int) -> int:
        """The end of a part that begins at ``begin``."""
        end = begin + room
        block = self._block_around(end)
        if block is None:
            return self._end(begin, end)
        fits = block.end - block.begin <= self.limit
        if block.begin > begin and (fits or block.begin - begin >= room * FULL_ENOUGH):
            return block.begin
        least, end = max(begin, block.body), min(end - len(block.closing), block.closer)
        if end <= least:
            return block.begin
        line = self.text.rfind("\n", least + 1, end) + 1
        return line if line > least else self._last_position(least, end, _IN_ATOM)

    def _end(self, begin: int, end: int) -> int:
        """The best place up to ``end`` outside of everything."""
        for number, pattern in enumerate(_ENDS):
            least = begin + max(1, int((end - begin) * (FULL_ENOUGH if number < 4 else 0.1)))
            positions = [found.end() for found in pattern.finditer(self.text, least - 1, end)]
            for position in reversed(positions):
                if position >= least and not self.marks[position]:
                    return position
        return self._last_position(begin, end, _IN_ATOM | _IN_BLOCK)

    def _last_position(self, begin: int, end: int, inside: int) -> int:
        """The last place in a part that is not ``inside`` of something; its end where there is
        none."""
        for position in range(end, begin, -1):
            if not self.marks[position] & inside:
                return position
        return end


def _find_blocks(text: str) -> Iterator[_Block]:
    """The code blocks of ``text``, in order; one that is not closed goes on to the end."""
    opened: re.Match[str] | None = None
    for line in _FENCE.finditer(text):
        if opened is None:
            if not (line[2][0] == "`" and "`" in line[3]):
                opened = line
        elif line[2].startswith(opened[2]) and not line[3].strip():
            yield _block(text, opened, line.start(), line.end())
            opened = None
    if opened is not None:
        yield _block(text, opened, len(text), len(text))


def _block(text: str, opened: re.Match[str], closer: int, end: int) -> _Block:
    language = (opened[3].split() or [""])[0][:LANGUAGE_CHARS]
    fence = opened[1] + opened[2]
    body = min(opened.end() + 1, len(text))
    return _Block(opened.start(), body, closer, end, f"{fence}{language}\n", f"\n{fence}")


def _joints(text: str) -> Iterator[int]:
    """The places inside of what is seen as one character."""
    flags = 0
    previous = ""
    for position, character in enumerate(text):
        if character < "\u0300" and character != "\n":
            flags, previous = 0, character
            continue
        is_flag = "\U0001f1e6" <= character <= "\U0001f1ff"
        if (
            previous == _ZWJ
            or character == _ZWJ
            or (is_flag and flags % 2)
            or (previous == "\r" and character == "\n")
            or ("\ud800" <= previous <= "\udbff" and "\udc00" <= character <= "\udfff")
            or "\U0001f3fb" <= character <= "\U0001f3ff"  # skin
            or "\U000e0020" <= character <= "\U000e007f"  # flags of regions
            or unicodedata.category(character)[0] == "M"
        ):
            yield position
        flags = flags + 1 if is_flag else 0
        previous = character


# Names in an answer that mean one member of the group, as mentions. Pure.
#
# ::
#
#     @张三 看这里      [@20002] 看这里

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


#: No leading zero: clients read "0" as everyone.
_NUMBERED = re.compile(r"[1-9][0-9]{0,18}")
#: What the ids of official bots' chats look like; no name, and no number with a sign.
_LETTERED = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9_-]{1,64}")


def may_be_person(user_id: str, speaker: str) -> bool:
    """Whether ``user_id`` can be somebody whom ``speaker`` has mentioned. Where the speaker's id is
    a number, so are those of the others."""
    is_lettered = bool(speaker) and not speaker.isdecimal()
    return bool(_NUMBERED.fullmatch(user_id) or (is_lettered and _LETTERED.fullmatch(user_id)))


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
        at = text.find("@", start, end)
        while at >= 0:
            known = _NUMBER.match(text, at - 1, end) if at > start else None
            if known:
                following = known.end()
                user_id = known[1] if known[1] in numbers else members.get(known[1], "")
                if _is_somebody(user_id) and _is_somebody(known[1]):
                    yield known.start(), following, user_id
            else:
                name = _name_at(text[at + 1 : min(end, at + 1 + longest)], members, lengths)
                following = at + 1 + len(name)
                if name and not (at and _BEFORE.match(text[at - 1])):
                    yield at, following, members[name]
            at = text.find("@", following, end)


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
