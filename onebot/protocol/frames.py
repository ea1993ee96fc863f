"""Frames of the WebSocket: JSON text into events and responses, whatever a client sends.

Rules: https://github.com/botuniverse/onebot-11/blob/master/communication/ws.md. A
frame with a ``post_type`` is an event even when it also carries ``echo`` or ``status``.
"""

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from onebot.protocol.actions import ActionResponse, parse_response
from onebot.protocol.events import Event, MessageEvent, OtherEvent, find_no_id, parse_event
from onebot.protocol.segments import MAX_SEGMENTS, plain_number, to_plain_json
from tools.text.storable import make_storable

__all__ = [
    "MAX_DEPTH",
    "MAX_SEGMENTS",
    "MalformedFrame",
    "decode_frame",
    "shrink_frame",
    "to_plain_json",
]


# Large frames made small before they are decoded, so that their values are bounded.
#
# The C code of Python's JSON holds every other thread up for as long as a string is long, and a
# frame of 60 MiB would be copied a dozen times on its way. So large values are cut out of the text
# first: Base64 files are stored on disk and replaced by their hash, and long texts are cut with a
# note of the length left out. The work is done in slices, so that other threads can run in between.

#: Characters that are processed at a time.
SLICE = 2**18
#: Values of one frame, at most: no list of members and no forward comes near.
MAX_VALUES = 2**18
#: Bytes of a frame that are decoded, at most: what is left once files and long texts are cut out.
MAX_BYTES = 2**23
#: Bytes that the long texts of one frame may have together; the rest of them is left out.
TEXT_BYTES = 2**20
#: Texts shorter than this are left alone.
SHORT_TEXT_BYTES = 2**8
#: How a text ends that was cut.
CUT_END = " 字节）"
#: Base64 shorter than this stays in its message.
SHORT_FILE_BYTES = 2**12
#: Files of one frame that are stored; at most twenty of a message are used.
MAX_FILES = 100

#: Stores the content of a file, given in pieces, and returns what stands for it in the message.
#: Raises
#: ValueError when the pieces do.
StoreFile = Callable[[Iterable[bytes]], str]

_COUNTED = b",[{"
_TEXT = re.compile(rb'(?:[^"\\]++|\\u[0-9a-fA-F]{4}|\\[^u])*+', re.DOTALL)
#: Base64 as JSON encoders write it: some escape the slash, .NET the plus sign too.
_BASE64 = re.compile(rb"(?:[A-Za-z0-9+/=]++|\\[/nrt]|\\u002[bBfF]|\\u003[dD])*+")
_PREFIX = re.compile(rb"base64:\\?/\\?/")
_LONGEST_PREFIX = len(rb"base64:\/\/")
_BASE64_KEY = re.compile(rb'"base64"\s*:\s*"\Z')
_LONGEST_ESCAPE = 6
UNREADABLE_FILE = b"base64://..."


class FrameLimitExceeded(ValueError):  # noqa: N818 - the word says what happened
    """A frame holds more values than can be meant; the text says of what."""


def cut_large_values(data: bytes, keep: StoreFile) -> bytes:
    """The JSON ``data`` with its files kept and its long texts cut; as it is where it holds
    neither.

    Raises :class:`FrameLimitExceeded`, before anything is decoded. Invalid JSON may stay invalid,
    or lose its error. Apart from ``data`` and the result, one slice is held in memory.
    """
    return _Cut(data, keep).whole()


