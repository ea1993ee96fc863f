"""The JSON in an endpoint's answer, whole or streamed, as a database can hold it."""

import asyncio
import json
import math
from contextlib import aclosing

import httpx2

from agent.domain.errors import LLMError
from agent.llm.answers.chunks import ChunkAssembler
from agent.llm.answers.event_stream import StreamEnd, read_events
from agent.llm.errors.failures import EXCERPT, FailedTry, error_try, unusable_try
from agent.llm.errors.refusals import RefusalKind
from tools.text.storable import make_storable

#: Bytes of an answer from which on it is parsed in a thread, so that the event loop is not blocked.
LARGE_ANSWER = 256 * 2**10
#: Values in an answer, at most: each takes memory, however few bytes it is written in.
VALUES_LIMIT = 1_000_000


async def read_json(response: httpx2.Response) -> object:
    """The body of ``response``, whose status is a success.

    Raises :class:`LLMError`, and :class:`agent.llm.errors.failures.FailedTry` for what is no JSON,
    or an error after all.
    """
    content = await response.aread()
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
        return await read_json(response)
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
    if size > LARGE_ANSWER:
        return await asyncio.to_thread(_checked, assembler.body())
    return _checked(assembler.body())


def _parse(content: bytes) -> object:
    return _checked(_load(content))


def _load(content: bytes | str) -> object:
    if isinstance(content, bytes):
        values = content.count(b",") + content.count(b"[") + content.count(b"{")
    else:
        values = content.count(",") + content.count("[") + content.count("{")
    if values > VALUES_LIMIT:
        raise LLMError(f"the answer holds more than {VALUES_LIMIT:,} values")
    return json.loads(content, parse_constant=_no_number, parse_float=_finite)


def _checked(answer: object) -> object:
    """``answer`` without what no database can hold. Raises
    :class:`agent.llm.errors.failures.FailedTry` where it is an error."""
    if isinstance(answer, dict) and answer.get("error"):
        said = {key: value for key, value in answer.items() if key != "choices"}
        raise error_try(answer["error"], json.dumps(said)[:65_536])
    return make_storable(answer)


def _no_number(_word: str) -> None:
    """NaN and the like, which some endpoints write where they are asked for nothing, and no
    database takes as JSON."""


def _finite(text: str) -> float | None:
    return number if math.isfinite(number := float(text)) else None
