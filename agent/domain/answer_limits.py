"""Whether a sender gets one more answer: by how many he had, and by the tokens left to spend.

Deciding is pure. What is counted are the answers that are promised, in the commit that
takes the message in (:mod:`agent.record.sums.quotas`), so that a burst is no way around them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from agent.domain import notices
from agent.domain.manners import ChatManners
from agent.domain.states import MessageReason

#: Seconds in which answers count for the limits of a minute.
MINUTE = 60
#: Two bots that answer each other: so many exchanges with one sender in one chat within so many
#: seconds,
#: then nothing is said to him there for so long.
LOOP_EXCHANGES, LOOP_SECONDS, LOOP_SILENCE = 10, 30, 300
#: So many of them have to be replies to an answer: a person who sends ten lines at once is no loop.
LOOP_REPLIES = LOOP_EXCHANGES // 2

#: The notices that are sent once a day; the others once a minute.
OF_A_DAY = frozenset({notices.PERSON_DAY, notices.CHAT_DAY, notices.TOKENS})

Reason = MessageReason


@dataclass(frozen=True, slots=True)
class MessageTime:
    """When a message came: seconds since 1970, and the day where the installation is."""

    seconds: int
    day: str


@dataclass(slots=True)
class AnswerCount:
    """The answers to one subject, and when the notice was sent that there are no more for now."""

    recent: dict[int, int] = field(default_factory=dict)
    """How many in which second."""
    day: str = ""
    of_day: int = 0
    told_at: int = 0
    told_on: str = ""
    silent_until: int = 0
    is_changed: bool = False

    def answers_within(self, seconds: int, now: int) -> int:
        """Answers of the last ``seconds``. A clock that was put back leaves none that count for
        ever."""
        return sum(number for at, number in self.recent.items() if abs(now - at) <= seconds)

    def answers_on_day(self, day: str) -> int:
        return self.of_day if self.day == day else 0

    def add(self, moment: MessageTime) -> None:
        """One more answer."""
        now = moment.seconds
        self.recent = {at: number for at, number in self.recent.items() if abs(now - at) <= MINUTE}
        self.recent[now] = self.recent.get(now, 0) + 1
        self.of_day = self.of_day + 1 if self.day == moment.day else 1
        self.day, self.is_changed = moment.day, True


@dataclass(frozen=True, slots=True)
class LimitCheck:
    """A sender who is no owner and would be answered: what counts in the chat, and the answers so
    far."""

    limits: ChatManners
    person: AnswerCount
    chat: AnswerCount
    exchanges: AnswerCount
    """Of this person in this chat; in a private chat the very count of the chat."""
    has_tokens: bool = True
    is_private: bool = False
    is_addressed: bool = True
    """Whether the message was for the bot: nobody else is told of limits."""


@dataclass(frozen=True, slots=True)
class AnswerRefusal:
    """Why there is no answer, the notice for the chat, if any, and whether a silence begins with
    it."""

    reason: MessageReason
    detail: str = ""
    is_told: bool = False
    opens_loop: bool = False


def check_limits(case: LimitCheck, now: MessageTime) -> AnswerRefusal | None:
    """Why the next message is not answered; None where it is. Pure."""
    found = next((one for one in JUDGES if one.finds(case, now)), None)
    if found is None:
        return None
    told = _find_told(case, found.reason)
    is_due = told.told_on != now.day if found.notice in OF_A_DAY else _is_due(told, now)
    is_told = bool(found.notice) and is_due and case.is_addressed
    return AnswerRefusal(found.reason, found.notice, is_told)


def _find_told(case: LimitCheck, reason: MessageReason) -> AnswerCount:
    """The count that remembers when the notice was sent."""
    return case.person if reason == Reason.PERSON_LIMIT else case.chat


def may_loop(case: LimitCheck, now: MessageTime) -> bool:
    """Whether there were enough answers lately for a loop, if what was answered were replies to
    answers."""
    return (
        bool(case.limits.person_per_minute)
        and case.exchanges.answers_within(LOOP_SECONDS, now.seconds) >= LOOP_EXCHANGES
    )


def build_loop_refusal(case: LimitCheck) -> AnswerRefusal:
    """The end of a loop. In a group a word to a bot would be answered by it."""
    return AnswerRefusal(Reason.LOOP, notices.LOOP, is_told=case.is_private, opens_loop=True)


def is_silence_active(until: int, now: int) -> bool:
    """Whether a silence is still active. One with an end too far away began before the clock was
    set back."""
    return now < until <= now + LOOP_SILENCE


def count_answer(case: LimitCheck, refused: AnswerRefusal | None, now: MessageTime) -> None:
    """Count the answer, or what was decided instead, in the counts of ``case``."""
    if refused is None:
        for count in (
            (case.person, case.chat)
            if case.chat is case.exchanges
            else (case.person, case.chat, case.exchanges)
        ):
            count.add(now)
        return
    if refused.opens_loop:
        case.exchanges.silent_until = now.seconds + LOOP_SILENCE
        case.exchanges.is_changed = True
    if refused.is_told and refused.reason != Reason.LOOP:
        told = _find_told(case, refused.reason)
        if refused.detail in OF_A_DAY:
            told.told_on = now.day
        else:
            told.told_at = now.seconds
        told.is_changed = True


def _is_due(count: AnswerCount, now: MessageTime) -> bool:
    return abs(now.seconds - count.told_at) > MINUTE


# --- The judges, the first of which counts ---------------------------------------------


class LimitJudge(NamedTuple):
    """One limit: the reason, the notice for the chat, "" for none, and whether it is reached."""

    reason: MessageReason
    notice: str
    finds: Callable[[LimitCheck, MessageTime], object]


JUDGES = (
    LimitJudge(
        Reason.LOOP,
        "",
        lambda case, now: (
            case.limits.person_per_minute
            and case.exchanges.silent_until
            and is_silence_active(case.exchanges.silent_until, now.seconds)
        ),
    ),
    LimitJudge(Reason.TOKEN_LIMIT, notices.TOKENS, lambda case, now: not case.has_tokens),
    LimitJudge(
        Reason.CHAT_LIMIT,
        notices.CHAT_MINUTE,
        lambda case, now: (
            0 < case.limits.chat_per_minute <= case.chat.answers_within(MINUTE, now.seconds)
        ),
    ),
    LimitJudge(
        Reason.CHAT_LIMIT,
        notices.CHAT_DAY,
        lambda case, now: 0 < case.limits.chat_per_day <= case.chat.answers_on_day(now.day),
    ),
    LimitJudge(
        Reason.PERSON_LIMIT,
        notices.PERSON_DAY,
        lambda case, now: 0 < case.limits.person_per_day <= case.person.answers_on_day(now.day),
    ),
    LimitJudge(
        Reason.PERSON_LIMIT,
        notices.PERSON_MINUTE,
        lambda case, now: (
            0 < case.limits.person_per_minute <= case.person.answers_within(MINUTE, now.seconds)
        ),
    ),
)