class _Cut:
    """One walk over the strings of a frame."""

    def __init__(self, data: bytes, keep: StoreFile) -> None:
        self._data, self._keep = data, keep
        self._pieces: list[bytes] = []
        self._size = self._values = self._files = 0
        self._text_left = TEXT_BYTES
        self._done = 0
        """What stands before is in the pieces, or cut."""

    def whole(self) -> bytes:
        data, at, strings = self._data, 0, 0
        while (opening := data.find(b'"', at)) >= 0:
            closing = _end(_TEXT, data, opening + 1, len(data))
            at = closing + 1
            strings += 1
            if strings > 2 * MAX_VALUES:  # one may be a key
                raise FrameLimitExceeded(f"more than {MAX_VALUES} values")
            if closing - opening > SHORT_TEXT_BYTES:
                self._structure(opening + 1)
                self._string(opening + 1, closing)
        self._structure(len(data))
        return b"".join(self._pieces) if len(self._pieces) > 1 else data

    def _structure(self, end: int) -> None:
        """Take what stands before ``end``: brackets, numbers and short strings."""
        size = end - self._done
        if self._size + size > MAX_BYTES:
            raise FrameLimitExceeded(f"more than {MAX_BYTES} bytes beside files and long texts")
        self._values += sum(self._data.count(sign, self._done, end) for sign in _COUNTED)
        if self._values > MAX_VALUES:
            raise FrameLimitExceeded(f"more than {MAX_VALUES} values")
        self._add(self._data[self._done : end] if size < len(self._data) else self._data)
        self._done = end

    def _string(self, start: int, end: int) -> None:
        """Take the long string between ``start`` and ``end``, its files and its text each in their
        way."""
        for begin, content, stop in self._long_files(start, end):
            self._text(begin)
            self._add(self._stand_in(content, stop))
            self._done = stop
        self._text(end)

    def _text(self, end: int) -> None:
        start, size = self._done, end - self._done
        if size <= max(self._text_left, SHORT_TEXT_BYTES):
            self._text_left -= size
            self._add(self._data[start:end])
        else:
            stop = _end(_TEXT, self._data, start, start + max(self._text_left, 0))
            while stop > start and self._data[stop] & 0xC0 == 0x80:  # amidst a character
                stop -= 1
            self._text_left -= stop - start
            self._add(self._data[start:stop])
            self._add(f"……（略去 {end - stop}{CUT_END}".encode())
        self._done = end

    def _long_files(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Where files in a string begin, their ``base64://`` included, where their content does,
        and where they end."""
        data, at = self._data, start
        if _BASE64_KEY.search(data[max(0, start - 64) : start]):
            at = _end(_BASE64, data, start, end)
            if at < end:
                at = start  # it begins with the prefix as well
            else:
                yield start, start, end
        for _ in range(MAX_VALUES):
            found = _find(_PREFIX, data, at, end)
            if not found:
                return
            begin, content = found.span()
            at = _end(_BASE64, data, content, end)
            if at - content > SHORT_FILE_BYTES:
                yield begin, content, at

    def _stand_in(self, begin: int, end: int) -> bytes:
        """What stands for the file between ``begin`` and ``end``; Base64 that is none where it
        cannot be read."""
        self._files += 1
        if self._files > MAX_FILES:
            return UNREADABLE_FILE
        try:
            return self._keep(_decoded(self._texts(begin, end))).encode()
        except ValueError:
            return UNREADABLE_FILE

    def _texts(self, begin: int, end: int) -> Iterator[bytes]:
        while begin < end:
            matched = _BASE64.match(self._data, begin, min(end, begin + SLICE))
            assert matched  # noqa: S101 - it matches the empty text as well
            text, begin = matched[0], matched.end()
            yield json.loads(b'"' + text + b'"').encode() if b"\\" in text else text

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        self._pieces.append(piece)


def _decoded(texts: Iterable[bytes]) -> Iterator[bytes]:
    """The bytes that Base64 stands for, piece by piece. Raises ValueError where it is none."""
    rest = b""
    for text in texts:
        text = rest + b"".join(text.split())
        whole = len(text) // 4 * 4
        rest = text[whole:]
        yield base64.b64decode(text[:whole], validate=True)
    yield base64.b64decode(rest, validate=True)


def _end(pattern: re.Pattern[bytes], data: bytes, at: int, end: int) -> int:
    """Where the stretch from ``at`` on ends that ``pattern`` describes, ``end`` at most."""
    while True:
        limit = min(end, at + SLICE)
        matched = pattern.match(data, at, limit)
        assert matched  # noqa: S101 - it matches the empty text as well
        if matched.end() == at or matched.end() < limit - _LONGEST_ESCAPE:
            return matched.end()
        at = matched.end()


def _find(pattern: re.Pattern[bytes], data: bytes, at: int, end: int) -> re.Match[bytes] | None:
    """The first match of ``pattern``, which is no longer than :data:`_LONGEST_PREFIX`."""
    found = (
        pattern.search(data, start, min(end, start + SLICE + _LONGEST_PREFIX))
        for start in range(at, end, SLICE)
    )
    return next(filter(None, found), None)


# The part of a client's raw event that is recorded. Pure.

#: Bytes of a frame above which not all of it is kept.
KEPT_FRAME_BYTES = 2**16
#: Of such a frame: bytes of its beginning, fields at the top, and characters of their names and of
#: their values.
BEGINNING, FIELDS, NAME, VALUE = 2**14, 20, 40, 64


def truncate_frame(frame: dict[str, object], text: str, size: int) -> dict[str, object]:
    """A frame of ``size`` bytes as it is kept: its short fields, and the beginning of its ``text``.

    As JSON it takes less than :data:`KEPT_FRAME_BYTES` bytes, also where each character becomes an
    escape.
    """
    beginning = text[:BEGINNING].encode(errors="replace")[:BEGINNING].decode(errors="ignore")
    short = [
        (name, value)
        for name, value in frame.items()
        if len(name) <= NAME
        and (value is None or (isinstance(value, str | int | float) and len(str(value)) <= VALUE))
    ]
    return {**dict(short[:FIELDS]), "cut": {"bytes": size, "beginning": make_storable(beginning)}}


# Merged forwards nest a few levels for each forward inside a forward; what walks over
# a frame later recurses, so the bound stays far below Python's.
MAX_DEPTH = 128
EXCERPT_CHARS = 120
_RESPONSE_KEYS = ("retcode", "status", "echo")
_UNSTORABLE_ESCAPE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
_SECRET = re.compile(
    r"""(token|[rps]key|cookies?|secret|password|authorization)(\\?["']?\s*(?:[:=]|%3D)\s*)(\\?["'][^"']*|(?:bearer\s+)?[^\s&,;\]}"']+)""",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class MalformedFrame:
    """A frame that is neither an event nor a response. It is logged and dropped; the socket
    stays."""

    reason: str
    excerpt: str
    """Its beginning: one printable line of at most 120 characters, secrets masked."""


def decode_frame(data: str | bytes, size: int = 0) -> Event | ActionResponse | MalformedFrame:
    """One WebSocket message, text or binary, as what it says. Never raises.

    ``size`` is its size before large values were cut; only part of a large event is recorded. Whole
    floats are read as exact integers, for clients send ids as floats; see
    :func:`onebot.protocol.segments.plain_number`. Of a key given twice the last value counts. NUL
    and lone surrogates, which could not be stored, become U+FFFD.
    """
    try:
        text = data if isinstance(data, str) else data.decode()
        frame = _decoder.decode(text)
    except UnicodeDecodeError:
        return _malformed("not UTF-8", data)
    except RecursionError:
        return _malformed("nested too deeply", data)
    except (ValueError, ArithmeticError) as error:
        return _malformed(f"not JSON: {error}", data)
    # Each level needs a bracket, so an ordinary frame is not walked at all.
    if text.count("{") + text.count("[") > MAX_DEPTH and _is_too_deep(frame):
        return _malformed("nested too deeply", data)
    if not isinstance(frame, dict):
        return _malformed("not an object", data)
    result = _classify(make_storable(frame) if _UNSTORABLE_ESCAPE.search(text) else frame)
    if (
        isinstance(result, MessageEvent | OtherEvent)
        and (size := max(size, _bytes_of(data))) > KEPT_FRAME_BYTES
    ):
        result = replace(result, raw=truncate_frame(result.raw, text, size))
    return _malformed(result, data) if isinstance(result, str) else result


def shrink_frame(data: str | bytes, keep: StoreFile) -> bytes | MalformedFrame:
    """What of a large frame is to be decoded; see
    :func:`onebot.protocol.frames.cut_large_values`."""
    try:
        return cut_large_values(data.encode() if isinstance(data, str) else data, keep)
    except FrameLimitExceeded as reason:
        return _malformed(str(reason), data)


def _classify(frame: dict[str, object]) -> Event | ActionResponse | str:
    """What ``frame`` is, or the reason why it is nothing."""
    if "post_type" in frame:
        if no_id := find_no_id(frame):
            return f"an event whose {no_id} is no id"
        event = parse_event(frame)
        too_many = isinstance(event, MessageEvent) and len(event.segments) > MAX_SEGMENTS
        return f"more than {MAX_SEGMENTS} segments" if too_many else event
    if "detail_type" in frame and ("self" in frame or "type" in frame):
        return "an event of OneBot 12, this server speaks OneBot 11"
    if any(key in frame for key in _RESPONSE_KEYS):
        return parse_response(frame)
    return "neither event nor response"


def _bytes_of(data: str | bytes) -> int:
    """The bytes of a frame; of a short one, its characters will do."""
    return (
        len(data)
        if isinstance(data, bytes) or len(data) <= KEPT_FRAME_BYTES // 4
        else len(data.encode(errors="replace"))
    )


def _is_too_deep(value: object) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [child for item in level for child in _children(item)]
        if not level:
            return False
    return True


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _malformed(reason: str, data: str | bytes) -> MalformedFrame:
    start = data[:EXCERPT_CHARS]
    text = start if isinstance(start, str) else start.decode(errors="replace")
    line = "".join(char if char.isprintable() else " " for char in _SECRET.sub(r"\1\2***", text))
    return MalformedFrame(reason, line[:EXCERPT_CHARS])


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


_decoder = json.JSONDecoder(
    parse_float=lambda digits: plain_number(Decimal(digits)), parse_constant=_refuse_constant
)
