"""Large frames made small before they are decoded, so that their values are bounded.

The C code of Python's JSON holds every other thread up for as long as a string is long, and a frame
of 60 MiB would be copied a dozen times on its way. So large values are cut out of the text first:
Base64 files are stored on disk and replaced by their hash, and long texts are cut with a note of
the length left out. The work is done in slices, so that other threads can run in between.
"""

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator

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
            self._add(f"……（略去 {end - stop} 字节）".encode())
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
