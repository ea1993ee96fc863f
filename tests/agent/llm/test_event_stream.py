"""Server-Sent Events as endpoints send them, cut anywhere, slow, endless, or none at all."""

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Iterable

import httpx2
import pytest
from hypothesis import given, strategies as st

from agent.domain.errors import LLMError, LLMTimeout
from agent.llm.answers import reading
from agent.llm.answers.bounds import AnswerTooLong
from agent.llm.answers.reading import ChunkAssembler, read_events
from tests.scripted_model import Call, calls

STREAM = (
    ": OPENROUTER PROCESSING\n\n"
    'data: {"a": "你好 🙂"}\n\n'
    ': keep-alive\r\ndata:{"b":\r\ndata: 1}\r\n\r\n'
    'event: message\rid: 7\rretry: 10\rdata: {"c": 2}\r\r'
    "data:\n\n"
    "data: [DONE]\n\n"
).encode()
EVENTS = ['{"a": "你好 🙂"}', '{"b":\n1}', '{"c": 2}']


async def pieces(chunks: Iterable[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def read(*chunks: bytes) -> list[str]:
    return [event async for event in read_events(pieces(chunks), piece_seconds=5)]


@given(st.sets(st.integers(1, len(STREAM) - 1)))
def test_events_are_the_same_wherever_they_are_cut(cuts):
    ends = [0, *sorted(cuts), len(STREAM)]
    chunks = [STREAM[a:b] for a, b in itertools.pairwise(ends)]
    assert asyncio.run(read(*chunks)) == EVENTS


async def test_byte_after_byte_gives_the_same_events():
    assert await read(*(bytes([byte]) for byte in STREAM)) == EVENTS


@pytest.mark.parametrize("end", [b"", b"\n", b"\ndata: [DONE]", b"\n\ndata: [DONE]\n"])
async def test_the_last_event_needs_no_empty_line(end):
    assert await read(b'data: {"a": 1}' + end) == ['{"a": 1}']


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (b'event: error\ndata: {"error": {"code": 1}}\n\n', {"code": 1}),
        (b'event: error\ndata: {"message": "busy"}\n\n', {"message": "busy"}),
        (b"event: error\ndata: busy\n\n", "busy"),
        (b'error: {"code": 400}\n\ndata: [DONE]\n\n', {"code": 400}),
        (b'data: {"error": "busy"}\n\n', "busy"),
    ],
)
async def test_errors_come_in_one_form(sent, error):
    (event,) = await read(sent)
    assert json.loads(event) == {"error": error}


async def test_an_answer_that_is_not_streamed_is_handed_on():
    sent = b'\n\n\xef\xbb\xbf{\n  "choices": [],\n\n "x": "data: 1"\n}\n'
    (event,) = await read(sent[:9], sent[9:])
    assert json.loads(event) == {"choices": [], "x": "data: 1"}


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (b"\n<!DOCTYPE html>\n<title>Sign in", "a web page .*: <!DOCTYPE html>"),
        (b"upstream connect error", "something else .*: upstream connect error"),
    ],
)
async def test_what_is_neither_events_nor_json_is_refused(sent, words):
    with pytest.raises(LLMError, match=words):
        await read(sent)


async def test_nothing_is_no_event():
    assert await read() == []
    assert await read(b"", b"\n", b": hm\n\n") == []


class Held:
    """A body of which more comes when the test lets it."""

    def __init__(self, *first: bytes) -> None:
        self.more: asyncio.Queue[bytes | None] = asyncio.Queue()
        for chunk in first:
            self.more.put_nowait(chunk)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if (chunk := await self.more.get()) is None:
            raise StopAsyncIteration
        return chunk


async def test_a_pause_after_the_first_byte_has_an_end():
    with pytest.raises(LLMTimeout, match=r"in the middle of its answer: nothing came for 0\.01 s"):
        await anext(read_events(Held(b": hm\n"), piece_seconds=0.01))


async def test_the_first_byte_may_take_longer():
    """Only the limit of the whole call ends the wait for it."""
    events = read_events(Held(), piece_seconds=0.001)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await anext(events)


async def test_a_stream_that_is_not_closed_ends_at_done():
    held = Held(b"data: 1\n\ndata: [DONE]\n")
    assert [event async for event in read_events(held, piece_seconds=30)] == ["1"]


async def test_the_end_behind_done_is_read_so_that_the_connection_can_be_used_again():
    held = Held(b"data: 1\n\ndata: [DONE]\n\n", b": bye\n\n")
    held.more.put_nowait(None)
    assert [event async for event in read_events(held, piece_seconds=30)] == ["1"]
    assert held.more.empty()


async def test_a_lost_connection_is_told():
    async def cut() -> AsyncIterator[bytes]:
        yield b"data: 1\n\ndata: 2"
        raise ConnectionResetError

    events = read_events(cut(), piece_seconds=5)
    assert await anext(events) == "1"
    with pytest.raises(ConnectionResetError):
        await anext(events)


async def test_a_reader_that_stops_early_leaves_the_body_to_its_owner():
    held = Held(b"data: 1\n\ndata: 2\n\n", b"data: 3\n\n")
    async with contextlib.aclosing(read_events(held, piece_seconds=5)) as events:
        assert await anext(events) == "1"
    assert held.more.qsize() == 1


@pytest.mark.parametrize("line", [b"x" * 10, b"data: x\n", b": x", b'{"a":\n'])
async def test_neither_a_line_nor_an_event_nor_a_document_is_endless(monkeypatch, line):
    monkeypatch.setattr(reading, "LINE_LIMIT", 1_000)
    with pytest.raises(AnswerTooLong):
        await read(b"data: \n" if line[:1] == b"x" else b"", *([line] * 1_000))


async def test_the_whole_is_not_endless(monkeypatch):
    monkeypatch.setattr(reading, "STREAM_LIMIT", 2**20)
    with pytest.raises(AnswerTooLong, match="longer than 1 MiB"):
        await read(*([b": keep-alive\n\n" * 1_000] * 100))


async def test_a_streamed_answer_is_the_same_as_an_unstreamed_one(model):
    answer = calls(Call("f", {"city": "北京"}), content="wait 🙂", reasoning_content="I wonder")
    model.script([answer, answer])
    question = {"messages": [], "stream_options": {"include_usage": True}}
    async with httpx2.AsyncClient(base_url=model.url) as client:
        whole = (await client.post("chat/completions", json=question)).json()
        asked = client.stream("POST", "chat/completions", json=question | {"stream": True})
        assembler = ChunkAssembler()
        async with asked as response:
            async for event in read_events(response.aiter_bytes(), piece_seconds=5):
                assembler.add(json.loads(event))
    assert {**assembler.body(), "created": whole["created"]} == whole
