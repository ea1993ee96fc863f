"""Committing incoming messages, with the decision to answer them or not."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from django.utils import timezone
from django.utils.translation import gettext_noop

from agent.domain.answer_triggers import Occasion, TriggerDecision, decide_trigger, merge_window
from agent.domain.approvals import ApprovalReply
from agent.domain.commands import Command, parse_command
from agent.domain.manners import ChatManners, environment_manners
from agent.domain.persona import PersonaSettings, environment_persona
from agent.domain.states import FIRST_CLAIM
from agent.domain.types import DEFAULT_ACCOUNT, AccountSettings, IncomingMessage
from agent.models import Message, Run
from agent.record.arrivals.follow_ups import FollowUps
from agent.record.chats import early_recalls
from agent.record.chats.chat_record import ID_REUSE_AFTER
from agent.record.chats.members import build_header
from agent.record.chats.own_messages import (
    file_heard_message,
    file_own_message,
    find_quoted_own,
    repeats_own,
)
from agent.record.chats.session_cache import SessionCache, TouchedSession
from agent.record.chats.sessions import SessionState
from agent.record.ground import statements
from agent.record.ground.versions import read_versions
from agent.record.runs.runs import ActiveRun, RunPlan, RunStarter, StartRun
from agent.record.sums.activity import Arrival, count_arrivals, count_messages, count_runs
from agent.record.sums.quotas import AnswerCandidate, AnswerQuotas
from agent.record.waiting.approvals import read_approval_reply, waiting_codes
from agent.record.waiting.recovery import PendingMessage
from tools.local_time import chosen_zone

State = Message.State


@dataclass(frozen=True, slots=True)
class MessageArrival:
    """A message as it was received, not yet on record.

    ``plan`` is given where nothing of the chat is under way: if the message is to be
    answered, its run begins in the same commit, unless it waits for further words.
    """

    message: IncomingMessage
    received_at: datetime
    plan: RunPlan | None = None


@dataclass(frozen=True, slots=True)
class AcceptedMessage:
    """A message on record. ``pk`` is 0 and ``decision`` None for one that was on record already."""

    pk: int
    session_pk: int
    decision: TriggerDecision | None
    begun: ActiveRun | None = None
    approval_reply: ApprovalReply | None = None
    account: AccountSettings = DEFAULT_ACCOUNT
    persona: PersonaSettings = field(default_factory=environment_persona)
    manners: ChatManners = field(default_factory=environment_manners)
    command: Command | None = None
    header: dict[str, Any] | None = None
    kept: SessionState = field(default_factory=SessionState)
    """What the chat's row keeps for a run that begins with it."""

    def to_pending(self, message: IncomingMessage) -> PendingMessage:
        """``message``, which is to be answered, as claimed by this process."""
        return PendingMessage(
            self.pk,
            self.session_pk,
            message if self.header is None else replace(message, header=self.header),
            notice=self.decision.detail if self.decision else "",
            approval_reply=self.approval_reply,
            account=self.account,
            command=self.command,
            manners=self.manners,
            persona=self.begun.persona if self.begun else self.persona,
        )


class _JudgedMessage(NamedTuple):
    """An event's key and the decision on it, None for one that was seen before."""

    key: str | None
    decision: TriggerDecision | None
    manners: ChatManners
    approval_reply: ApprovalReply | None = None
    command: Command | None = None
    header: dict[str, Any] | None = None


