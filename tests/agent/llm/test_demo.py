"""The built-in model: offline, deterministic, plain about being a demo, and able to show a tool
call."""

import time

import pytest

from agent.llm.endpoints.endpoint_book import DemoModel
from agent.llm.requests.base import LLMRequest
from agent.llm.requests.messages import SpokenMessage, user_message

TOOLS = [{"name": "get_weather"}, {"name": "get_game_version"}]


async def answer(text: str, tools=TOOLS, *more):
    said = user_message(SpokenMessage(text, "20001", "Ann 的天气", "group:7"))
    return await DemoModel().complete(
        LLMRequest([{"role": "system", "content": "s"}, said, *more], list(tools))
    )


@pytest.mark.parametrize(
    ("text", "tool", "arguments"),
    [
        ("北京天气", "get_weather", '{"city": "北京"}'),
        ("请问上海今天的天气怎么样?", "get_weather", '{"city": "上海"}'),
        ("What is the weather in Paris?", "get_weather", '{"city": "Paris"}'),
        ("what's the weather like in New York", "get_weather", '{"city": "New York"}'),
        ("London weather", "get_weather", '{"city": "London"}'),
        ("我的世界最新版本", "get_game_version", '{"game": "我的世界"}'),
        ("latest version of Minecraft?", "get_game_version", '{"game": "Minecraft"}'),
        ("Minecraft 的最新版本是多少", "get_game_version", '{"game": "Minecraft"}'),
    ],
)
async def test_the_right_tool_is_called_when_the_words_ask_for_it(text, tool, arguments):
    (call,) = (await answer(text)).tool_calls
    assert (call.name, call.arguments) == (tool, arguments)


@pytest.mark.parametrize("text", ["北京天气", "weather in Paris"])
async def test_no_tool_is_called_that_is_not_offered(text):
    assert (await answer(text, [{"name": "get_game_version"}])).tool_calls == ()


@pytest.mark.parametrize(
    ("text", "word"), [("你好", "演示模型"), ("hello", "demo model"), ("", "演示模型")]
)
async def test_it_says_plainly_that_it_is_the_demo_in_the_language_it_was_asked_in(text, word):
    response = await answer(text)
    assert word in response.text
    assert "UPSTREAM_ENDPOINT" in response.text
    assert text in response.text


@pytest.mark.parametrize(
    ("text", "word"), [("北京天气", "演示模型"), ("weather in Paris", "demo model")]
)
async def test_a_tool_result_is_passed_on(text, word):
    call = (await answer(text)).message
    response = await answer(
        text, TOOLS, call, {"role": "tool", "tool_call_id": "c", "content": "25°C"}
    )
    assert "25°C" in response.text
    assert word in response.text


async def test_it_answers_the_same_every_time():
    assert await answer("weather in Paris") == await answer("weather in Paris")


async def test_a_long_message_holds_up_nobody():
    began = time.thread_time()
    await answer("A" * 4_000)
    assert time.thread_time() - began < 1
