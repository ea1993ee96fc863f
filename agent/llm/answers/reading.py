"""The JSON in an endpoint's answer, whole or streamed, as a database can hold it."""

import asyncio
import contextlib
import json
import math
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from io import StringIO
from typing import Any, TypeVar

import httpx2

from agent.domain.errors import LLMError, LLMTimeout
from agent.llm.answers.bounds import ANSWER_LIMIT, STREAM_LIMIT, AnswerTooLong
from agent.llm.errors.failures import EXCERPT, FailedTry, error_try, unusable_try
from agent.llm.errors.refusals import RefusalKind
from tools.text.storable import make_storable

LINE_LIMIT = ANSWER_LIMIT
"""Bytes of one line or event: none is longer than a whole answer may be."""
DRAIN_SECONDS = 0.2
"""How long the end of the body is waited for behind ``[DONE]``, so that its connection can be used
again."""
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


# Chunks of a streamed answer made into the one completion that they are. Pure.
#
# The API: https://platform.openai.com/docs/api-reference/chat-streaming. Where endpoints differ
# from it, the place that deals with that names them.

WHOLE = frozenset({"id", "type", "index", "role", "format", "signature"})
"""Texts that no endpoint sends in parts: what is repeated counts once."""
CHILDREN = frozenset({"function", "function_call"})
"""Objects whose texts come in parts; texts in other objects are whole."""
PARTED_BLOCKS = frozenset({"reasoning.text", "reasoning.summary", "text", "thinking"})
"""Types of blocks whose text comes in parts. What is encrypted comes whole."""
NOT_KEPT = frozenset({"choices", "obfuscation"})
"""Of a chunk: ``obfuscation`` is random, it only hides how long a piece is."""
NAME_LIMIT = 256
"""Characters from which on a name grows no more: each growth copies it."""
DEPTH = 3
"""Levels of an object of unknown meaning that are merged; below them the last one counts."""

_Container = TypeVar("_Container", "_Fields", "_Blocks", "_Calls")


class ChunkAssembler:
    """Takes the chunks of one answer, and makes the body that would have come unstreamed.

    Of several choices only the first counts. Memory and time are linear in what comes. The chunks
    are as ``json.loads`` made them, and belong to the assembler then. Halves of pairs of
    surrogates may stand in two chunks, so only the body is to be cleaned
    (:func:`tools.text.storable.make_storable`).
    """

    def __init__(self) -> None:
        self._top: dict[str, object] = {}
        self._choice: dict[str, object] | None = None
        self._message = _Fields()
        self._whole: dict[str, object] = {}
        """A message that came whole: an answer that is not streamed, or the end of one that is."""

    def add(self, chunk: object) -> None:
        """Take the next chunk, or several in a list. What is no object says nothing."""
        for part in chunk if isinstance(chunk, list) else [chunk]:
            if isinstance(part, dict):
                self._add(part)

    @property
    def is_open(self) -> bool:
        """Whether more is to come: nothing yet, or pieces of a message without a finish reason."""
        if self._choice is None:
            return not self._top
        return not (self._choice.get("finish_reason") or self._whole or self._top.get("error"))

    def body(self) -> dict[str, Any]:
        """The completion so far, as :func:`agent.llm.answers.completion.parse_completion` reads it.

        ``finish_reason`` is None where the stream ended without one. ``error`` is there if a chunk
        was an error, beside what the model had said until then. Without any choice ``choices`` is
        empty.
        """
        body = {**self._top, "object": "chat.completion", "choices": []}
        if self._choice is None:
            return body
        choice = dict(self._choice)
        if "usage" in choice:
            # Moonshot: https://github.com/caudena/beam_weaver/releases/tag/v0.1.12
            body.setdefault("usage", choice.pop("usage"))
        parts = self._message.plain()
        said = {key: value for key, value in parts.items() if value}
        message = {"role": "", "content": None, **parts, **self._whole, **said}
        message["role"] = message["role"] or "assistant"
        body["choices"] = [{"index": 0, "finish_reason": None, **choice, "message": message}]
        return body

    def _add(self, chunk: dict[str, object]) -> None:
        for key, value in chunk.items():
            if value is not None and value != "" and key not in NOT_KEPT:
                self._top[key] = value
        if chunk.get("object") == "error":
            # vLLM, where the chunk is the error itself: https://github.com/block/goose/pull/8031
            self._top.setdefault("error", chunk)
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else []:
            if isinstance(choice, dict) and choice.get("index") in (0, None):
                self._add_choice(choice)

    def _add_choice(self, choice: dict[str, object]) -> None:
        if self._choice is None:
            self._choice = {}
        for key, value in choice.items():
            if key == "delta" and isinstance(value, dict):
                self._message.add(value)
            elif key == "message" and isinstance(value, dict):
                self._whole = value
            elif value is not None and value != "" and key not in ("delta", "message", "index"):
                self._choice[key] = value


