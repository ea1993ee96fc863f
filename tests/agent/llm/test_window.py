"""Requests fitted to a window: what goes, in which order, and what never does."""

import copy
import time
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from agent.llm.requests.messages import (
    SpokenMessage,
    assistant_message,
    system_message,
    user_message,
)
from agent.llm.requests.tokens import estimate_message_tokens
from agent.llm.requests.window import SHORTEST, drop_oldest_half, fit_window, shorten_message
from agent.memory.relevance import MemoryContext, quote_summary
from tools.text import fences

Request = tuple[list[dict[str, Any]], int]
SYSTEM = system_message("你是小霜。")
SUMMARY = quote_summary("他们谈过天气。" * 10)
MEMORY = fences.fence_values(fences.FenceKind.MEMORY, [{"note": 1, "text": "爱吃苹果"}])


def said(text: str, **fields: Any) -> dict[str, Any]:
    return user_message(SpokenMessage(text, "20001", "Ann", "group:7", **fields))


def step(call_ids: list[str], results: list[str]) -> list[dict[str, Any]]:
    calls = [
        {"id": one, "type": "function", "function": {"name": "look", "arguments": "{}"}}
        for one in call_ids
    ]
    return [
        {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": calls},
        *(
            {"role": "tool", "tool_call_id": one, "content": text}
            for one, text in zip(call_ids, results, strict=True)
        ),
    ]


def size(messages: list[dict[str, Any]]) -> float:
    return sum(map(estimate_message_tokens, messages))


def fit(messages: list[dict[str, Any]], room: float, begin: int) -> list[dict[str, Any]]:
    return fit_window(messages, room=int(room), count=estimate_message_tokens, begin=begin)


def exchanges(number: int) -> list[dict[str, Any]]:
    return [
        message
        for n in range(number)
        for message in (said(f"问题 {n}" * 20), assistant_message(f"回答 {n}" * 20))
    ]


texts = st.builds(
    lambda sign, times: sign * times,
    st.sampled_from(["霜", "hello ", '{"a": 1}\n', "😂", "7"]),
    st.integers(0, 1500),
)
chatter = st.lists(
    st.one_of(
        st.builds(said, texts),
        st.builds(lambda text: said(text, pictures=("0" * 64,)), texts),
        st.builds(assistant_message, texts),
    ),
    max_size=12,
)


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """A request as the run loop makes them, with the place of the current message."""
    background = MemoryContext(
        draw(st.sampled_from(["", SUMMARY])), draw(st.sampled_from(["", MEMORY]))
    )
    current = said(draw(texts), pictures=draw(st.sampled_from([(), ("1" * 64,)])))
    messages = background.insert_into([SYSTEM, *draw(chatter), current])
    begin = len(messages) - 1
    for number, results in enumerate(
        draw(st.lists(st.lists(texts, min_size=1, max_size=3), max_size=4))
    ):
        messages += step([f"c{number}-{place}" for place in range(len(results))], results)
    return messages, begin


def check_form(old: list[dict[str, Any]], new: list[dict[str, Any]], begin: int) -> None:
    """What is true of every request that was made smaller."""
    begun = begin - (len(old) - len(new))
    assert begun >= 1
    assert new[0] is SYSTEM
    for before, after in zip(old[begin:], new[begun:], strict=True):
        assert {**before, "content": None} == {**after, "content": None}
    texts = [
        part["content"] if isinstance(part["content"], str) else part["content"][0]["text"]
        for part in (old[begin], new[begun])
    ]
    assert texts[0].partition("\n")[0] == texts[1].partition("\n")[0]
    history = [message for message in new[1:begun] if message["content"] not in (SUMMARY, MEMORY)]
    ids = set(map(id, old))
    assert all(id(message) in ids for message in new[:begun])
    if history and len(new) < len(old):
        assert history[0]["role"] == "user"


@given(requests(), st.floats(0, 1.2))
def test_a_fitted_request_is_as_small_as_it_has_to_be_and_whole_in_its_form(request, share):
    messages, begin = request
    before, room = copy.deepcopy(messages), int(size(messages) * share)
    fitted = fit(messages, room, begin)
    assert messages == before
    check_form(messages, fitted, begin)
    least = size([SYSTEM, *(shorten_any(message) for message in messages[begin:])])
    assert size(fitted) <= max(room, least) + 0.001
    if size(messages) <= room:
        assert all(new is old for new, old in zip(fitted, messages, strict=True))


def shorten_any(message: dict[str, Any]) -> dict[str, Any]:
    return message if message["role"] == "assistant" else shorten_message(message, SHORTEST)


@settings(max_examples=40)
@given(requests())
def test_dropping_halves_ends_and_keeps_the_form(request):
    messages, begin = request
    tries = 0
    while (smaller := drop_oldest_half(messages, begin)) is not None:
        before = copy.deepcopy(messages)
        assert size(smaller) < size(messages)
        assert messages == before
        check_form(messages, smaller, begin)
        begin -= len(messages) - len(smaller)
        messages, tries = smaller, tries + 1
        assert tries < 40


def test_the_oldest_goes_first_and_no_more_than_has_to():
    history = exchanges(10)
    messages = [SYSTEM, *history, said("现在")]
    fitted = fit(messages, size(messages) - 1, 21)
    assert fitted == [SYSTEM, *history[2:], messages[-1]]


def test_the_history_goes_before_the_background_and_that_before_a_word_is_cut():
    context, history, current = MemoryContext(SUMMARY, MEMORY), exchanges(3), said("现在" * 1000)
    messages = context.insert_into([SYSTEM, *history, current])
    without_history = context.insert_into([SYSTEM, current])
    assert fit(messages, size(without_history) + 1, 9) == without_history
    assert fit(messages, size([SYSTEM, current]) + 1, 9) == [SYSTEM, current]


def test_large_results_are_shortened_before_small_ones_and_old_ones_before_new_ones():
    old = step(["a", "b"], ["旧" * 50_000, "小" * 2_000])
    new = step(["c"], ["新" * 20_000])
    messages = [SYSTEM, said("查"), *old, *new]
    fitted = fit(messages, size(messages) - 20_000, 1)
    changed = [place for place, message in enumerate(fitted) if message is not messages[place]]
    assert changed == [3]
    assert size(messages) - 23_000 < size(fitted) <= size(messages) - 20_000
    tight = fit(messages, size(messages) - 34_000, 1)
    assert tight[-1]["content"] != new[1]["content"]
    assert "…（省略 " in tight[3]["content"]


def test_the_words_of_the_user_are_cut_last_and_never_the_frame_or_a_picture():
    current = said("说" * 30_000, pictures=("1" * 64,))
    messages = [SYSTEM, current, *step(["a"], ["果" * 5_000])]
    fitted = fit(messages, 6_000, 1)
    assert 5_000 < size(fitted) <= 6_000
    text, picture = fitted[1]["content"]
    assert picture is current["content"][1]
    assert text["text"].startswith('{"frame": "⟦以下是此人的话⟧"')
    assert "…（省略 " in text["text"]


def test_more_than_a_window_holds_at_the_least_is_sent_as_small_as_it_can_be():
    messages = [system_message("s" * 9000), said("x" * 9000), *step(["a"], ["y" * 9000])]
    fitted = fit(messages, 10, 1)
    assert fitted[0] is messages[0]
    assert fitted[2] is messages[2]
    assert all(len(fitted[place]["content"]) < SHORTEST + 200 for place in (1, 3))


def test_the_older_half_goes_first_then_the_background_then_half_of_results_then_of_words():
    context, history = MemoryContext(SUMMARY, ""), exchanges(7)
    run = [said("话" * 4000), *step(["a"], ["果" * 4000])]
    messages = [*context.insert_into([SYSTEM, *history, run[0]]), *run[1:]]
    once = drop_oldest_half(messages, 16)
    assert once == [*context.insert_into([SYSTEM, *history[8:], run[0]]), *run[1:]]
    assert drop_oldest_half([SYSTEM, messages[1], *run], 2) == [SYSTEM, *run]
    halved = drop_oldest_half([SYSTEM, *run], 1) or []
    assert halved[1] is run[0]
    assert 2000 < len(halved[3]["content"]) < 2030
    words = drop_oldest_half([SYSTEM, run[0], *step(["a"], ["果"])], 1) or []
    assert 2000 < len(words[1]["content"]) < 2200
    assert drop_oldest_half([SYSTEM, said("hi")], 1) is None


@pytest.mark.parametrize("begin", [-1, 0, 99])
def test_a_place_outside_the_request_does_no_harm(begin):
    messages = [SYSTEM, said("hi"), assistant_message("hello")]
    assert fit(messages, 10_000, begin) == messages
    assert SYSTEM in fit(messages, 1, begin)


def test_texts_of_ten_million_characters_are_fitted_in_bounded_time():
    long = "霜 frost\n" * 1_250_000
    messages = [SYSTEM, said(long), *step(["a", "b"], [long, long])]
    started = time.process_time()
    fitted = fit(messages, 4_000, 1)
    assert time.process_time() - started < 1
    assert 3_000 < size(fitted) <= 4_000
