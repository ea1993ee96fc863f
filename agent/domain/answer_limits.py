"""Whether a sender gets one more answer: by how many he had, and by the tokens left to spend.

Deciding is pure. What is counted are the answers that are promised, in the commit that
takes the message in (:mod:`agent.record.sums.quotas`), so that a burst is no way around them.
"""

from dataclasses import dataclass, field, replace

from agent.domain import notices
from agent.domain.answer_policy import AnswerLimits
from agent.domain.states import MessageReason

#: Seconds in which answers count for the limits of a minute.
MINUTE = 60
#: Two bots that answer each other: so many exchanges with one sender in one chat within so many
#: seconds,
#: then nothing is said to him there for so long.
LOOP_EXCHANGES, LOOP_SECONDS, LOOP_SILENCE = 10, 30, 300
#: So many of them have to be replies to an answer: a person who sends ten lines at once is no loop.
LOOP_REPLIES = LOOP_EXCHANGES // 2

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
        self.of_day = self.answers_on_day(moment.day) + 1
        self.day, self.is_changed = moment.day, True


@dataclass(frozen=True, slots=True)
class LimitCheck:
    """A sender who is no owner and would be answered: the limits, and the answers so far."""

    limits: AnswerLimits
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
    refused = _find_refusal(case, now)
    if refused is not None and refused.is_told and not case.is_addressed:
        return replace(refused, is_told=False)
    return refused


def _find_refusal(case: LimitCheck, now: MessageTime) -> AnswerRefusal | None:
    limits = case.limits
    if limits.person_per_minute and is_silence_active(case.exchanges.silent_until, now.seconds):
        return AnswerRefusal(Reason.LOOP)
    if not case.has_tokens:
        return AnswerRefusal(
            Reason.TOKEN_LIMIT, notices.TOKENS, is_told=case.chat.told_on != now.day
        )
    if _is_reached(limits.chat_per_minute, case.chat.answers_within(MINUTE, now.seconds)):
        return AnswerRefusal(
            Reason.CHAT_LIMIT, notices.CHAT_MINUTE, is_told=_is_due(case.chat, now)
        )
    if _is_reached(limits.chat_per_day, case.chat.answers_on_day(now.day)):
        return AnswerRefusal(
            Reason.CHAT_LIMIT, notices.CHAT_DAY, is_told=case.chat.told_on != now.day
        )
    if _is_reached(limits.person_per_day, case.person.answers_on_day(now.day)):
        return AnswerRefusal(
            Reason.PERSON_LIMIT, notices.PERSON_DAY, is_told=case.person.told_on != now.day
        )
    if _is_reached(limits.person_per_minute, case.person.answers_within(MINUTE, now.seconds)):
        return AnswerRefusal(
            Reason.PERSON_LIMIT, notices.PERSON_MINUTE, is_told=_is_due(case.person, now)
        )
    return None


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
        told = case.person if refused.reason == Reason.PERSON_LIMIT else case.chat
        if refused.detail in (notices.PERSON_DAY, notices.CHAT_DAY, notices.TOKENS):
            told.told_on = now.day
        else:
            told.told_at = now.seconds
        told.is_changed = True


def _is_reached(limit: int, count: int) -> bool:
    return bool(limit) and count >= limit


def _is_due(count: AnswerCount, now: MessageTime) -> bool:
    return abs(now.seconds - count.told_at) > MINUTE
