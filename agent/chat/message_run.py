"""The run of one message, and the message's state meanwhile."""

from dataclasses import dataclass, field

from django.utils import timezone

from agent.chat.merging import QueuedMessage
from agent.domain.types import IncomingMessage
from agent.record.runs.runs import ActiveRun
from agent.record.waiting.recovery import PendingMessage
from agent.run.message_sender import MessageSender


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
    asides: int = 0
    """Messages with what the model wrote beside its calls; they are no answer."""

    @property
    def message(self) -> IncomingMessage:
        return self.pending.message

    @property
    def is_silenced(self) -> bool:
        """Whether it tells the outcome of an earlier call in a chat that was silenced, or taken
        over, meanwhile."""
        silence = self.active.manners.find_silence(timezone.now()) or self.active.taken_over_by
        return self.pending.is_later_result and bool(silence)

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
