"""The model client and model endpoints that no one of this project wrote."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest

from agent.domain.errors import LLMError
from agent.llm.answers.reading import ChunkAssembler, read_events
from agent.llm.client.client import OpenAIClient
from agent.llm.requests.base import LLMRequest
from tests.peers import Aimock, Llmock, Peer, client_of

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = [
    {"name": "get_weather", "description": "the weather of a city", "parameters_schema": CITY}
]
either_way = pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])


@pytest.fixture
async def connect() -> AsyncIterator[Callable[..., OpenAIClient]]:
    """Make clients: ``connect(peer, **endpoint)``."""
    clients = []

    def connect(peer: Peer, **endpoint: Any) -> OpenAIClient:
        clients.append(client_of(peer, **endpoint))
        return clients[-1]

    yield connect
    for client in clients:
        await client.close()


def asks(words: str, tools: list[dict[str, Any]] | None = None) -> LLMRequest:
    return LLMRequest([{"role": "user", "content": words}], tools or [])


async def streamed(peer: Peer, words: str) -> dict[str, Any]:
    """The body that ``peer`` streams as the answer to ``words``."""
    body = {
        "model": "gpt-test",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "user", "content": words}],
    }
    assembler = ChunkAssembler()
    async with (
        httpx2.AsyncClient(timeout=20) as client,
        client.stream("POST", f"{peer.url}/chat/completions", json=body) as response,
    ):
        async for event in read_events(response.aiter_bytes(), piece_seconds=20):
            assembler.add(json.loads(event))
    return assembler.body()


# --- aimock -------------------------------------------------------------------------


@either_way
async def test_aimock_answers(aimock: Aimock, connect, is_streamed):
    response = await connect(aimock, is_streamed=is_streamed).complete(asks("hello"))
    assert (response.text, response.finish_reason) == ("Hello! 你好 👋", "stop")
    assert response.output_tokens == 3


@either_way
async def test_aimock_calls_a_tool_and_reads_its_result(aimock: Aimock, connect, is_streamed):
    client, question = connect(aimock, is_streamed=is_streamed), asks("the weather?", WEATHER)
    response = await client.complete(question)
    (call,) = response.tool_calls
    assert (call.name, json.loads(call.arguments)) == ("get_weather", {"city": "北京"})
    result = {"role": "tool", "tool_call_id": call.call_id, "content": "sunny"}
    messages = [*question.messages, response.message, result]
    assert (await client.complete(LLMRequest(messages, WEATHER))).text == "It is sunny in 北京 🌞."


async def test_aimock_thinks(aimock: Aimock, connect):
    response = await connect(aimock).complete(asks("think"))
    assert response.recorded_message["reasoning_content"] == "First I think."
    message = (await streamed(aimock, "think"))["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == (
        "First I think.",
        "Then I answer.",
    )


@pytest.mark.parametrize(
    ("words", "told"), [("break", "not JSON: {malformed"), ("drop", "cannot be reached")]
)
async def test_aimock_fails(aimock: Aimock, connect, words, told):
    with pytest.raises(LLMError, match=told):
        await connect(aimock, timeout_seconds=1).complete(asks(words))


# --- llmock -------------------------------------------------------------------------


@either_way
async def test_llmock_calls_a_tool_and_reads_its_result(llmock: Llmock, connect, is_streamed):
    client, question = connect(llmock, is_streamed=is_streamed), asks("the weather?", WEATHER)
    response = await client.complete(question)
    (call,) = response.tool_calls
    assert (call.name, json.loads(call.arguments)) == ("get_weather", {"city": "mock-city"})
    result = {"role": "tool", "tool_call_id": call.call_id, "content": "sunny"}
    response = await client.complete(
        LLMRequest([*question.messages, response.message, result], WEATHER)
    )
    assert response.text
    assert not response.tool_calls


@either_way
async def test_llmock_limits_and_finds_its_client_patient(llmock: Llmock, connect, is_streamed):
    llmock.order({"type": "fail", "status": 429, "retry_after": 0.2, "times": 2})
    assert (await connect(llmock, is_streamed=is_streamed).complete(asks("hello"))).text
    assert [request["status"] for request in llmock.requests()] == [429, 429, 200]
    assert llmock.findings() == []


async def test_llmock_refuses_and_is_not_asked_again(llmock: Llmock, connect):
    llmock.order({"type": "fail", "status": 401})
    with pytest.raises(LLMError, match="answered 401"):
        await connect(llmock).complete(asks("hello"))
    assert (len(llmock.requests()), llmock.findings()) == (1, [])


async def test_llmock_breaks_a_call_off(llmock: Llmock, connect):
    llmock.order({"type": "tool_fault", "kind": "malformed_arguments"})
    (call,) = (await connect(llmock).complete(asks("the weather?", WEATHER))).tool_calls
    assert call.name == "get_weather"
    with pytest.raises(ValueError, match="Unterminated string"):
        json.loads(call.arguments)


async def test_llmock_ends_a_stream_early(llmock: Llmock):
    cut = {"type": "stream_fault", "kind": "truncate", "after_chunks": 2}
    llmock.order({"type": "reply", "text": "one two three"}, cut)
    (choice,) = (await streamed(llmock, "hello"))["choices"]
    assert (choice["message"]["content"].strip(), choice["finish_reason"]) == ("one", None)


@pytest.mark.parametrize(
    ("kind", "error"), [("disconnect", httpx2.HTTPError), ("malformed", ValueError)]
)
async def test_llmock_breaks_a_stream(llmock: Llmock, kind, error):
    llmock.order({"type": "stream_fault", "kind": kind, "after_chunks": 1})
    with pytest.raises(error):
        await streamed(llmock, "hello")
