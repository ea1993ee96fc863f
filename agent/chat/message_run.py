"""The run of one message, and the message's state meanwhile."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from django.utils import timezone

from agent.domain.answer_triggers import merge_window
from agent.domain.commands import Command
from agent.domain.event_rules import FiredRule
from agent.domain.reminders import find_silence
from agent.domain.types import AccountSettings, ChatAddress, IncomingMessage
from agent.media.pipeline import PrefetchTask
from agent.record.runs.runs import ActiveRun
from agent.record.sums.tallies import account_subject, person_subject
from agent.record.waiting.recovery import PendingMessage
from agent.run.message_sender import MessageSender
from agent.run.services import RunServices
from tools.contract import ToolExecutionContext

#: Messages that are answered together, at most.
MOST_MERGED = 20
#: How long the first of them waits for others, at most: so many windows, and seconds.
WINDOWS, LONGEST_WAIT = 3, 30.0


class QueuedMessage(NamedTuple):
    """A message to be answered. ``active``: its run, if that began with the message's own commit.

    ``prefetch`` fetches its media since it arrived, for their links expire. ``earlier`` are those
    that are merged into it. ``arrived`` is by the clock of the event loop; 0 for one that is taken
    up from the record, which waits for nothing.
    """

    pending: PendingMessage
    active: ActiveRun | None = None
    resumed: bool = False
    prefetch: PrefetchTask | None = None
    earlier: "tuple[QueuedMessage, ...]" = ()
    arrived: float = 0.0

    @property
    def pk(self) -> int:
        return self.pending.pk

    @property
    def window(self) -> float:
        """Seconds in which further messages of the same person are awaited, if any."""
        return merge_window(self.pending.message, self.pending.manners) if self._can_merge else 0.0

    @property
    def _can_merge(self) -> bool:
        pending = self.pending
        return not (
            self.active
            or pending.has_begun
            or pending.notice
            or pending.command
            or pending.approval_reply
            or pending.is_later_result
            or pending.rule
        )

    def follows(self, group: "Sequence[QueuedMessage]") -> bool:
        """Whether this one, next in the queue, is answered together with ``group`` before it."""
        before = group[-1]
        return bool(
            len(group) < MOST_MERGED
            and before.window
            and self._can_merge
            and self.pk > before.pk
            and self.pending.message.sender_id == before.pending.message.sender_id
        )


def from_record(pending: PendingMessage) -> QueuedMessage:
    """``pending``, as it was claimed from the record."""
    earlier = tuple(QueuedMessage(one, resumed=True) for one in pending.earlier)
    return QueuedMessage(pending, resumed=True, earlier=earlier)


def waits_until(group: Sequence[QueuedMessage]) -> float:
    """When nothing more is awaited to be answered together with ``group``, by the clock of the
    event loop."""
    first, last = group[0], group[-1]
    if len(group) == MOST_MERGED:
        return 0.0
    longest = min(WINDOWS * first.window, LONGEST_WAIT)
    return min(last.arrived + last.window, first.arrived + longest)


def merge(group: Sequence[QueuedMessage]) -> list[QueuedMessage]:
    """The last of ``group``, with the others, and what is merged into them, as its earlier ones;
    nothing for none."""
    if not group:
        return []
    *others, last = group
    earlier = [one for other in others for one in (*other.earlier, other._replace(earlier=()))]
    return [last._replace(earlier=(*earlier, *last.earlier))]


@dataclass(slots=True)
class MessageRun:
    """The run that answers one message, and the message's state meanwhile."""

    pending: PendingMessage
    active: ActiveRun
    sender: MessageSender
    earlier: tuple[QueuedMessage, ...] = ()
    """Those that are answered together with it, oldest first."""
    ambient: str = ""
    """What else was said in the group, fenced, where it is shown."""
    notes: list[str] = field(default_factory=list)
    """For the record: what was left out, and why."""
    begun_at: datetime = field(default_factory=timezone.now)
    asides: int = 0
    """Messages with what the model wrote beside its calls; they are no answer."""

    @property
    def message(self) -> IncomingMessage:
        return self.pending.message

    @property
    def is_silenced(self) -> bool:
        """Whether it tells the outcome of an earlier call in a chat that was silenced, taken over,
        or left to somebody else alone, meanwhile."""
        return bool(self.pending.is_later_result and self.silence)

    @property
    def is_by_rule(self) -> bool:
        """Whether a rule is followed without a model, or told what came of a call of one."""
        rule, later = self.pending.rule, self.active.later
        return bool((rule and not rule.asks_model) or (later and later.is_by_rule))

    @property
    def ordering_rule(self) -> FiredRule | None:
        """The rule that says what a model is to do, with what it is about; None for none. The words
        with a keyword are material then, as those of an event."""
        rule, is_event = self.pending.rule, self.pending.is_later_result
        if rule is None or not rule.asks_model or not (is_event or rule.text):
            return None
        return rule if is_event else replace(rule, words=self.message.text)

    @property
    def silence(self) -> str:
        """Why nothing is said in the chat now that nobody there asks for; "" where it is said."""
        is_taken_over, person = bool(self.active.taken_over_by), self.message.sender_id
        manners = self.active.manners
        return find_silence(person, manners, timezone.now(), is_taken_over=is_taken_over)

    @property
    def is_taken_over(self) -> bool:
        """Whether an operator answers it: he took over when it was on its way already. Owners can
        always give commands and decide over calls."""
        if not self.active.taken_over_by or self.pending.is_later_result:
            return False
        by_owner = self.message.sender_id in self.pending.account.owners
        is_order = self.pending.command or self.pending.approval_reply
        return not (self.pending.notice or (is_order and by_owner))

    @property
    def has_answered(self) -> bool:
        """Whether a tool has said something, so that nothing more needs to be said."""
        only_asides = self.asides > 0 and len(self.sender.said) == self.asides
        return self.sender.has_spoken and not only_asides


