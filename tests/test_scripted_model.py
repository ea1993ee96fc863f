"""The scripted model, asked through the real client library."""

from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest

from tests.cast import PROBE, PROBE_ANSWER
from tests.scripted_model import (
    ScriptedModel,
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


async def test_awaiting_a_request_that_never_comes_fails(model):
    with pytest.raises(AssertionError, match="1 model calls were awaited, 0 came"):
        await model.wait_for_requests(1, timeout=0.01)