class _Fields:
    """An object that comes in parts: texts are joined, lists grow, of all else the last counts."""

    def __init__(self) -> None:
        self.held: dict[str, object] = {}

    def add(self, part: dict[str, object]) -> None:
        for key, value in part.items():
            held = self.held.get(key)
            if value is None:
                self.held.setdefault(key, None)
            elif key == "tool_calls":
                self._container(key, _Calls).add(value)
            elif isinstance(value, list):
                self._container(key, _Blocks).extend(value)
            elif isinstance(value, str):
                self._add_text(key, value, held)
            elif key in CHILDREN and isinstance(value, dict):
                self._container(key, _Fields).add(value)
            elif isinstance(value, dict) and isinstance(held, dict):
                _update(held, value)
            else:
                self.held[key] = value

    def plain(self) -> dict[str, object]:
        return {key: _plain(value) for key, value in self.held.items()}

    def _add_text(self, key: str, text: str, held: object) -> None:
        if isinstance(held, StringIO):
            held.write(text)
        elif isinstance(held, _Blocks):
            held.extend([_text_block(text)] if text else [])
        elif key in WHOLE:
            self.held[key] = held or text
        elif key == "name":
            self.held[key] = _joined_name(held, text)
        elif text or not held:
            begun = self.held[key] = StringIO()
            begun.write(text)

    def _container(self, key: str, kind: type[_Container]) -> _Container:
        held = self.held.get(key)
        if isinstance(held, kind):
            return held
        container = self.held[key] = kind()
        if isinstance(container, _Blocks) and isinstance(held, StringIO) and held.getvalue():
            container.extend([_text_block(held.getvalue())])
        return container


class _Blocks:
    """A list that comes in parts: each part holds further items, or goes on with the last block.

    OpenRouter tells blocks apart by type alone, for its ``index`` may be 0 in all of them; sent
    back unmerged, or merged across blocks, they are refused:
    https://github.com/OpenRouterTeam/ai-sdk-provider/issues/519
    https://github.com/agno-agi/agno/issues/8794. Mistral streams content as such a list:
    https://github.com/braintrustdata/braintrust-sdk-javascript/issues/1857
    """

    def __init__(self) -> None:
        self._items: list[Any] = []

    def extend(self, items: list[Any]) -> None:
        for item in items:
            last = self._items[-1] if self._items else None
            if not isinstance(item, dict):
                self._items.append(item)
            elif isinstance(last, _Fields) and _continues(last.held, item):
                last.add(item)
            else:
                self._items.append(_Fields())
                self._items[-1].add(item)

    def plain(self) -> list[object]:
        items = [_plain(item) for item in self._items]
        indexed = [item for item in items if isinstance(item, dict) and "index" in item]
        if len({str(item["index"]) for item in indexed}) < len(indexed):
            for position, item in enumerate(indexed):
                item["index"] = position
        return items


def _continues(block: dict[str, object], part: dict[str, object]) -> bool:
    """Whether ``part`` goes on with ``block``, which ends with its signature."""
    return (
        part.get("type") in PARTED_BLOCKS
        and part["type"] == block.get("type")
        and not block.get("signature")
        and part.get("index") in (None, block.get("index"))
        and (not part.get("id") or part["id"] == block.get("id", part["id"]))
    )


class _Calls:
    """Tool calls, in the order in which they begin."""

    def __init__(self) -> None:
        self._made: list[Any] = []
        self._last: _Fields | None = None
        self._latest: dict[int, _Fields] = {}
        self._by_id: dict[tuple[int | None, str], _Fields] = {}

    def add(self, parts: object) -> None:
        for part in parts if isinstance(parts, list) else [parts]:
            if isinstance(part, dict):
                self._find(part).add(part)
            else:
                self._made.append(part)

    def plain(self) -> list[object]:
        return [self._plain(call) for call in self._made]

    def _find(self, part: dict[str, object]) -> _Fields:
        """The call that ``part`` is of, begun if there is none.

        Gemini leaves the index out (https://github.com/noho/dayu-agent/issues/82); Ollama, and
        others at times, give 0 to every call, each with its id and name
        (https://github.com/ollama/ollama/issues/15457). The id may be in the first part alone, or
        in every one, or empty in the rest (https://github.com/InternLM/lmdeploy/issues/3412).
        Another id without a name begins no call.
        """
        index, call_id, function = (part.get(key) for key in ("index", "id", "function"))
        index = index if isinstance(index, int) else None
        call_id = call_id if isinstance(call_id, str) else ""
        is_named = isinstance(function, dict) and bool(function.get("name"))
        latest = self._last if index is None else self._latest.get(index)
        call = self._by_id.get((index, call_id)) if call_id else None
        if call is None and latest is not None:
            is_next = is_named and (index is None or bool(call_id and latest.held.get("id")))
            call = None if is_next else latest
        if call is None:
            call = _Fields()
            self._made.append(call)
        self._last = call
        if index is not None:
            self._latest[index] = call
        if call_id:
            self._by_id[index, call_id] = self._by_id[None, call_id] = call
        return call

    def _plain(self, call: object) -> object:
        if not isinstance(call, _Fields):
            return call
        fields = {"id": None, "type": "function", **call.plain()}
        fields.pop("index", None)
        return fields


