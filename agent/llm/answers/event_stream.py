"""Reading a streamed answer: the Server-Sent Events that OpenAI-compatible endpoints send.

The format is https://html.spec.whatwg.org/multipage/server-sent-events.html; what endpoints make
of it is told where it is dealt with.
"""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass

from agent.domain.errors import LLMError, LLMTimeout
from agent.llm.answers.bounds import ANSWER_LIMIT, STREAM_LIMIT, AnswerTooLong

LINE_LIMIT = ANSWER_LIMIT
"""Bytes of one line or event: none is longer than a whole answer may be."""
DRAIN_SECONDS = 0.2
"""How long the end of the body is waited for behind ``[DONE]``, so that its connection can be used
again."""
EXCERPT = 500
DONE = "[DONE]"
_FIELD = re.compile(rb"(?:data|event|id|retry|error)?(?::|\Z)")
_BOM = b"\xef\xbb\xbf"


@dataclass(slots=True)
class StreamEnd:
    """How a stream ended: with ``[DONE]``, or else when its body did."""

    is_marked: bool = False


async def read_events(
    chunks: AsyncIterator[bytes], *, piece_seconds: float, end: StreamEnd | None = None
) -> AsyncGenerator[str, None]:
    """The data of each event in ``chunks``, which are the body of an answer cut anywhere, up to
    ``[DONE]`` or its end.

    An endpoint that does not stream and sends its answer, or an error, as one JSON document yields
    that document. An event that is an error yields ``{"error": …}`` whatever its form.

    Raises :class:`LLMTimeout` when nothing comes for ``piece_seconds``, counted from the first byte
    on: until then, a model may be loaded or think. Everything is a sign of life, comments too, so
    the caller sets a limit to the whole. Raises :class:`AnswerTooLong`, and :class:`LLMError` for
    what is neither events nor JSON. What ``chunks`` raises goes through. ``chunks`` is not closed:
    that is for whom it belongs to, also after cancellation. ``end`` is told whether ``[DONE]``
    came.
    """
    end = end or StreamEnd()
    lines, events = _Lines(), _Events()
    seconds, size = None, 0
    while (chunk := await _next(chunks, seconds)) is not None:
        size += len(chunk)
        if size > STREAM_LIMIT:
            raise AnswerTooLong(STREAM_LIMIT)
        seconds = piece_seconds if size else None
        for line in lines.feed(chunk):
            for event in events.feed(line):
                if event == DONE:
                    end.is_marked = True
                    await _drain(chunks)
                    return
                yield event
    for event in events.end(lines.rest()):
        if event != DONE:
            yield event
        end.is_marked |= event == DONE


async def _next(chunks: AsyncIterator[bytes], seconds: float | None) -> bytes | None:
    """The next of ``chunks``, None at their end. Raises :class:`LLMTimeout`."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await anext(chunks, None)
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise LLMTimeout(
            f"the model stopped in the middle of its answer: nothing came for {seconds:g} s"
        ) from error


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    # The answer is whole: how its connection ends does not matter.
    with contextlib.suppress(Exception):
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _rest in chunks:
                pass


class _Lines:
    """Lines out of pieces that are cut anywhere. They end in a line feed, a carriage return or both
    as the format has it."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []
        self._size = 0
        self._after_return = False

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that end in ``piece``. Raises :class:`AnswerTooLong`."""
        if not piece:
            return []
        if self._after_return:
            piece = piece.removeprefix(b"\n")
        self._after_return = piece.endswith(b"\r")
        lines = piece.splitlines()
        rest = lines.pop() if lines and not piece.endswith((b"\n", b"\r")) else b""
        if lines and self._begun:
            lines[0] = self.rest() + lines[0]
        if rest:
            self._begun.append(rest)
            self._size += len(rest)
        if self._size > LINE_LIMIT:
            raise AnswerTooLong(LINE_LIMIT)
        return lines

    def rest(self) -> bytes:
        """The line that has no end yet."""
        rest = b"".join(self._begun)
        self._begun.clear()
        self._size = 0
        return rest


class _Events:
    """Events out of lines, or the one JSON document that the lines are."""

    def __init__(self) -> None:
        self._data: list[bytes] = []
        self._size = 0
        self._is_error = False
        self._is_begun = False
        self._document: list[bytes] | None = None

    def feed(self, line: bytes) -> list[str]:
        """The events that ``line`` completes. Raises :class:`LLMError`, :class:`AnswerTooLong`."""
        self._size += len(line)
        if self._size > LINE_LIMIT:
            raise AnswerTooLong(LINE_LIMIT)
        if not self._is_begun:
            line = self._begin(line)
        if self._document is not None:
            self._document.append(line)
            return []
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data" and value.strip() == DONE.encode():
            return [*self._dispatch(), DONE]  # at once: the connection may stay open behind it
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._is_error = value.strip() == b"error"
        elif name == b"error":
            # llama.cpp until September 2025: https://github.com/ggml-org/llama.cpp/pull/16109
            self._data, self._is_error = [value], True
        return []

    def end(self, rest: bytes) -> list[str]:
        """The last event, for which no empty line has come: endpoints leave it out. Raises
        :class:`LLMError`."""
        events = self.feed(rest) if rest else []
        if self._document is not None:
            return [b"\n".join(self._document).decode(errors="replace")]
        return events + self._dispatch()

    def _begin(self, line: bytes) -> bytes:
        """Tell from the first ``line`` that is not empty what comes. DeepSeek sends empty ones
        until it answers: https://api-docs.deepseek.com/quick_start/rate_limit"""
        line = line.removeprefix(_BOM)
        if not (start := line.strip()):
            return b""
        self._is_begun = True
        if start.startswith((b"{", b"[")):
            self._document = []
        elif not _FIELD.match(line):
            excerpt = " ".join(line[: 4 * EXCERPT].decode(errors="replace").split())[:EXCERPT]
            what = "a web page" if start.startswith(b"<") else "something else"
            raise LLMError(f"the answer is {what} and not a stream of events: {excerpt}")
        return line

    def _dispatch(self) -> list[str]:
        data = b"\n".join(self._data).decode(errors="replace").strip()
        is_error, self._is_error = self._is_error, False
        self._data.clear()
        self._size = 0
        if not data:
            return []
        return [_as_error(data) if is_error else data]


def _as_error(data: str) -> str:
    """``data`` of an event of the type "error", which may lack the ``error`` around it."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        content = data
    is_wrapped = isinstance(content, dict) and "error" in content
    return data if is_wrapped else json.dumps({"error": content})
