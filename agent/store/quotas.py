"""Who is answered, and how often: decided and counted in the transaction that takes messages in."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from django.db import transaction
from django.utils import timezone

from agent import limits
from agent.answer_policy import AnswerPolicy, Limits
from agent.limits import Case, Count, Moment, Refusal
from agent.models import Message
from agent.notices import TO_OWNERS
from agent.store import spendings, tallies
from agent.store.exchanges import replies
from agent.store.owner_notes import tell_owners
from agent.store.settings_version import settings_version
from agent.triggers import Decision
from agent.types import IncomingMessage, Outbox

logger = logging.getLogger(__name__)
State = Message.State
Overrides = tuple[int | None, int | None, int | None]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A message that is to be answered unless there is a reason against it; ``overrides`` are its chat's own limits."""

    message: IncomingMessage
    decision: Decision
    overrides: Overrides
    received_at: datetime


class Quotas:
    """The limits of one server process: ``first`` where no row says otherwise. Used by the database thread only.

    What is counted is in the database alone: it is as true as the messages on record, in
    all processes, whatever becomes of a transaction or a process.
    """

    def __init__(self, outbox: Outbox, first: Limits, tokens_per_day: int) -> None:
        self._outbox = outbox
        self._first = first
        self._tokens_per_day = tokens_per_day
        self.version: int | None = None
        """That of the settings which are obeyed: in a transaction that has decided, the newest."""

    def forget(self) -> None:
        """Trust nothing remembered: a transaction was not committed."""
        self.version = None

    def has_changed(self) -> bool:
        """Whether an operator has changed anything; then it is obeyed from here on."""
        version = settings_version()
        if version == self.version:
            return False
        self._outbox.reload()
        self.version = version
        return True

    def decide(self, candidates: Sequence[Candidate]) -> list[Decision]:
        """What becomes of each of ``candidates``, in order; those that are answered are counted."""
        verdicts = [self._guest(one) for one in candidates]
        limited = [
            (place, one, applied)
            for place, (one, verdict) in enumerate(zip(candidates, verdicts, strict=True))
            if verdict is None and (applied := self._limits(one)) is not None
        ]
        decisions = [
            one.decision if verdict is None else Decision(State.SILENT, verdict)
            for one, verdict in zip(candidates, verdicts, strict=True)
        ]
        if limited:
            for place, refused in self._limited(limited):
                decisions[place] = _decision(decisions[place], refused)
        return decisions

    def _limited(self, limited: "Sequence[tuple[int, Candidate, Limits]]") -> "list[tuple[int, Refusal | None]]":
        subjects = {subject for _, one, _ in limited for subject in _subjects(one.message)}
        counts = tallies.load(subjects)
        now, day = 0, timezone.localtime(limited[-1][1].received_at).date().isoformat()
        has_tokens = not self._tokens_per_day or spendings.spent([day])[0] < self._tokens_per_day
        found = []
        for place, one, applied in limited:
            moment = Moment(now := int(one.received_at.timestamp()), day)
            case = _case(one.message, applied, counts, has_tokens=has_tokens)
            refused = limits.refusal(case, moment)
            if refused is None and limits.may_loop(case, moment) and _is_loop(one):
                refused = limits.loop(case)
            limits.note(case, refused, moment)
            found.append((place, refused))
        tallies.save(counts, now)
        for one in {_account(one): one for _, one, _ in limited}.values() if not has_tokens else ():
            self._tell_owners(one, Moment(now, day))
        return found

    def _tell_owners(self, one: Candidate, now: Moment) -> None:
        """Once a day, from each account that somebody talks to: that only they are answered."""
        chat = one.message.chat
        counts = tallies.load([tallies.account(chat)])
        (told,) = counts.values()
        if told.told_on == now.day:
            return
        told.told_on, told.is_changed = now.day, True
        tallies.save(counts, now.seconds)
        tell_owners(chat, self._outbox.owners(chat), TO_OWNERS.format(limit=self._tokens_per_day), one.received_at)
        transaction.on_commit(
            partial(
                logger.warning,
                "TOKENS_PER_DAY (%d) are used up: account %s answers its owners only",
                self._tokens_per_day,
                chat.account,
            ),
            robust=True,
        )

    def _policy(self, one: Candidate) -> AnswerPolicy:
        return self._outbox.policy(one.message.chat)

    def _is_owner(self, one: Candidate) -> bool:
        return one.message.sender_id in self._outbox.owners(one.message.chat)

    def _guest(self, one: Candidate) -> Message.Reason | None:
        chat = one.message.chat
        return self._policy(one).refusal(
            one.message.sender_id,
            chat.peer_id if chat.kind == "group" else "",
            is_friend=one.message.is_friend,
            is_owner=self._is_owner(one),
        )

    def _limits(self, one: Candidate) -> Limits | None:
        """The limits that count for the message; None where there are none."""
        applied = self._first.overridden(self._policy(one).limits).overridden(one.overrides)
        is_free = applied.are_none and not self._tokens_per_day
        return None if is_free or self._is_owner(one) else applied


def _is_loop(one: Candidate) -> bool:
    heard = replies(one.message.chat, one.message.sender_id, one.received_at, limits.LOOP_EXCHANGES)
    return heard >= limits.LOOP_REPLIES


def _account(one: Candidate) -> str:
    return tallies.account(one.message.chat)


def _subjects(message: IncomingMessage) -> tuple[str, str, str]:
    chat, sender = message.chat, message.sender_id
    return tallies.person(chat, sender), tallies.everybody(chat, sender), tallies.exchanges(chat, sender)


def _case(message: IncomingMessage, applied: Limits, counts: dict[str, Count], *, has_tokens: bool) -> Case:
    person, chat, exchanges = (counts[subject] for subject in _subjects(message))
    return Case(applied, person, chat, exchanges, has_tokens, message.chat.kind == "private")


def _decision(decision: Decision, refused: Refusal | None) -> Decision:
    """What is told is told by a run of its own, which asks no model: the message waits for it like any other."""
    if refused is None:
        return decision
    state = State.WAITING if refused.is_told else State.SILENT
    return replace(decision, state=state, reason=refused.reason, detail=refused.detail, opens_loop=refused.opens_loop)