def _plain(value: object) -> object:
    if isinstance(value, StringIO):
        return value.getvalue()
    return value.plain() if isinstance(value, (_Fields, _Blocks, _Calls)) else value


def _text_block(text: str) -> dict[str, object]:
    return {"type": "text", "text": text}


def _joined_name(held: object, text: str) -> str:
    """A name of which another part came: itself again (llama.cpp, NVIDIA), more of it, or its
    rest. https://github.com/ggml-org/llama.cpp/issues/13774"""
    before = held if isinstance(held, str) else ""
    if len(before) > NAME_LIMIT:
        return before
    return text if text.startswith(before) else before + text


def _update(old: dict[str, object], new: dict[str, object], depth: int = DEPTH) -> None:
    for key, value in new.items():
        held = old.get(key)
        if depth > 1 and isinstance(held, dict) and isinstance(value, dict):
            _update(held, value, depth - 1)
        elif value is not None:
            old[key] = value


#: Bytes of an answer from which on it is parsed in a thread, so that the event loop is not blocked.
LARGE_ANSWER = 256 * 2**10
#: Values in an answer, at most: each takes memory, however few bytes it is written in.
VALUES_LIMIT = 1_000_000
#: What stands in JSON that may hold what no database can: NUL and halves of pairs, escaped or not.
_UNSTORABLE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])|[\x00\xed]")


async def read_json(content: bytes) -> object:
    """What is in ``content``, the body of an answer whose status is a success.

    Raises :class:`LLMError`, and :class:`agent.llm.errors.failures.FailedTry` for what is no JSON,
    or an error after all.
    """
    try:
        if len(content) > LARGE_ANSWER:
            return await asyncio.to_thread(_parse, content)
        return _parse(content)
    except (ValueError, RecursionError) as error:
        text = content[: 8 * EXCERPT].decode(errors="replace")
        raise unusable_try(text) from error


async def read_streamed(response: httpx2.Response, piece_seconds: float) -> object:
    """As :func:`read_json`, of an answer that comes in events, or whole where the endpoint does not
    stream. Raises LLMTimeout too, when no piece comes for ``piece_seconds``, and FailedTry where it
    ends in the middle: without a finish reason and without ``[DONE]``."""
    if "json" in response.headers.get("content-type", ""):
        return await read_json(await response.aread())
    assembler, size, end = ChunkAssembler(), 0, StreamEnd()
    pieces = read_events(response.aiter_bytes(), piece_seconds=piece_seconds, end=end)
    async with aclosing(pieces) as events:
        async for event in events:
            size += len(event)
            try:
                assembler.add(_load(event))
            except (ValueError, RecursionError) as error:
                raise unusable_try(event[: 8 * EXCERPT]) from error
    if assembler.is_open and not end.is_marked:
        words = "the stream ended in the middle of the answer"
        raise FailedTry(words, RefusalKind.DOWN)
    body = _refused(assembler.body())
    if size > LARGE_ANSWER:
        return await asyncio.to_thread(make_storable, body)
    return make_storable(body)


def _parse(content: bytes) -> object:
    answer = _refused(_load(content))
    return make_storable(answer) if _UNSTORABLE.search(content) else answer


def _load(content: bytes | str) -> object:
    if isinstance(content, bytes):
        values = content.count(b",") + content.count(b"[") + content.count(b"{")
    else:
        values = content.count(",") + content.count("[") + content.count("{")
    if values > VALUES_LIMIT:
        raise LLMError(f"the answer holds more than {VALUES_LIMIT:,} values")
    # Some endpoints write NaN where they are asked for nothing, and no database takes it as JSON.
    return json.loads(
        content,
        parse_constant=lambda _word: None,
        parse_float=lambda text: number if math.isfinite(number := float(text)) else None,
    )


def _refused(answer: object) -> object:
    """``answer``. Raises :class:`agent.llm.errors.failures.FailedTry` where it is an error."""
    if isinstance(answer, dict) and answer.get("error"):
        said = {key: value for key, value in answer.items() if key != "choices"}
        raise error_try(answer["error"], json.dumps(said)[:65_536])
    return answer
