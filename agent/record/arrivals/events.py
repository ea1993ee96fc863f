"""Events that rules are for: each becomes a message of its chat, once, as work of the inbox; those
that come at once become one.

What nothing is done about leaves no row here: a flood costs no backlog.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from django.utils import timezone

from agent.domain.answer_triggers import Occasion, TriggerDecision, decide_by_rule
from agent.domain.event_rules import (
    GATHERED,
    FiredRule,
    find_cause,
    is_left_alone,
    read_fired_rule,
    unite,
)
from agent.domain.events import ChatNotice, EventKind
from agent.domain.manners import ChatManners
from agent.domain.states import FIRST_CLAIM, PauseReason
from agent.domain.types import ChatAddress, IncomingMessage
from agent.models import UNSETTLED, ChatSession, Message
from agent.record.chats.chat_events import EventArrival, record_events
from agent.record.ground.versions import read_versions
from agent.record.runs.merged import HeldMessage
from agent.record.settings.live import LiveSettings
from agent.record.sums.quotas import AnswerCandidate, AnswerQuotas

#: Events of a chat that may wait there, or be under way, and of one kind in one transaction; about
#: more nothing is done.
MOST_WAITING = 5
#: Seconds in which those are gathered that come at once.
GATHER_SECONDS = 3.0
State, Reason = Message.State, Message.Reason
WANTED = TriggerDecision(State.WAITING, Reason.EVENT)
#: A message on record that is to be taken up after so many seconds.
TakenEvent = tuple[HeldMessage, float]


class EventDesk:
    """Takes events in for one server process. Used in the database thread only; it remembers
    nothing."""

    def __init__(self, process_id: str, live: LiveSettings, quotas: AnswerQuotas) -> None:
        self._process_id = process_id
        self._live = live
        self._quotas = quotas

    def accept_events(self, arrivals: Sequence[EventArrival]) -> list[list[TakenEvent]]:
        """Put ``arrivals`` on record, and what is to be done about those that are new: with the
        first of them, what is to be taken up because of any."""
        self._live.see(read_versions())
        rules = self._live.seen.event_rules
        groups = defaultdict[tuple[int, FiredRule], list[EventArrival]](list)
        lines = zip(record_events(arrivals), arrivals, strict=True)
        new = [(session_pk, one) for session_pk, one in lines if session_pk]
        for session_pk, one in new if rules.rows else ():
            chat = _heard(one).chat
            if one.is_of_bot or is_left_alone(one.notice, chat.account):
                continue
            if rule := rules.find(one.notice.kind, chat):
                groups[session_pk, rule].append(one)
        taken = [found for group, some in groups.items() for found in self._take(*group, some)]
        if any(row.kind == EventKind.JOIN for row in rules.rows):
            self._forget_left([one.notice for _, one in new])
        return [taken, *([] for _ in arrivals[1:])]

    def _take(
        self, session_pk: int, rule: FiredRule, arrivals: Sequence[EventArrival]
    ) -> list[TakenEvent]:
        session, chat = ChatSession.objects.get(pk=session_pk), _heard(arrivals[0]).chat
        manners = self._live.seen.manners.find(chat)
        allowed = [one for one in arrivals if self._may(one, session, manners)]
        is_gathered = rule.kind in GATHERED
        if allowed and is_gathered:
            for row, fired in self._gathering(chat):
                if fired.pk == rule.pk:
                    _keep(row, fired, *unite(fired.people, fired.count, _people(allowed)))
                    return []
        waiting = Message.objects.filter(UNSETTLED, session=session, reason=Reason.EVENT)
        room = max(MOST_WAITING - waiting.count(), 0) if allowed else 0
        added = (  # those who may not have an event are no first of others
            self._add(rule, session, manners, allowed[at:] if is_gathered else allowed[at : at + 1])
            for at in range(min(room, len(allowed)))
        )
        return [
            (HeldMessage(row.pk, FIRST_CLAIM), GATHER_SECONDS if is_gathered else 0.0)
            for row in islice(filter(None, added), 1 if is_gathered else None)
        ]

    def _may(self, one: EventArrival, session: ChatSession, manners: ChatManners) -> bool:
        """Whether anything may be said in the chat because of whoever caused it."""
        now, pause, until = one.received_at, session.pause_reason, session.paused_until
        heard = _heard(one)
        occasion = Occasion(
            now=now,
            is_owner=heard.sender_id in self._live.find_account(session.account).owners,
            pause=PauseReason(pause) if pause and (until is None or until > now) else None,
            taken_over_by=(session.taken_over_by or "") if session.is_taken_over else "",
        )
        return decide_by_rule(heard, manners, occasion, Reason.EVENT) == WANTED

    def _add(
        self,
        rule: FiredRule,
        session: ChatSession,
        manners: ChatManners,
        unit: Sequence[EventArrival],
    ) -> Message | None:
        """The message for ``unit``; None where a limit is reached."""
        (notice, at, *_), heard = unit[0], _heard(unit[0])
        if self._quotas.decide([AnswerCandidate(heard, WANTED, manners, at)]) != [WANTED]:
            return None
        people, count = unite((), 0, _people(unit))
        fired = replace(
            rule,
            people=people,
            count=max(count, 1),
            operator=notice.operator_id,
            change=notice.change,
            words=notice.words,
            message_id=notice.message_id,
        )
        return Message.objects.create(
            session=session,
            direction=Message.Direction.IN,
            state=State.WAITING,
            reason=Reason.EVENT,
            sender_id=heard.sender_id,
            text=fired.asked,
            raw=fired.to_raw(),
            claimed_by=self._process_id,
            claim_number=FIRST_CLAIM,
            place=heard.chat.place,
            happened_at=notice.happened_at,
            created_at=at,
        )

    def _gathering(self, chat: ChatAddress) -> Iterator[tuple[Message, FiredRule]]:
        """The messages of events in ``chat`` that this process has not taken up yet."""
        held = {"claimed_by": self._process_id, "claim_number": FIRST_CLAIM, "run": None}
        rows = Message.objects.filter(UNSETTLED, place=chat.place, reason=Reason.EVENT, **held)
        for row in rows.select_for_update(no_key=True).order_by("pk"):
            if fired := read_fired_rule(row.raw):
                yield row, fired

    def _forget_left(self, notices: Iterable[ChatNotice]) -> None:
        """Nobody is welcomed who has left before it is said."""
        left = defaultdict[ChatAddress | None, set[str]](set)
        for notice in notices:
            if notice.kind == EventKind.LEAVE:
                left[notice.chat].add(notice.user_id)
            elif notice.kind == EventKind.JOIN:
                left[notice.chat].discard(notice.user_id)
        for chat, people in left.items():
            for row, fired in self._gathering(chat) if chat and people else ():
                if fired.kind == EventKind.JOIN:
                    rest = tuple(one for one in fired.people if one not in people)
                    _keep(row, fired, rest, fired.count - len(fired.people) + len(rest))


def _keep(row: Message, fired: FiredRule, people: tuple[str, ...], count: int) -> None:
    """Have ``row`` be for ``people``; without any it is settled."""
    row.raw = replace(fired, people=people, count=count).to_raw()
    if not count:
        row.state, row.claimed_by, row.settled_at = State.SILENT, "", timezone.now()
    row.save(update_fields=["raw", "state", "claimed_by", "settled_at"])


def _people(arrivals: Sequence[EventArrival]) -> list[str]:
    return [one.notice.user_id for one in arrivals if one.notice.user_id]


def _heard(one: EventArrival) -> IncomingMessage:
    """The event as a message of whoever caused it, to be judged like one."""
    notice = one.notice
    assert notice.chat is not None  # noqa: S101 - others have no line
    return IncomingMessage(
        notice.chat, find_cause(notice), "", "", [], is_friend=True, happened_at=notice.happened_at
    )