class ArrivalStore:
    """Accepts messages for one server process."""

    def __init__(
        self, process_id: str, run_starter: RunStarter, quotas: AnswerQuotas | None = None
    ) -> None:
        self._process_id = process_id
        self._run_starter = run_starter
        self._quotas = quotas
        self._sessions = SessionCache()
        self._follow_ups = FollowUps()

    def accept_messages(self, arrivals: Sequence[MessageArrival]) -> list[AcceptedMessage]:
        """Store ``arrivals`` in order, each with its decision; what was seen before is left out.

        The runs that were planned for messages which are to be answered begin with it.
        """
        accepted = self._store_messages(arrivals)
        wishes = {
            index: StartRun(arrival.plan, one.pk, one.session_pk, kept=one.kept)
            for index, (arrival, one) in enumerate(zip(arrivals, accepted, strict=True))
            if arrival.plan and _begins_at_once(arrival, one)
        }
        if wishes:
            seen = self._run_starter.live.seen.versions
            runs = self._run_starter.begin_runs(list(wishes.values()), seen)
            for index, run in zip(wishes, runs, strict=True):
                if isinstance(run, ActiveRun):
                    accepted[index] = replace(accepted[index], begun=run)
        return accepted

    def forget(self) -> None:
        """Trust nothing remembered: a transaction was not committed."""
        self._sessions.forget()
        self._follow_ups.forget()

    def _store_messages(self, arrivals: Sequence[MessageArrival]) -> list[AcceptedMessage]:
        received = [(arrival.message, arrival.received_at) for arrival in arrivals]
        # Also where a message has to wait: its media are fetched at once.
        self._run_starter.live.see(read_versions())
        chats = self._sessions.find(received)
        judged = self._judge_messages(arrivals, chats)
        wanted = [
            index
            for index, one in enumerate(judged)
            if one.decision and one.decision.is_to_be_answered
        ]
        if self._quotas is not None and wanted:
            _apply_quotas(self._quotas, arrivals, judged, wanted)
        rows = [
            self._row(arrival, chat.pk, one, one.decision)
            for arrival, chat, one in zip(arrivals, chats, judged, strict=True)
            if one.decision
        ]
        pks = iter(statements.add_arrivals.add(rows))
        _count(arrivals, chats, judged)
        personas = self._run_starter.live.seen.personas
        return [
            AcceptedMessage(
                next(pks) if one.decision else 0,
                chat.pk,
                one.decision,
                approval_reply=one.approval_reply,
                account=self._run_starter.live.find_account(arrival.message.chat.account),
                persona=personas.find(arrival.message.chat, arrival.message.sender_id),
                manners=one.manners,
                command=one.command,
                header=one.header,
                kept=chat.kept,
            )
            for arrival, chat, one in zip(arrivals, chats, judged, strict=True)
        ]

    def _judge_messages(
        self, arrivals: Sequence[MessageArrival], chats: Sequence[TouchedSession]
    ) -> list[_JudgedMessage]:
        """The decision on each message by itself."""
        sessions = [chat.pk for chat in chats]
        seen = _find_seen(arrivals, sessions)
        quoted = find_quoted_own([arrival.message for arrival in arrivals], sessions)
        judged, spoken = [], dict[tuple[int, str], str]()
        for arrival, chat in zip(arrivals, chats, strict=True):
            manners = self._run_starter.live.seen.manners.find(arrival.message.chat)
            key = _event_key(arrival, chat.pk, seen)
            if key is not None and (chat.pk, key) in seen:
                judged.append(_JudgedMessage(key, None, manners))
                continue
            if key is not None:
                seen[chat.pk, key] = arrival.received_at
            is_quote = (chat.pk, arrival.message.quoted_id) in quoted
            one = self._judge(arrival, chat, key, manners, quotes_bot=is_quote)
            header = build_header(arrival.message, chat.pk, chat.title, spoken, chosen_zone())
            judged.append(one._replace(header=header))
            spoken[chat.pk, arrival.message.sender_id] = arrival.message.sender_name
        return judged

    def _judge(
        self,
        arrival: MessageArrival,
        chat: TouchedSession,
        key: str | None,
        manners: ChatManners,
        *,
        quotes_bot: bool,
    ) -> _JudgedMessage:
        message = arrival.message
        account = message.chat.account
        reply = read_approval_reply(message, chat.pk)
        command = parse_command(message.text, manners.command_prefix)
        occasion = Occasion(
            now=arrival.received_at,
            quotes_bot=quotes_bot,
            is_decision=reply is not None and bool(waiting_codes(account, {reply.code})),
            is_command=command is not None,
            is_follow_up=self._follow_ups.is_one(chat.pk, message.sender_id, arrival.received_at),
            is_owner=message.sender_id in self._run_starter.live.find_account(account).owners,
            pause=chat.find_pause(arrival.received_at),
            taken_over_by=chat.find_operator(arrival.received_at),
            roll=random.random() * 100 if manners.wake_chance else 100.0,  # noqa: S311
        )
        decision = decide_trigger(message, manners, occasion)
        if decision.reason != Message.Reason.COMMAND:
            command = None
        if early_recalls.was_recalled(message.chat, message.message_id, arrival.received_at):
            decision = TriggerDecision(State.SILENT, Message.Reason.RECALLED)
        if decision.is_to_be_answered and not (command or reply):
            window = merge_window(message, manners)
            self._follow_ups.await_more(chat.pk, message, window, arrival.received_at)
        return _JudgedMessage(key, decision, manners, reply, command)

    def _row(
        self,
        arrival: MessageArrival,
        session_pk: int,
        judged: _JudgedMessage,
        decision: TriggerDecision,
    ) -> dict[str, Any]:
        message = arrival.message
        return {
            "session": session_pk,
            "state": State.RUNNING if _begins_at_once(arrival, judged) else decision.state,
            "reason": decision.reason,
            "detail": decision.detail,
            "sender_id": message.sender_id,
            "sender_name": message.sender_name[:200],
            "sender_role": message.sender_role[:16],
            "message_id": message.message_id,
            "text": message.text,
            "segments": message.segments,
            "raw": message.raw,
            "quoted_id": message.quoted_id or None,
            "temp_group_id": message.temp_group_id,
            "event_key": judged.key,
            "header": judged.header,
            "claimed_by": self._process_id if decision.is_to_be_answered else "",
            "claim_number": FIRST_CLAIM if decision.is_to_be_answered else 0,
            "place": message.chat.place,
            "happened_at": message.happened_at,
            "created_at": arrival.received_at,
            "recalled_at": arrival.received_at
            if decision.reason is Message.Reason.RECALLED
            else None,
            "settled_at": None if decision.is_to_be_answered else arrival.received_at,
            "in_history": False,
            "run": None,
            **file_own_message(message, session_pk),
            **file_heard_message(decision, session_pk),
        }


