"""What a person may know of the bot in a chat: his answers, what he has spent, and whether it may
speak there."""

from datetime import datetime
from typing import NamedTuple

from django.utils import timezone

from agent.domain.answer_limits import MINUTE
from agent.domain.answer_policy import AnswerLimits
from agent.domain.budgets import SpendKind
from agent.domain.states import PauseReason
from agent.domain.types import ChatAddress
from agent.models import ChatSession
from agent.record.quotas import AnswerQuotas
from agent.record.session_cache import OWN_LIMITS
from agent.record.spendings import SpentAmount, SumRange, current_day, load_spent
from agent.record.tallies import chat_subject, load_counts, person_subject


class AnswersGiven(NamedTuple):
    """Answers of the last minute and of the day, and their limits, 0 for none."""

    in_minute: int
    per_minute: int
    of_day: int
    per_day: int


class ChatStatus(NamedTuple):
    """``person`` and ``chat`` are None for those whose answers are not counted."""

    person: AnswersGiven | None
    chat: AnswersGiven | None
    spent: SpentAmount
    pause: PauseReason | None
    paused_until: datetime | None
    taken_over_at: datetime | None
    """Since when an operator answers in the chat; None where the bot does."""


def load_status(
    quotas: AnswerQuotas, chat: ChatAddress, sender_id: str, session_pk: int
) -> ChatStatus:
    """As it is now. Locks the counts of answers until the transaction ends."""
    pause, until, taken_over_at, *overrides = (
        ChatSession.objects.filter(pk=session_pk)
        .values_list("pause_reason", "paused_until", "taken_over_at", *OWN_LIMITS)
        .get()
    )
    now = timezone.now()
    is_over = until is not None and until <= now
    limits = quotas.find_limits(chat, sender_id, tuple(overrides))
    person, everybody = _load_given(limits, chat, sender_id, now) if limits else (None, None)
    wanted = SumRange(SpendKind.PERSON, person_subject(chat, sender_id), current_day())
    return ChatStatus(
        person,
        everybody,
        load_spent(wanted),
        PauseReason(pause) if pause and not is_over else None,
        until,
        taken_over_at,
    )


def _load_given(
    limits: AnswerLimits, chat: ChatAddress, sender_id: str, now: datetime
) -> tuple[AnswersGiven, AnswersGiven]:
    subjects = person_subject(chat, sender_id), chat_subject(chat, sender_id)
    counts = load_counts(set(subjects))
    seconds, day = int(now.timestamp()), current_day()
    bounds = (
        (limits.person_per_minute, limits.person_per_day),
        (limits.chat_per_minute, limits.chat_per_day),
    )
    person, everybody = (
        AnswersGiven(
            counts[subject].answers_within(MINUTE, seconds),
            minute,
            counts[subject].answers_on_day(day),
            of_day,
        )
        for subject, (minute, of_day) in zip(subjects, bounds, strict=True)
    )
    return person, everybody