def build_spenders(pending: PendingMessage, persona: str) -> dict[str, Any]:
    """Who the model calls for a message count for, in the fields of
    :class:`agent.llm.spending.SpendScope`."""
    chat, sender = pending.message.chat, pending.message.sender_id
    return {
        "account": account_subject(chat),
        "chat": chat.place,
        "person": person_subject(chat, sender),
        "is_owner": sender in pending.account.owners,
        "is_outcome": pending.is_later_result and not (pending.reminder or pending.rule),
        "persona": persona,
        "tool": "",
    }


def build_tool_context(
    message: IncomingMessage, account: AccountSettings, services: RunServices, own_role: str = ""
) -> ToolExecutionContext:
    """Where tools of this run act: the chat of the message, on behalf of its sender."""
    chat = message.chat
    is_group = chat.kind == "group"
    role = message.sender_role if account.believes_senders else ""
    return ToolExecutionContext(
        session_id=chat.address,
        stream_id=chat.address,
        is_group_chat=is_group,
        group_id=chat.peer_id if is_group else "",
        user_id=message.sender_id,
        platform=chat.platform,
        metadata={
            "account": chat.account,
            "message_id": message.message_id,
            "owners": account.owners,
            "sender_role": role,
        },
        owners=account.owners,
        sender_role=role,
        believes_sender=account.believes_senders,
        own_role=own_role,
        services=services,
    )


StopAnswer = Callable[[ChatAddress, str | None], Awaitable[bool]]
"""Stops the answer under way in a chat, if this person asked for it, None for whoever did; whether
there was one (:meth:`agent.chat.inbox.Inbox.stop`)."""


class CommandAnswers(Protocol):
    """Carries out what is ordered in a chat; implemented by
    :class:`agent.commands.desk.CommandDesk`."""

    async def answer(self, run: MessageRun, command: Command, stop: StopAnswer) -> None:
        """Carry ``command`` out and bring its message to a recorded end."""
        ...


async def stop_nothing(chat: ChatAddress, asker: str | None) -> bool:
    """The :data:`StopAnswer` of a program that answers one message after the other."""
    return False
