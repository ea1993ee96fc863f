"""Committing incoming messages, with the decision to answer them or not."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from django.utils import timezone
from django.utils.translation import gettext_noop

from agent.domain.answer_triggers import Occasion, TriggerDecision, decide_trigger, merge_window
from agent.domain.approvals import ApprovalReply, parse_approval_reply
from agent.domain.commands import MEMBER_COMMANDS, Command, parse_command
from agent.domain.manners import ChatManners, MemberCommands, environment_manners
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
from agent.record.chats.sessions import SessionCache, TouchedSession
from agent.record.ground import statements
from agent.record.runs.runs import ActiveRun, RunPlan, RunStarter, StartRun
from agent.record.sums.activity import Arrival, count_arrivals, count_messages, count_runs
from agent.record.sums.quotas import AnswerCandidate, AnswerQuotas
from agent.record.waiting.approvals import read_approval_reply, waiting_codes
from agent.record.waiting.recovery import PendingMessage
from tools.local_time import chosen_zone
from tools.registry.policy import GROUP_ADMIN_ROLES

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

    def to_pending(self, message: IncomingMessage) -> PendingMessage:
        """``message``, which is to be answered, as claimed by this process; its event is on record,
        and not held while it is."""
        return PendingMessage(
            self.pk,
            self.session_pk,
            replace(message, header=self.header or message.header, raw=None),
            notice=self.decision.detail if self.decision else "",
            approval_reply=self.approval_reply,
            account=self.account,
            command=self.command,
            manners=self.manners,
            persona=self.persona,
        )


class _JudgedMessage(NamedTuple):
    """An event's key and the decision on it, None for one that was seen before."""

    key: str | None
    decision: TriggerDecision | None
    manners: ChatManners
    account: AccountSettings = DEFAULT_ACCOUNT
    window: float = 0.0
    """Seconds in which further words are awaited before it is answered."""
    approval_reply: ApprovalReply | None = None
    command: Command | None = None
    header: dict[str, Any] | None = None

    @property
    def is_to_be_answered(self) -> bool:
        return self.decision is not None and self.decision.state is State.WAITING


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
        live = self._run_starter.live
        chats, versions = self._sessions.find(
            [(arrival.message, arrival.received_at, _event_keys(arrival)) for arrival in arrivals]
        )
        # Also where a message has to wait: its media are fetched at once.
        live.see(versions)
        judged = self._judge_messages(arrivals, chats)
        wanted = [index for index, one in enumerate(judged) if one.is_to_be_answered]
        if self._quotas is not None and wanted:
            _apply_quotas(self._quotas, arrivals, judged, wanted)
        plans = {
            index: plan
            for index in wanted
            if (plan := arrivals[index].plan)
            and not judged[index].window
            and judged[index].is_to_be_answered
        }
        rows = [
            self._row(arrival, chat.pk, one, one.decision, begins=index in plans)
            for index, (arrival, chat, one) in enumerate(zip(arrivals, chats, judged, strict=True))
            if one.decision
        ]
        added = iter(statements.add_arrivals.add(rows))
        pks = [next(added) if one.decision else 0 for one in judged]
        _count(arrivals, chats, judged)
        wishes = [
            StartRun(plan, pks[index], chats[index].pk, kept=chats[index].kept)
            for index, plan in plans.items()
        ]
        runs = self._run_starter.begin_runs(wishes, versions) if wishes else []
        begun = {i: run for i, run in zip(plans, runs, strict=True) if isinstance(run, ActiveRun)}
        return [
            self._accepted(arrival, pk, chat.pk, one, begun.get(index))
            for index, (arrival, pk, chat, one) in enumerate(
                zip(arrivals, pks, chats, judged, strict=True)
            )
        ]

    def _accepted(
        self,
        arrival: MessageArrival,
        pk: int,
        session_pk: int,
        judged: _JudgedMessage,
        begun: ActiveRun | None,
    ) -> AcceptedMessage:
        chat, personas = arrival.message.chat, self._run_starter.live.seen.personas
        return AcceptedMessage(
            pk,
            session_pk,
            judged.decision,
            begun=begun,
            approval_reply=judged.approval_reply,
            account=judged.account,
            persona=begun.persona if begun else personas.find(chat, arrival.message.sender_id),
            manners=judged.manners,
            command=judged.command,
            header=judged.header,
        )

    def forget(self) -> None:
        """Trust nothing remembered: a transaction was not committed."""
        self._sessions.forget()
        self._follow_ups.forget()

    def _judge_messages(
        self, arrivals: Sequence[MessageArrival], chats: Sequence[TouchedSession]
    ) -> list[_JudgedMessage]:
        """The decision on each message by itself."""
        seen = _find_seen(arrivals, chats)
        quotes = any(arrival.message.quoted_id for arrival in arrivals)
        quoted = (
            find_quoted_own([arrival.message for arrival in arrivals], [chat.pk for chat in chats])
            if quotes
            else ()
        )
        judged, spoken, zone = [], dict[tuple[int, str], str](), chosen_zone()
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
            header = build_header(arrival.message, chat.pk, chat.title, spoken, zone)
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
        message, account = arrival.message, arrival.message.chat.account
        settings = self._run_starter.live.find_account(account)
        reply = parse_approval_reply(message.text) and read_approval_reply(message, chat.pk)
        on_members = manners.member_commands == MemberCommands.ADMINS
        command = parse_command(message.text, manners.command_prefix, on_members=on_members)
        # A row says that they are for this bot, also where it is not addressed.
        by_leader = message.sender_role in GROUP_ADMIN_ROLES
        is_order = command is not None and by_leader and command.name in MEMBER_COMMANDS
        occasion = Occasion(
            now=arrival.received_at,
            quotes_bot=quotes_bot,
            is_decision=reply is not None and bool(waiting_codes(account, {reply.code})),
            is_command=command is not None,
            is_follow_up=chat.pk in self._follow_ups.awaited
            and self._follow_ups.is_one(chat.pk, message.sender_id, arrival.received_at),
            is_owner=message.sender_id in settings.owners,
            all_for_me=settings.all_for_me or is_order,
            pause=chat.pause_reason and chat.find_pause(arrival.received_at),
            taken_over_by=chat.taken_over_by and chat.find_operator(arrival.received_at),
            roll=random.random() * 100 if manners.wake_chance else 100.0,  # noqa: S311
        )
        decision = decide_trigger(message, manners, occasion)
        if decision.reason != Message.Reason.COMMAND:
            command = None
        if early_recalls.known and early_recalls.was_recalled(
            message.chat, message.message_id, arrival.received_at
        ):
            decision = TriggerDecision(State.SILENT, Message.Reason.RECALLED)
        window = merge_window(message, manners) if decision.state is State.WAITING else 0.0
        follows = decision.state is State.WAITING and not (command or reply)
        if follows and (window or self._follow_ups.awaited):
            self._follow_ups.await_more(chat.pk, message, window, arrival.received_at)
        return _JudgedMessage(key, decision, manners, settings, window, reply, command)

    def _row(
        self,
        arrival: MessageArrival,
        session_pk: int,
        judged: _JudgedMessage,
        decision: TriggerDecision,
        *,
        begins: bool,
    ) -> dict[str, Any]:
        message, is_wanted = arrival.message, decision.state is State.WAITING
        row = {
            "session": session_pk,
            "state": State.RUNNING if begins else decision.state,
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
            "claimed_by": self._process_id if is_wanted else "",
            "claim_number": FIRST_CLAIM if is_wanted else 0,
            "place": message.chat.place,
            "happened_at": message.happened_at,
            "created_at": arrival.received_at,
            "recalled_at": arrival.received_at
            if decision.reason is Message.Reason.RECALLED
            else None,
            "settled_at": None if is_wanted else arrival.received_at,
            "in_history": False,
            "run": None,
        }
        if message.from_own_account:
            row |= file_own_message(message, session_pk)
        if decision.reason is Message.Reason.TAKEN_OVER:
            row |= file_heard_message(decision, session_pk)
        return row


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


def _event_keys(arrival: MessageArrival) -> list[str]:
    """By what the event would be known that is on record already."""
    message_id = arrival.message.message_id
    return [message_id, _later_key(arrival)] if message_id else []


def _find_seen(
    arrivals: Sequence[MessageArrival], chats: Sequence[TouchedSession]
) -> dict[tuple[int, str], datetime]:
    """When each event that is on record already was recorded, by session and event key."""
    seen = {(chat.pk, key): at for chat in chats for key, at in chat.seen.items()}
    for arrival, chat in zip(arrivals, chats, strict=True):
        if arrival.message.from_own_account and repeats_own(
            arrival.message, chat.pk, arrival.received_at, ID_REUSE_AFTER
        ):
            seen[chat.pk, arrival.message.message_id] = arrival.received_at
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
