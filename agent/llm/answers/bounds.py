"""How much of an endpoint's answer is read: counted while it is read and unpacked, whatever its
headers promise."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2

from agent.domain.errors import LLMError

ANSWER_LIMIT = 8 * 2**20
"""Bytes of an answer, packed and unpacked."""
STREAM_LIMIT = 8 * ANSWER_LIMIT
"""Bytes of an answer that is streamed: each token, some four bytes, comes in an event of 200 to
400."""
ERROR_LIMIT = 64 * 2**10
"""Bytes of what is no answer (an error page, a redirect); the rest is not read, for only its
beginning is quoted."""

CHUNK = 16 * 2**10
"""Bytes that are read at a time: unpacked, they may be a thousand times more."""


class AnswerTooLong(LLMError):  # noqa: N818 - it says what is wrong
    """An answer of more than ``limit`` bytes. It is not retried: that would cost the same again."""

    def __init__(self, limit: int = ANSWER_LIMIT) -> None:
        super().__init__(f"the answer is longer than {limit >> 20} MiB")


def limit_answer(answer: Any) -> httpx2.Response:
    """``answer``, an ``aiohttp.ClientResponse`` whose body is still on the wire, unpacked, and with
    a limit to what will be read of it.

    Raises :class:`AnswerTooLong`, here or while the body is read. A body that is no answer ends at
    its limit instead.
    """
    is_success = 200 <= answer.status < 300
    limit = STREAM_LIMIT if comes_in_events(answer.headers) else ANSWER_LIMIT
    if not is_success:
        limit = ERROR_LIMIT
    elif (answer.content_length or 0) > limit:
        raise AnswerTooLong(limit)
    chunks = _limited(answer.content.iter_chunked(CHUNK), limit)
    response = httpx2.Response(answer.status, headers=answer.raw_headers, content=chunks)
    if "content-encoding" not in response.headers:
        return response
    # In pieces of at most 1 MiB, however small the chunk that they come from.
    unpacked = _limited(response.aiter_bytes(), limit)
    headers = response.headers.copy()
    del headers["content-encoding"]
    return httpx2.Response(answer.status, headers=headers, content=unpacked)


async def _limited(chunks: AsyncIterator[bytes], limit: int) -> AsyncIterator[bytes]:
    """The first ``limit`` bytes of ``chunks``; more of them in an answer are an error."""
    left = limit
    async for chunk in chunks:
        if len(chunk) > left and limit != ERROR_LIMIT:
            raise AnswerTooLong(limit)
        yield chunk[:left]
        left -= len(chunk)
        if left < 0:
            return


def comes_in_events(headers: Mapping[str, str]) -> bool:
    """Whether an answer says that it comes in events; some do although nobody asked for them."""
    return headers.get("content-type", "").lower().startswith("text/event-stream")


def is_plain(answer: Any, *, is_streamed: bool) -> bool:
    """Whether ``answer``, an ``aiohttp.ClientResponse``, is a success of which the whole body is
    JSON as it comes, where it was to be streamed or not."""
    headers = answer.headers
    if not 200 <= answer.status < 300 or "content-encoding" in headers:
        return False
    if is_streamed:
        return "json" in headers.get("content-type", "")
    return not comes_in_events(headers)


async def read_plain(answer: Any) -> bytes:
    """The body of ``answer`` (:func:`is_plain`). Raises :class:`AnswerTooLong`, and what aiohttp
    does where it ends in the middle."""
    content, left, pieces = answer.content, ANSWER_LIMIT, []
    if (answer.content_length or 0) > left:
        raise AnswerTooLong(ANSWER_LIMIT)
    while not content.at_eof():
        pieces.append(await content.readany())
        left -= len(pieces[-1])
        if left < 0:
            raise AnswerTooLong(ANSWER_LIMIT)
    return b"".join(pieces)
