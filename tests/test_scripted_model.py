"""The scripted model, asked through the real client library."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import openai
import pytest

from tests.cast import PROBE, PROBE_ANSWER
from tests.scripted_model import (
    Call,
    ScriptedModel,
    call,
    calls,
    drops,
    fails,
    hangs,
    held,
    returns,
    says,
    streamed,
    streams,
)


@pytest.fixture
async def client(model: ScriptedModel) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(
        base_url=model.url, api_key="sk-test", max_retries=0, timeout=5
    ) as client:
        yield client


async def ask(client: openai.AsyncOpenAI, words: Any = "hello", model: str = "scripted") -> Any:
    answer = await client.chat.completions.create(
        model=model, messages=[{"role": "user", "content": words}]
    )
    return answer.choices[0].message


async def test_queued_answers_come_in_order(model, client):
    model.script(["one", says("two")])
    assert [(await ask(client)).content, (await ask(client)).content] == ["one", "two"]


async def test_requests_are_recorded_with_body_headers_and_path(model, client):
    model.script(["hi"])
    await ask(client, [{"type": "text", "text": "look "}, {"type": "text", "text": "here"}])
    (request,) = model.requests
    assert (request.path, request.model, request.last_text) == (
        "/v1/chat/completions",
        "scripted",
        "look here",
    )
    assert request.headers["authorization"] == "Bearer sk-test"


async def test_several_tool_calls_arrive_in_one_answer(model, client):
    model.script(
        [
            calls(
                Call("get_weather", {"city": "北京"}),
                Call("broken", "{not json", id="c2"),
                content="wait",
            )
        ]
    )
    message = await ask(client)
    assert message.content == "wait"
    assert json.loads(message.tool_calls[0].function.arguments) == {"city": "北京"}
    assert (message.tool_calls[1].id, message.tool_calls[1].function.arguments) == (
        "c2",
        "{not json",
    )


async def test_tool_call_ids_are_fresh(model, client):
    model.script([call("a"), call("a")])
    ids = {(await ask(client)).tool_calls[0].id for _ in range(2)}
    assert len(ids) == 2


async def test_a_failure_carries_its_status_and_retry_after(model, client):
    model.script([fails(429, retry_after=1.5)])
    with pytest.raises(openai.RateLimitError) as caught:
        await ask(client)
    assert caught.value.response.headers["retry-after"] == "1.5"


async def test_malformed_json_reaches_the_client_as_it_is(model, client):
    model.script([returns(b'{"choices": [')])
    with pytest.raises(json.JSONDecodeError):
        await ask(client)


@pytest.mark.parametrize("content", [None, [{"type": "text", "text": "part"}]])
async def test_content_may_be_null_or_parts(model, client, content):
    model.script([says(content)])
    assert (await ask(client)).content == content


async def test_a_dropped_connection_is_a_connection_error(model, client):
    model.script([drops()])
    with pytest.raises(openai.APIConnectionError):
        await ask(client)


async def test_a_hanging_answer_outlasts_the_client(model, client):
    model.script([hangs()])
    with pytest.raises(openai.APITimeoutError):
        await ask(client.with_options(timeout=0.05))


async def test_held_answers_leave_one_by_one_when_released(model, client):
    model.script([held("first"), held("second")])
    waiting = [asyncio.create_task(ask(client)) for _ in range(2)]
    await model.wait_for_requests(2)
    model.release()
    done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    assert [(await task).content for task in done] == ["first"]
    model.release()
    await asyncio.gather(*waiting)


async def test_answers_for_a_model_are_kept_for_it(model, client):
    model.script(["a picture"], model="vision")
    model.script(["chat"])
    assert (await ask(client)).content == "chat"
    assert (await ask(client, model="vision")).content == "a picture"


async def test_a_function_answers_from_the_request(model, client):
    model.answer_with(lambda request: f"you said {request.last_text}")
    assert (await ask(client, "boo")).content == "you said boo"


async def test_an_unexpected_call_is_refused_and_complained_of(model, client):
    with pytest.raises(openai.BadRequestError):
        await ask(client, "surprise")
    with pytest.raises(AssertionError, match="surprise"):
        model.verify()
    model.reset()


async def test_an_answer_nobody_asked_for_is_complained_of(model):
    model.script(["left over"], model="vision")
    with pytest.raises(AssertionError, match="1 answers for vision"):
        model.verify()
    model.reset()


async def test_a_mistake_in_the_deciding_function_is_complained_of(model, client):
    model.answer_with(lambda request: request.body["nothing"])
    with pytest.raises(openai.BadRequestError):
        await ask(client)
    with pytest.raises(AssertionError, match="KeyError"):
        model.verify()
    model.reset()


async def test_the_silence_probe_is_answered_unasked_and_not_counted(model, client):
    assert (await ask(client, f"from Stan: {PROBE}")).content == PROBE_ANSWER
    assert model.requests == []


async def test_other_endpoints_can_be_scripted(model, client):
    model.script(
        [
            returns(
                {
                    "object": "list",
                    "model": "e",
                    "data": [{"index": 0, "object": "embedding", "embedding": [1.0]}],
                }
            )
        ]
    )
    found = await client.embeddings.create(model="e", input="words", encoding_format="float")
    assert found.data[0].embedding == [1.0]


async def test_models_are_listed_without_counting_as_a_call(model, client):
    assert [entry.id async for entry in client.models.list()] == ["scripted"]
    assert model.requests == []


async def test_awaiting_a_request_that_never_comes_fails(model):
    with pytest.raises(AssertionError, match="1 model calls were awaited, 0 came"):
        await model.wait_for_requests(1, timeout=0.01)


def streaming(client: openai.AsyncOpenAI, **options: Any) -> Any:
    return client.chat.completions.stream(
        model="scripted", messages=[{"role": "user", "content": "hello"}], **options
    )


async def test_a_completion_is_streamed_to_who_wants_it_so(model, client):
    wanted = Call("get_weather", {"city": "北京"})
    model.script([calls(wanted, content="one moment, please"), "hi"])
    async with streaming(client, stream_options={"include_usage": True}) as stream:
        whole = await stream.get_final_completion()
    message = whole.choices[0].message
    assert (message.content, whole.usage.total_tokens) == ("one moment, please", 18)
    assert json.loads(message.tool_calls[0].function.arguments) == {"city": "北京"}
    async with streaming(client) as stream:
        assert [event.type async for event in stream][-1] == "content.done"
        assert (await stream.get_final_completion()).usage is None


async def test_a_stream_waits_and_goes_on_when_it_is_let(model, client):
    events = streamed("a long answer")
    model.script([streams(b": keep-alive\n\n", *events[:2], "held", *events[2:])])
    async with streaming(client) as stream:
        seen = [event.type for event in [await anext(stream), await anext(stream)]]
        model.release()
        assert (await stream.get_final_completion()).choices[0].message.content == "a long answer"
    assert seen[0] == "chunk"


async def test_a_stream_can_be_cut(model, client):
    model.script([streams(*streamed("a long answer")[:2], "dropped")])
    with pytest.raises((openai.APIConnectionError, httpx2.HTTPError)):
        async with streaming(client) as stream:
            await stream.get_final_completion()


async def test_errors_are_not_streamed_and_an_endpoint_may_ignore_the_wish(model, client):
    model.script([fails(400), streams(says("whole").body, kind="application/json")])
    with pytest.raises(openai.BadRequestError):
        async with streaming(client):
            pass
    raw = await client.chat.completions.with_raw_response.create(
        model="scripted", messages=[], stream=True
    )
    assert raw.headers["content-type"] == "application/json"
