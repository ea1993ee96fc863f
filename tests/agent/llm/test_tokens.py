"""How many tokens a request is taken for, and what an endpoint's own counts make of it."""

import json
import math
import time
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent.llm.requests.base import LLMRequest
from agent.llm.requests.tokens import (
    CALL,
    MESSAGE,
    PICTURE,
    SAMPLED_FROM,
    TOOLS,
    TokenScale,
    estimate_message_tokens,
    estimate_text_tokens,
    estimate_tools_tokens,
)
from agent.llm.spending import bound_tokens, estimate_tokens

FRAME = (
    '{"frame": "⟦以下是此人的话⟧", "sender": {"user_id": "1746532198", "name": "小明"}, '
    '"chat": "10001:group:987654321", "message_id": "-98713312", "time": "2026-11-22 15:04"}'
)
CHAT = "今天晚上吃什么啊，有没有推荐的？草，这也太离谱了吧……行吧，那就周六下午三点，老地方见"
ENGLISH = (
    "Could you please check whether the server is still running? I restarted it twice yesterday."
)
SCHEMA = (
    '{"type":"object","properties":{"query":{"type":"string","description":"要找的内容"},'
    '"limit":{"type":"integer","minimum":1}},"required":["query"]}'
)
LOG = "2026-11-22 15:04:01,037 WARNING agent.llm.client: call 7 failed with status 429, retrying"
CODE = (
    "    for place, message in enumerate(reversed(history)):\n        room -= _size(message)\n"
    "        if room < 0:\n            break\n"
)


@pytest.mark.parametrize(
    ("text", "deepseek", "openai"),
    [
        (CHAT, 25, 32),
        (FRAME, 69, 73),
        (ENGLISH, 18, 17),
        (SCHEMA, 36, 37),
        (LOG, 33, 31),
        (CODE, 29, 28),
        ("q83vEjRWeJq83vASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4mrze8BI0Vnia", 43, 43),
        ("今日はとても天気がいいので、公園まで散歩に行きました。", 16, 18),
        ("오늘은 날씨가 좋아서 공원에 산책하러 갔어요.", 21, 18),
        ("Сегодня была хорошая погода, и мы пошли гулять в парк.", 18, 16),
    ],
)
def test_texts_are_taken_for_about_what_the_vocabularies_count(text, deepseek, openai):
    assert 0.85 * deepseek <= estimate_text_tokens(text) <= 1.35 * max(deepseek, openai)


def test_no_text_has_no_tokens_and_half_a_pair_of_surrogates_has_some():
    assert estimate_text_tokens("") == 0
    assert 0 < estimate_text_tokens("\ud83d") < 3


@given(st.one_of(st.text(), st.text(st.sampled_from("aA0. \n霜。，한ж—😂"))))
def test_no_character_is_more_than_two_tokens(text):
    assert 0 <= estimate_text_tokens(text) <= 2 * len(text)


def test_a_very_long_text_is_counted_by_samples_in_bounded_time():
    part = f"{CHAT}\n{ENGLISH}\n{LOG}\n"
    times = 10_000_000 // len(part)
    started = time.process_time()
    estimated = estimate_text_tokens(part * times)
    assert time.process_time() - started < 0.5
    assert len(part * times) > SAMPLED_FROM
    assert estimated == pytest.approx(estimate_text_tokens(part) * times, rel=0.1)


def test_a_message_is_its_words_its_pictures_its_calls_and_its_thoughts():
    text = estimate_text_tokens(ENGLISH)
    parts = [
        {"type": "text", "text": ENGLISH},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 100_000}},
    ]
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": SCHEMA}}
    answer = {"role": "assistant", "content": None, "tool_calls": [call]}
    tokens = estimate_message_tokens
    assert tokens({"role": "user", "content": ENGLISH}) == MESSAGE + text
    assert tokens({"role": "user", "content": parts}) == MESSAGE + text + PICTURE
    assert tokens(answer) >= MESSAGE + CALL + estimate_text_tokens(SCHEMA)
    thought = tokens({**answer, "reasoning_content": ENGLISH}) - tokens(answer)
    nested = tokens({**answer, "reasoning_details": [{"deep": {"text": ENGLISH}}]}) - tokens(answer)
    assert thought == pytest.approx(text, rel=0.1)
    assert nested == pytest.approx(text, rel=0.1)


@pytest.mark.parametrize("content", [None, 5, [], [None, 7, "x", {"text": 1}], {"text": "x"}])
def test_a_message_of_any_form_has_some_number_of_tokens(content):
    odd = {"role": "user", "content": content, "tool_calls": "none", "extra": [[[None, True]]]}
    assert MESSAGE <= estimate_message_tokens(odd) <= 5 * PICTURE


def test_tools_are_their_json_and_what_a_template_says_about_them():
    assert estimate_tools_tokens(b"") == 0
    assert estimate_tools_tokens(SCHEMA.encode()) == TOOLS + estimate_text_tokens(SCHEMA)


def test_a_call_without_usage_costs_its_messages_its_tools_and_its_answer():
    messages = [{"role": "system", "content": ENGLISH}, {"role": "user", "content": CHAT}]
    tools = [{"name": "look", "description": ENGLISH, "parameters_schema": json.loads(SCHEMA)}]
    bare = estimate_tokens(LLMRequest(messages), "")
    assert bare == math.ceil(sum(map(estimate_message_tokens, messages)))
    assert estimate_tokens(LLMRequest(messages, tools), "") > bare + TOOLS
    answered = estimate_tokens(LLMRequest(messages), CHAT) - bare
    assert answered == pytest.approx(estimate_text_tokens(CHAT), abs=1)


def test_reports_bring_the_estimate_near_the_endpoints_own_count_from_either_side():
    for ratio in (0.6, 1.7):
        scale = TokenScale()
        for _ in range(60):
            scale.correct(1000, int(1000 * ratio))
        assert scale.tokens(1000) == pytest.approx(1000 * ratio, rel=0.02)


def test_an_estimate_rises_faster_than_it_falls():
    up, down = TokenScale(), TokenScale()
    up.correct(1000, 1300)
    down.correct(1000, 700)
    assert up.factor - 1 > 3 * (1 - down.factor) > 0


@pytest.mark.parametrize(
    ("estimated", "reported"),
    [(1000, 0), (1000, -5), (1000, 50_000), (1000, 20), (20, 60), (math.nan, 10), (math.inf, 10)],
)
def test_a_report_that_cannot_be_is_ignored(estimated, reported):
    scale = TokenScale(1.2)
    scale.correct(estimated, reported)
    assert scale.factor == 1.2


def test_one_strange_report_moves_the_factor_by_a_bounded_step():
    scale = TokenScale()
    scale.correct(1000, 3900)
    assert scale.factor <= 1.25


@pytest.mark.parametrize(
    ("kept", "used"), [(1.4, 1.4), (0.0, 0.25), (-1, 0.25), (99, 4.0), (math.nan, 1.0)]
)
def test_a_kept_factor_is_used_as_far_as_it_can_be(kept, used):
    assert TokenScale(kept).factor == used


@pytest.mark.parametrize(
    "text", ["你好，今天天气怎么样？" * 50, "How are you today? " * 50, "{1: 2}" * 50]
)
def test_what_is_held_for_a_request_is_hardly_less_than_its_estimate(text: str):
    tool = {"name": "f", "description": "d" * 200, "parameters_schema": {"type": "object"}}
    messages: list[Any] = [
        {"role": "user", "content": text},
        {"role": "assistant", "content": None},
    ]
    request = LLMRequest(messages, [tool])
    assert bound_tokens(request) >= estimate_tokens(request, "") - TOOLS