def _begins_at_once(arrival: MessageArrival, judged: "AcceptedMessage | _JudgedMessage") -> bool:
    """Whether the run that answers the message begins in the transaction that stores it."""
    return (
        arrival.plan is not None
        and judged.decision is not None
        and judged.decision.is_to_be_answered
        and not merge_window(arrival.message, judged.manners)
    )


def _count(
    arrivals: Sequence[MessageArrival],
    chats: Sequence[TouchedSession],
    judged: Sequence[_JudgedMessage],
) -> None:
    count_arrivals(
        Arrival(chat.pk, arrival.message.chat.account, arrival.received_at, one.decision)
        for arrival, chat, one in zip(arrivals, chats, judged, strict=True)
        if one.decision
    )


def _apply_quotas(
    quotas: AnswerQuotas,
    arrivals: Sequence[MessageArrival],
    judged: list[_JudgedMessage],
    wanted: Sequence[int],
) -> None:
    """Have ``quotas`` decide again over those that are to be answered: the places ``wanted``."""
    candidates = [
        AnswerCandidate(
            arrivals[index].message,
            decision,
            judged[index].manners,
            arrivals[index].received_at,
        )
        for index in wanted
        if (decision := judged[index].decision)
    ]
    for index, decision in zip(wanted, quotas.decide(candidates), strict=True):
        judged[index] = judged[index]._replace(decision=decision)


def _find_seen(
    arrivals: Sequence[MessageArrival], sessions: Sequence[int]
) -> dict[tuple[int, str], datetime]:
    """When each event that is on record already was recorded, by session and event key."""
    keys = {
        key
        for a in arrivals
        if a.message.message_id
        for key in (a.message.message_id, _later_key(a))
    }
    if not keys:
        return {}
    known = statements.find_seen.rows(keys=list(keys), sessions=list(set(sessions)))
    seen = {(session, key): at for session, key, at in known if key}
    for arrival, session_pk in zip(arrivals, sessions, strict=True):
        if arrival.message.from_own_account and repeats_own(
            arrival.message, session_pk, arrival.received_at, ID_REUSE_AFTER
        ):
            seen[session_pk, arrival.message.message_id] = arrival.received_at
    return seen


def _event_key(
    arrival: MessageArrival, session_pk: int, seen: dict[tuple[int, str], datetime]
) -> str | None:
    """The key that distinguishes this event from others of its chat; None if it has none."""
    message_id = arrival.message.message_id or None
    first = seen.get((session_pk, message_id)) if message_id else None
    if first is not None and arrival.received_at - first > ID_REUSE_AFTER:
        return _later_key(arrival)
    return message_id


def _later_key(arrival: MessageArrival) -> str:
    """The key of an event whose id was used by another message, on an earlier day."""
    return f"{arrival.message.message_id}@{arrival.received_at:%Y%m%d}"


def refuse_messages(pks: Sequence[int]) -> list[None]:
    """Settle messages for which there was no room: on record, visible, never answered."""
    refused = Message.objects.filter(pk__in=pks)
    count_messages(refused, State.FAILED)
    refused.update(
        state=State.FAILED,
        reason=Message.Reason.QUEUE_FULL,
        claimed_by="",
        settled_at=timezone.now(),
    )
    runs = Run.objects.filter(message__in=pks, state=Run.State.RUNNING)
    count_runs(runs, failed=True)
    runs.update(
        state=Run.State.FAILED,
        error=gettext_noop("too many messages were waiting in this chat"),
        finished_at=timezone.now(),
    )
    return [None] * len(pks)
