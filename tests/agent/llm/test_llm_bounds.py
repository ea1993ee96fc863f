"""How much of an endpoint's answer is read, however it is sent: nothing here is a size that a
header promised."""

import asyncio
import gzip
import json
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from functools import cache
from itertools import chain, repeat

import pytest

from agent.domain.endpoint import Endpoint
from agent.domain.errors import LLMError
from agent.llm.answers.bounds import ANSWER_LIMIT
from agent.llm.answers.reading import VALUES_LIMIT
from agent.llm.client.client import OpenAIClient
from agent.llm.endpoints.embeddings import Embedder
from agent.llm.endpoints.transcription import Transcriber
from agent.llm.requests.base import LLMRequest
from tests.environment import PATIENCE
from tests.scripted_model import fails, returns, says

HELLO = LLMRequest([{"role": "user", "content": "hello"}])
CHUNK = b"x" * 65_536
BEGINNING = b'{"choices": [{"message": {"role": "assistant", "content": "'
Chunks = Callable[[], Iterable[bytes]]


class Flood:
    """A server that answers each request with one head and with chunks for as long as it is let."""

    def __init__(self, head: str, chunks: Chunks) -> None:
        self._head = head
        self._chunks = chunks
        self.requests = 0
        self.closed = asyncio.Event()
        """The client has hung up on an answer."""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            await reader.readexactly(length)
            self.requests += 1
            writer.write(f"HTTP/1.1 {self._head}\r\n\r\n".encode())
            for chunk in self._chunks():
                writer.write(chunk)
                await writer.drain()
                await asyncio.sleep(0)  # to drain is no pause while the client reads as fast
            await reader.read()
        except ConnectionError:
            pass
        finally:
            self.closed.set()
            writer.close()


