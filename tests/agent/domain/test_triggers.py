"""Who is answered: one pure decision for each message, with its reason."""

from datetime import timedelta

import pytest
from django.utils import timezone

from agent.domain.answer_triggers import MAX_AGE, Occasion, decide_trigger
from agent.domain.manners import Manners
from agent.domain.types import ChatAddress, IncomingMessage

NOW = timezone.now()
MANNERS = Manners(wake_names=("Frost", "小霜", "f.r."))


def said(text: str = "hello", kind: str = "group", **fields) -> IncomingMessage:
    chat = ChatAddress("1", "group" if kind == "group" else "private", "7")
    return IncomingMessage(
        chat, "2", "Ann", text, [], **{"spoken_text": text, "happened_at": NOW, **fields}
    )


def verdict(
    message: IncomingMessage, manners: Manners = MANNERS, *, quotes_bot: bool = False
) -> tuple[str, str]:
    decision = decide_trigger(message, manners, Occasion(NOW, quotes_bot=quotes_bot))
    return decision.state, decision.reason


def test_private_messages_are_always_answered():
    assert verdict(said(kind="private")) == ("waiting", "private")
    assert verdict(said(kind="private"), Manners(groups=False)) == (
        "waiting",
        "private",
    )


def test_group_messages_are_answered_when_the_bot_is_mentioned():
    assert verdict(said(mentions_bot=True)) == ("waiting", "mention")


def test_a_mention_without_words_is_answered():
    assert verdict(said("", mentions_bot=True)) == ("waiting", "mention")


@pytest.mark.parametrize("text", ["Frost?", "hey FROST", "defrosted", "小霜你好", "F.R. now"])
def test_group_messages_are_answered_when_a_wake_word_is_said_in_any_case(text):
    assert verdict(said(text)) == ("waiting", "wake_word")


@pytest.mark.parametrize("text", ["fry", "flr!", "霜", "hello"])
def test_wake_words_are_words_and_no_patterns(text):
    assert verdict(said(text)) == ("recorded", "not_addressed")


def test_wake_words_are_looked_for_in_what_was_said_and_not_in_what_was_rendered():
    assert verdict(said("[文件:frost.txt]", spoken_text="")) == ("recorded", "not_addressed")


def test_empty_wake_words_wake_nobody():
    assert verdict(said(), Manners(wake_names=("", ""))) == ("recorded", "not_addressed")


def test_a_quote_of_the_bots_own_message_is_answered():
    assert verdict(said(), quotes_bot=True) == ("waiting", "quote")


def test_groups_that_are_switched_off_are_recorded_whatever_is_said():
    message = said("Frost!", mentions_bot=True)
    assert verdict(message, Manners(groups=False, wake_names=("Frost",)), quotes_bot=True) == (
        "recorded",
        "groups_off",
    )


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ("from_own_account", "own_message"),
        ("from_other_bot", "other_bot"),
        ("is_notice", "system_notice"),
    ],
)
@pytest.mark.parametrize("kind", ["private", "group"])
def test_bots_and_notices_are_never_answered(kind, field, reason):
    assert verdict(said("Frost!", kind, mentions_bot=True, **{field: True})) == ("recorded", reason)


@pytest.mark.parametrize("kind", ["private", "group"])
def test_a_message_without_content_is_not_answered(kind):
    assert verdict(said("", kind)) == ("recorded", "empty")


@pytest.mark.parametrize("kind", ["private", "group"])
def test_a_message_older_than_five_minutes_is_kept_and_not_answered(kind):
    old = said("Frost!", kind, happened_at=NOW - MAX_AGE - timedelta(seconds=1))
    assert verdict(old) == ("expired", "too_old")
    assert timedelta(minutes=5) == MAX_AGE


@pytest.mark.parametrize("age", [MAX_AGE, timedelta(0), timedelta(hours=-9)])
def test_a_message_of_up_to_five_minutes_or_from_a_clock_ahead_is_answered(age):
    assert verdict(said(kind="private", happened_at=NOW - age)) == ("waiting", "private")


def test_a_message_without_a_time_is_as_old_as_its_arrival():
    assert verdict(said(kind="private", happened_at=None)) == ("waiting", "private")


def test_an_old_message_that_nobody_would_answer_keeps_its_own_reason():
    old = said(happened_at=NOW - timedelta(days=1))
    assert verdict(old) == ("recorded", "not_addressed")
