"""How much of an endpoint's answer is read: counted while it is read and unpacked, whatever its
headers promise."""

from collections.abc import AsyncIterator

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


class AnswerTooLong(LLMError):  # noqa: N818 - it says what is wrong
    """An answer of more than ``limit`` bytes. It is not retried: that would cost the same again."""

    def __init__(self, limit: int = ANSWER_LIMIT) -> None:
        super().__init__(f"the answer is longer than {limit >> 20} MiB")


async def limit_response(response: httpx2.Response) -> None:
    """Limit what will be read of ``response``, whose body is still on the wire.

    A response hook of a client. Raises :class:`AnswerTooLong`, here or while the body is read;
    the connection is closed then. A body that is no answer ends at its limit instead.
    """
    limit, length = _limit(response), response.headers.get("content-length", "")
    promised = int(length) if length.isdecimal() and len(length) < 20 else 0
    if response.is_success and promised > limit:
        raise AnswerTooLong(limit)
    response.stream = _LimitedAnswer(response.stream, limit)
    if "content-encoding" in response.headers:
        packed = httpx2.Response(
            response.status_code,
            headers=response.headers,
            stream=response.stream,
            request=response.request,
        )
        del response.headers["content-encoding"]
        response.stream = _LimitedAnswer(_Unpacked(packed), limit)


def _limit(response: httpx2.Response) -> int:
    if not response.is_success:
        return ERROR_LIMIT
    return STREAM_LIMIT if comes_in_events(response) else ANSWER_LIMIT


def comes_in_events(response: httpx2.Response) -> bool:
    """Whether ``response`` says that it comes in events; some do although nobody asked for them."""
    return response.headers.get("content-type", "").lower().startswith("text/event-stream")


class _LimitedAnswer(httpx2.AsyncByteStream):
    """The first ``limit`` bytes of ``stream``; more of them in an answer are an error."""

    def __init__(self, stream: object, limit: int) -> None:
        assert isinstance(stream, httpx2.AsyncByteStream)  # noqa: S101 - the client is asynchronous
        self._stream = stream
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._limit
        async for chunk in self._stream:
            if len(chunk) > left and self._limit != ERROR_LIMIT:
                raise AnswerTooLong(self._limit)
            yield chunk[:left]
            left -= len(chunk)
            if left < 0:
                return

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Unpacked(httpx2.AsyncByteStream):
    """What is in the body of ``packed``, in pieces of at most 1 MiB however small the chunk that
    they come from."""

    def __init__(self, packed: httpx2.Response) -> None:
        self._packed = packed

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._packed.aiter_bytes()

    async def aclose(self) -> None:
        await self._packed.aclose()