@pytest.fixture
async def flood() -> AsyncIterator[Callable[..., Awaitable[tuple[Flood, OpenAIClient]]]]:
    """``flood(head, chunks)``: such a server, and a client of it."""
    opened: list[tuple[asyncio.Server, OpenAIClient]] = []

    async def flood(head: str, chunks: Chunks) -> tuple[Flood, OpenAIClient]:
        one = Flood(head, chunks)
        server = await asyncio.start_server(one.answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        opened.append(
            (
                server,
                OpenAIClient(
                    Endpoint(f"http://127.0.0.1:{port}/v1", ("k",), "m", timeout_seconds=20)
                ),
            )
        )
        return one, opened[-1][1]

    yield flood
    for server, client in opened:
        await client.close()
        server.close()


def chunked(parts: Iterable[bytes]) -> Iterable[bytes]:
    return (b"%x\r\n%b\r\n" % (len(part), part) for part in parts)


def endless() -> Iterable[bytes]:
    return chain([BEGINNING], repeat(CHUNK))


def packed(parts: Iterable[bytes]) -> Iterable[bytes]:
    packer = zlib.compressobj(wbits=31)
    return (
        piece
        for part in parts
        if (piece := packer.compress(part) + packer.flush(zlib.Z_SYNC_FLUSH))
    )


@cache
def bomb() -> bytes:
    return gzip.compress(BEGINNING + b"x" * 200 * 2**20 + b'"}}]}', 1)


EMPTY_BLOCKS = (
    zlib.compressobj(wbits=31).flush(zlib.Z_SYNC_FLUSH)[:10] + b"\x00\x00\x00\xff\xff" * 10_000
)
FLOODS = {
    "chunked without end": ("200 OK\r\nTransfer-Encoding: chunked", lambda: chunked(endless())),
    "without a length": ("200 OK\r\nConnection: close", endless),
    "a length of a terabyte": (f"200 OK\r\nContent-Length: {2**40}", endless),
    "a length that nothing follows": (f"200 OK\r\nContent-Length: {2**40}", tuple),
    "packed, in one chunk": (
        lambda: f"200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(bomb())}",
        lambda: [bomb()],
    ),
    "packed, without end": (
        "200 OK\r\nContent-Encoding: gzip\r\nConnection: close",
        lambda: packed(endless()),
    ),
    "packed nothing, without end": (
        "200 OK\r\nContent-Encoding: gzip\r\nConnection: close",
        lambda: chain([EMPTY_BLOCKS], repeat(EMPTY_BLOCKS[10:])),
    ),
    "packed twice": (
        "200 OK\r\nContent-Encoding: gzip, gzip\r\nConnection: close",
        lambda: [gzip.compress(bomb())],
    ),
}


@pytest.mark.parametrize("name", FLOODS)
async def test_an_answer_that_is_too_long_is_hung_up_on_and_not_asked_for_again(flood, name):
    head, chunks = FLOODS[name]
    server, client = await flood(head() if callable(head) else head, chunks)
    bomb()  # made here, so that its making is not counted
    tracemalloc.start()
    try:
        with pytest.raises(LLMError, match="longer than 8 MiB"):
            await client.complete(HELLO)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    await asyncio.wait_for(server.closed.wait(), PATIENCE)
    assert server.requests == 1
    assert peak < 4 * ANSWER_LIMIT


@pytest.mark.parametrize(
    "status", ["400 Bad Request", "307 Temporary Redirect\r\nLocation: /v1/elsewhere"]
)
async def test_of_an_error_without_end_only_the_beginning_is_read(flood, monkeypatch, status):
    monkeypatch.setattr("agent.llm.client.transport.MAX_RETRIES", 0)
    server, client = await flood(
        f"{status}\r\nTransfer-Encoding: chunked", lambda: chunked(repeat(CHUNK))
    )
    tracemalloc.start()
    try:
        with pytest.raises(LLMError):
            await client.complete(HELLO)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    await asyncio.wait_for(server.closed.wait(), PATIENCE)
    assert peak < ANSWER_LIMIT


async def test_an_error_without_end_is_tried_again_like_any_other(flood):
    head = "503 Down\r\nRetry-After: 0.01\r\nConnection: close"
    server, client = await flood(head, lambda: chain([b"overloaded "], repeat(CHUNK)))
    with pytest.raises(LLMError, match="answered 503: overloaded"):
        await client.complete(HELLO)
    assert server.requests == 4


async def test_vectors_and_transcripts_are_bounded_too(flood):
    _, client = await flood("200 OK\r\nConnection: close", endless)
    with pytest.raises(LLMError, match="longer than"):
        await Embedder(client).embed(["a"])
    with pytest.raises(LLMError, match="longer than"):
        await Transcriber(client).transcribe(b"x", "mp3", "audio/mpeg")


async def ask(url: str) -> str:
    client = OpenAIClient(Endpoint(url, ("k",), "m", timeout_seconds=20))
    try:
        return (await client.complete(HELLO)).text
    finally:
        await client.close()


@pytest.mark.parametrize("length", [1, 300_000, ANSWER_LIMIT - 1_000])
async def test_an_answer_within_the_bound_is_read_packed_or_not(model, length):
    plain = says("a" * length)
    model.script([plain, returns(gzip.compress(plain.body), headers={"Content-Encoding": "gzip"})])
    assert [len(await ask(model.url)), len(await ask(model.url))] == [length, length]


async def test_a_packed_error_is_quoted(model):
    body = gzip.compress(fails(400, message="no such model").body)
    model.script([returns(body, status=400, headers={"Content-Encoding": "gzip"})])
    with pytest.raises(LLMError, match="no such model"):
        await ask(model.url)


async def test_an_answer_of_very_many_values_is_not_made_into_objects(model):
    model.script([returns(b'{"choices": [%b]}' % b",".join([b"{}"] * VALUES_LIMIT))])
    with pytest.raises(LLMError, match="more than 1,000,000 values"):
        await ask(model.url)


async def test_a_long_answer_that_is_no_json_is_quoted_in_part(model):
    model.script([returns(b"[" + b" " * 300_000), returns(json.dumps("x" * 300_000).encode()[:-1])])
    for _ in range(2):
        with pytest.raises(LLMError, match="not JSON"):
            await ask(model.url)
