"""Fitting the past into a request: both limits, from the newest back."""

import pytest
from hypothesis import given, strategies as st

from agent.chat.history import fit_history
from agent.llm.requests.messages import ChatMessage, assistant_message, system_message

SYSTEM = system_message("be kind")
NOW: ChatMessage = {"role": "user", "content": "now"}


def user(text: str) -> ChatMessage:
    return {"role": "user", "content": text}


def past(count: int) -> list[ChatMessage]:
    """``count`` exchanges of a question and an answer."""
    return [
        message for n in range(count) for message in (user(f"q{n}"), assistant_message(f"a{n}"))
    ]


def kept(
    history: list[ChatMessage], *, max_messages: int = 100, max_chars: int = 10_000
) -> list[str]:
    system, *middle, current = fit_history(
        SYSTEM, history, NOW, max_messages=max_messages, max_chars=max_chars
    )
    assert (system, current) == (SYSTEM, NOW)
    return [message["content"] for message in middle]


def test_everything_is_kept_when_there_is_room():
    assert kept(past(2)) == ["q0", "a0", "q1", "a1"]


def test_the_newest_is_kept_when_messages_are_limited():
    assert kept(past(5), max_messages=6) == ["q3", "a3", "q4", "a4"]


@pytest.mark.parametrize("max_messages", [0, 1, 2])
def test_the_system_message_and_the_current_one_are_kept_whatever_the_limit(max_messages):
    assert kept(past(5), max_messages=max_messages) == []


def test_the_newest_is_kept_when_characters_are_limited():
    room = len("be kind") + len("now") + len("q1a1")
    assert kept(past(2), max_chars=room) == ["q1", "a1"]
    assert kept(past(2), max_chars=room - 1) == []


def test_a_message_that_does_not_fit_hides_the_older_ones_too():
    history = [user("old"), assistant_message("x" * 1000), user("new"), assistant_message("yes")]
    assert kept(history, max_chars=100) == ["new", "yes"]


def test_the_system_message_and_the_current_one_are_kept_although_they_are_over_the_limit():
    assert kept(past(1), max_chars=1) == []


def test_an_answer_whose_question_was_cut_away_goes_too():
    assert kept(past(2), max_messages=5) == ["q1", "a1"]


def test_several_answers_to_one_question_stay_together():
    history = [user("q"), assistant_message("wait"), assistant_message("here")]
    assert kept(history) == ["q", "wait", "here"]
    assert kept(history, max_messages=4) == []


def test_nothing_of_the_history_is_changed():
    history = past(3)
    fit_history(SYSTEM, history, NOW, max_messages=4, max_chars=20)
    assert history == past(3)


@given(
    st.lists(st.tuples(st.booleans(), st.text(max_size=20))),
    st.integers(0, 12),
    st.integers(0, 200),
)
def test_what_is_kept_is_the_end_of_the_history_within_both_limits(said, max_messages, max_chars):
    history = [user(text) if asks else assistant_message(text) for asks, text in said]
    request = fit_history(SYSTEM, history, NOW, max_messages=max_messages, max_chars=max_chars)
    middle = request[1:-1]
    assert middle == history[len(history) - len(middle) :]
    assert middle == history or not middle or middle[0]["role"] == "user"
    assert len(request) <= max(2, max_messages)
    assert not middle or sum(len(message["content"]) for message in request) <= max_chars
