"""How often is answered: decided and counted in the transaction that takes messages in."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

from django.db.models import Min

from agent.domain import answer_limits
from agent.domain.answer_limits import AnswerRefusal, LimitCheck, MessageTime
from agent.domain.answer_triggers import UNADDRESSED, TriggerDecision
from agent.domain.manners import ChatManners
from agent.domain.types import IncomingMessage
from agent.models import Message
from agent.record.settings.live import LiveSettings
from agent.record.sums import tallies
from agent.record.sums.budgets import BudgetAlarms
from agent.record.sums.spendings import load_spent_tokens
from tools.local_time import counted_day, first_of_day

State = Message.State


@dataclass(frozen=True, slots=True)
class AnswerCandidate:
    """A message that is to be answered unless there is a reason against it; ``manners`` are its
    chat's."""

    message: IncomingMessage
    decision: TriggerDecision
    manners: ChatManners
    received_at: datetime


class AnswerQuotas:
    """The limits of answers in one server process. Used by the database thread only.

    The counts are in the database alone. So they agree with the messages on record, in all
    processes, also after a failed transaction or a crash.
    """

    def __init__(self, live: LiveSettings, tokens_per_day: int) -> None:
        self._live = live
        self.known_tokens: Callable[[str], int | None] = lambda day: None
        """What all calls of a day have used, where that is known without the database."""
        self._alarms = BudgetAlarms(live)
        self.tokens_per_day = tokens_per_day

    def decide(self, candidates: Sequence[AnswerCandidate]) -> list[TriggerDecision]:
        """The decision on each of ``candidates``, in order; those that are answered are counted."""
        decisions = [one.decision for one in candidates]
        limited = [
            (index, one)
            for index, one in enumerate(candidates)
            if self.is_limited(one.manners, one.message.chat.account, one.message.sender_id)
        ]
        if limited:
            for index, refused in self._check_limits(limited):
                # A notice is sent by a run of its own, which calls no model: the message waits for
                # it like any other.
                decisions[index] = replace(
                    decisions[index],
                    state=State.WAITING if refused.is_told else State.SILENT,
                    reason=refused.reason,
                    detail=refused.detail,
                    opens_loop=refused.opens_loop,
                )
        return decisions

    def _check_limits(
        self, limited: "Sequence[tuple[int, AnswerCandidate]]"
    ) -> "list[tuple[int, AnswerRefusal]]":
        """Count each answer, or why there is none; the refusals with their places."""
        subjects = [_subjects(one.message) for _, one in limited]
        counts = tallies.load_counts({subject for some in subjects for subject in some})
        now, day = 0, first_of_day(counted_day(limited[-1][1].received_at))
        has_tokens = self.has_tokens(day)
        refusals = []
        for (index, one), counted in zip(limited, subjects, strict=True):
            now = int(one.received_at.timestamp())
            moment = MessageTime(now, day)
            person, chat, exchanges = (counts[subject] for subject in counted)
            is_private = one.message.chat.kind == "private"
            is_addressed = one.decision.reason not in UNADDRESSED
            case = LimitCheck(
                one.manners, person, chat, exchanges, has_tokens, is_private, is_addressed
            )
            refused = answer_limits.check_limits(case, moment)
            if (
                refused is None
                and answer_limits.may_loop(case, moment)
                and count_answered_exchanges(one, answer_limits.LOOP_EXCHANGES)
                >= answer_limits.LOOP_REPLIES
            ):
                refused = answer_limits.build_loop_refusal(case)
            answer_limits.count_answer(case, refused, moment)
            if refused is not None:
                refusals.append((index, refused))
        tallies.save_counts(counts, now)
        if not has_tokens:
            accounts = {tallies.account_subject(one.message.chat) for _, one in limited}
            self._alarms.tell_tokens_spent(sorted(accounts), day)
        return refusals

    def has_tokens(self, day: str) -> bool:
        """Whether anything is left of TOKENS_PER_DAY, after all model calls of the day in all
        processes."""
        if not self.tokens_per_day:
            return True
        known = self.known_tokens(day)
        return (load_spent_tokens(day) if known is None else known) < self.tokens_per_day

    def is_limited(self, manners: ChatManners, account: str, sender_id: str) -> bool:
        """Whether answers to the sender are counted, in a chat with these ``manners``."""
        has_limits = manners.has_limits or self.tokens_per_day
        return bool(has_limits) and sender_id not in self._live.find_account(account).owners


def _subjects(message: IncomingMessage) -> tuple[str, str, str]:
    chat, sender = message.chat, message.sender_id
    return (
        tallies.person_subject(chat, sender),
        tallies.chat_subject(chat, sender),
        tallies.exchange_subject(chat, sender),
    )


def count_answered_exchanges(candidate: AnswerCandidate, count: int) -> int:
    """After how many of the last ``count`` messages of the sender that have a run the next came
    only when the bot had answered.

    The ``candidate`` is the last such next one. Few messages are read, by the index on their
    sender.
    """
    said = Message.objects.filter(
        sender_id=candidate.message.sender_id,
        place=candidate.message.chat.place,
        direction=Message.Direction.IN,
        run__isnull=False,
    ).exclude(reason=Message.Reason.TAKEN_OVER)
    asked = list(said.order_by("-pk").values_list("created_at", "run_id")[:count])
    answers = Message.objects.filter(
        run__in=[run for _, run in asked], direction=Message.Direction.OUT
    )
    answered = dict(answers.order_by().values_list("run_id").annotate(Min("created_at")))
    times = [candidate.received_at, *(at for at, _ in asked)]
    return sum(
        run in answered and answered[run] <= following
        for (following, _), (_, run) in zip(pairwise(times), asked, strict=True)
    )
