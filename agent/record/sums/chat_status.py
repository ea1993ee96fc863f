"""What a person may know of the bot in a chat: his answers, what he has spent, and whether it may
speak there."""

from datetime import datetime
from typing import NamedTuple

from django.utils import timezone

from agent.domain.answer_limits import MINUTE
from agent.domain.budgets import SpendKind
from agent.domain.manners import ChatManners
from agent.domain.states import PauseReason
from agent.domain.types import ChatAddress
from agent.models import ChatSession
from agent.record.settings.manners import load_manners_table
from agent.record.sums.budgets import BudgetUse, load_uses_of
from agent.record.sums.quotas import AnswerQuotas
from agent.record.sums.spendings import SpentAmount, SumRange, load_spent
from agent.record.sums.tallies import account_subject, chat_subject, load_counts, person_subject
from tools.local_time import current_day, first_of_day


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
    taken_over_until: datetime | None
    stops: tuple[BudgetUse, ...] = ()
    """The budgets of which too little is left for an answer to the person."""


def load_status(
    quotas: AnswerQuotas, chat: ChatAddress, sender_id: str, session_pk: int
) -> ChatStatus:
    """As it is now. Locks the counts of answers until the transaction ends."""
    row, now = ChatSession.objects.get(pk=session_pk), timezone.now()
    pause, until = row.pause_reason, row.paused_until
    is_over = until is not None and until <= now
    manners = load_manners_table().find(chat)
    is_counted = quotas.is_limited(manners, chat.account, sender_id)
    person, everybody = _load_given(manners, chat, sender_id, now) if is_counted else (None, None)
    wanted = SumRange(SpendKind.PERSON, person_subject(chat, sender_id), current_day())
    return ChatStatus(
        person,
        everybody,
        load_spent(wanted),
        PauseReason(pause) if pause and not is_over else None,
        until,
        row.taken_over_at if row.is_taken_over else None,
        row.taken_over_until,
        _load_stops(chat, sender_id),
    )


def _load_stops(chat: ChatAddress, sender_id: str) -> tuple[BudgetUse, ...]:
    subjects = {
        SpendKind.TOTAL: "",
        SpendKind.ACCOUNT: account_subject(chat),
        SpendKind.CHAT: chat.place,
        SpendKind.PERSON: person_subject(chat, sender_id),
    }
    return tuple(use for use in load_uses_of(subjects) if use.shortage)


def _load_given(
    limits: ChatManners, chat: ChatAddress, sender_id: str, now: datetime
) -> tuple[AnswersGiven, AnswersGiven]:
    subjects = person_subject(chat, sender_id), chat_subject(chat, sender_id)
    counts = load_counts(set(subjects))
    seconds, day = int(now.timestamp()), first_of_day(current_day())
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
