"""Events that rules are for: each becomes a message of its chat, once, as work of the inbox; those
that come at once become one.

What nothing is done about leaves no row here: a flood costs no backlog.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from django.utils import timezone

from agent.domain.answer_triggers import Occasion, TriggerDecision, decide_by_rule
from agent.domain.event_rules import (
    GATHERED,
    FiredRule,
    find_cause,
    is_left_alone,
    name_event,
    read_fired_rule,
    unite,
)
from agent.domain.events import ChatNotice, EventKind
from agent.domain.manners import ChatManners
from agent.domain.states import FIRST_CLAIM, PauseReason
from agent.domain.types import ChatAddress, IncomingMessage
from agent.models import UNSETTLED, ChatSession, EventRule, Message
from agent.record.ground.versions import read_versions
from agent.record.runs.merged import HeldMessage
from agent.record.settings.live import LiveSettings
from agent.record.sums.quotas import AnswerCandidate, AnswerQuotas

if TYPE_CHECKING:
    from django.db.models import QuerySet

#: Events of a chat that may wait there, or be under way, and of one kind in one transaction; about
#: more nothing is done.
MOST_WAITING = 5
State, Reason = Message.State, Message.Reason
WANTED = TriggerDecision(State.WAITING, Reason.EVENT)


@dataclass(frozen=True, slots=True)
class EventArrival:
    """An event as it was received. ``is_of_bot``: another account of ours has caused it."""

    notice: ChatNotice
    received_at: datetime
    title: str = ""
    is_of_bot: bool = False


class TakenEvent(NamedTuple):
    """A message on record that is to be taken up after so many seconds."""

    held: HeldMessage
    seconds: float


@dataclass(slots=True)
class _Group:
    """Events of one kind in one chat."""

    chat: ChatAddress
    rule: EventRule
    arrivals: list[EventArrival] = field(default_factory=list)

    @property
    def wait(self) -> float:
        """Seconds in which others of its kind are gathered."""
        return GATHERED.get(EventKind(self.rule.kind), 0.0)


class EventDesk:
    """Takes events in for one server process. Used in the database thread only; it remembers
    nothing."""

    def __init__(self, process_id: str, live: LiveSettings, quotas: AnswerQuotas) -> None:
        self._process_id = process_id
        self._live = live
        self._quotas = quotas

    def accept_events(self, arrivals: Sequence[EventArrival]) -> list[list[TakenEvent]]:
        """Put on record what is to be done about ``arrivals``: with the first of them, what is to
        be taken up because of any."""
        self._live.see(read_versions())
        taken = [one for group in self._group(arrivals) for one in self._take(group)]
        self._forget_left(arrivals)
        return [taken, *([] for _ in arrivals[1:])]

    def _group(self, arrivals: Sequence[EventArrival]) -> list[_Group]:
        rules, groups = self._live.seen.event_rules, dict[tuple[ChatAddress, int], _Group]()
        for one in arrivals if rules.rows else ():
            notice, chat = one.notice, one.notice.chat
            if chat is None or one.is_of_bot or is_left_alone(notice, chat.account):
                continue
            if rule := rules.find(notice.kind, chat):
                group = groups.setdefault((chat, rule.pk), _Group(chat, rule))
                group.arrivals.append(one)
        return list(groups.values())

    def _take(self, group: _Group) -> list[TakenEvent]:
        session, _ = ChatSession.objects.get_or_create(
            platform=group.chat.platform,
            account=group.chat.account,
            kind=group.chat.kind,
            peer_id=group.chat.peer_id,
            defaults={
                "title": group.arrivals[0].title[:200],
                "last_message_at": group.arrivals[0].received_at,
            },
        )
        manners = self._live.seen.manners.find(group.chat)
        allowed = [one for one in group.arrivals if self._may(one, session, manners)]
        if group.wait and allowed and (going := self._find_gathering(group)):
            fired = _fired(going)
            _keep(going, *unite(fired.people, fired.count, _people(allowed)))
            return []
        waiting = Message.objects.filter(UNSETTLED, session=session, reason=Reason.EVENT)
        room = MOST_WAITING - waiting.count() if allowed else 0
        units = [allowed] if group.wait and allowed else [[one] for one in allowed]
        return [
            TakenEvent(HeldMessage(row.pk, FIRST_CLAIM), group.wait)
            for unit in units[: max(room, 0)]
            if (row := self._add(group, session, manners, unit))
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
        group: _Group,
        session: ChatSession,
        manners: ChatManners,
        unit: Sequence[EventArrival],
    ) -> Message | None:
        """The message for ``unit``; None where it is on record already, or a limit is reached."""
        first, heard = unit[0], _heard(unit[0])
        key = name_event(first.notice)
        if key and Message.objects.filter(session=session, event_key=key).exists():
            return None
        candidate = AnswerCandidate(heard, WANTED, manners, first.received_at)
        if self._quotas.decide([candidate]) != [WANTED]:
            return None
        people, count = unite((), 0, _people(unit))
        fired = group.rule.fire(
            people=people,
            count=max(count, 1),
            operator=first.notice.operator_id,
            change=first.notice.change,
            words=first.notice.words,
            message_id=first.notice.message_id,
        )
        return Message.objects.create(
            session=session,
            direction=Message.Direction.IN,
            state=State.WAITING,
            reason=Reason.EVENT,
            sender_id=heard.sender_id,
            text=fired.asked,
            raw=fired.to_raw(),
            event_key=key,
            claimed_by=self._process_id,
            claim_number=FIRST_CLAIM,
            place=group.chat.place,
            happened_at=first.notice.happened_at,
            created_at=first.received_at,
        )

    def _find_gathering(self, group: _Group) -> Message | None:
        """The message that still gathers events of the same kind."""
        rows = self._gathering(group.chat)
        return next((row for row in rows if _fired(row).pk == group.rule.pk), None)

    def _gathering(self, chat: ChatAddress) -> "QuerySet[Message]":
        """The messages of events in ``chat`` that this process has not taken up yet."""
        held = {"claimed_by": self._process_id, "claim_number": FIRST_CLAIM, "run": None}
        rows = Message.objects.filter(UNSETTLED, place=chat.place, reason=Reason.EVENT, **held)
        return rows.select_for_update(no_key=True).order_by("pk")

    def _forget_left(self, arrivals: Sequence[EventArrival]) -> None:
        """Nobody is welcomed who has left before it is said."""
        left = defaultdict[ChatAddress, set[str]](set)
        for notice in (one.notice for one in arrivals):
            if (chat := notice.chat) is None:
                continue
            if notice.kind == EventKind.LEAVE:
                left[chat].add(notice.user_id)
            elif notice.kind == EventKind.JOIN:
                left[chat].discard(notice.user_id)
        welcomes = any(row.kind == EventKind.JOIN for row in self._live.seen.event_rules.rows)
        for chat, people in left.items() if welcomes else ():
            for row in self._gathering(chat) if people else ():
                if (fired := _fired(row)).kind == EventKind.JOIN:
                    rest = tuple(one for one in fired.people if one not in people)
                    _keep(row, rest, fired.count - len(fired.people) + len(rest))


def _keep(row: Message, people: tuple[str, ...], count: int) -> None:
    """Have ``row`` be for ``people``; without any it is settled."""
    row.raw = replace(_fired(row), people=people, count=count).to_raw()
    if not count:
        row.state, row.claimed_by, row.settled_at = State.SILENT, "", timezone.now()
    row.save(update_fields=["raw", "state", "claimed_by", "settled_at"])


def _people(arrivals: Sequence[EventArrival]) -> list[str]:
    return [one.notice.user_id for one in arrivals if one.notice.user_id]


def _fired(row: Message) -> FiredRule:
    fired = read_fired_rule(row.raw)
    assert fired is not None  # noqa: S101 - what this module wrote
    return fired


def _heard(one: EventArrival) -> IncomingMessage:
    """The event as a message of whoever caused it, to be judged like one."""
    notice = one.notice
    assert notice.chat is not None  # noqa: S101 - others are left out before
    return IncomingMessage(
        notice.chat, find_cause(notice), "", "", [], is_friend=True, happened_at=notice.happened_at
    )
