"""Limits of answers where messages are answered that were not for the bot."""

from agent.domain.answer_limits import (
    AnswerCount,
    LimitCheck,
    MessageTime,
    check_limits,
    count_answer,
)
from agent.domain.manners import ChatManners

DAY = "2026-01-05"
LIMITS = ChatManners(person_per_minute=1, person_per_day=0, chat_per_minute=0, chat_per_day=0)


def ask(person: AnswerCount, second: int, *, is_addressed: bool) -> tuple[str, bool]:
    """The reason for which the next message is not answered, and whether anybody is told."""
    chat, now = AnswerCount(), MessageTime(1_000 + second, DAY)
    case = LimitCheck(LIMITS, person, chat, AnswerCount(), is_addressed=is_addressed)
    refused = check_limits(case, now)
    count_answer(case, refused, now)
    return (str(refused.reason), refused.is_told) if refused else ("", False)


def test_who_did_not_speak_to_the_bot_is_not_told_of_its_limits():
    person = AnswerCount()
    assert ask(person, 0, is_addressed=False) == ("", False)
    assert ask(person, 1, is_addressed=False) == ("person_limit", False)
    assert ask(person, 2, is_addressed=True) == ("person_limit", True)
    assert ask(person, 3, is_addressed=True) == ("person_limit", False)
