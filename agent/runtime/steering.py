"""What pages of the admin can have the running server do in its chats.

What an act changes is on record before it is asked for here: these are the parts that cannot wait
until the server looks by itself.
"""

from collections.abc import Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from agent.chat.hand_messages import HandMessages
from agent.chat.inbox import Inbox
from agent.domain.states import MessageReason
from agent.domain.types import ChatAddress, MessagePart, Outbox
from agent.record.waiting.call_stops import find_stopped
from agent.run.call_stops import calls_under_way, stop_calls


@dataclass(frozen=True, slots=True)
class Steering:
    """The parts of a running server that operators steer. The coroutines belong on its loop
    (:meth:`agent.runtime.serving.ServingRegistry.steer`)."""

    outbox: Outbox
    inbox: Inbox
    hand_messages: HandMessages
    tell_decided: Callable[[Collection[int]], Coroutine[Any, Any, None]]
    """Tells clients what was decided over requests, and waits a while for what they say."""

    def compose(self, parts: Sequence[MessagePart]) -> list[dict[str, Any]]:
        """``parts`` as the segments of one message. In any thread."""
        return self.outbox.compose(parts)

    def is_connected(self, chat: ChatAddress) -> bool:
        """Whether the account of ``chat`` is connected to any process. In any thread."""
        return self.outbox.is_connected(chat)

    def find_owners(self, account: str) -> Collection[str]:
        """Who owns ``account``, as it is obeyed at this moment. In any thread."""
        known = self.inbox.record.live.current.accounts.get(account)
        return known.owners if known else ()

    async def send_by_hand(self) -> None:
        """Send what operators have put on record. Returns before it is sent."""
        self.hand_messages.look()

    async def stop_calls(self) -> None:
        """Stop the tool calls of this process that operators want to end. Others look by
        themselves, once a second."""
        if calls_under_way:
            stop_calls(await self.inbox.record.submit(find_stopped, list(calls_under_way)))

    async def let_go(self, chat: ChatAddress, pks: Collection[int], reason: MessageReason) -> None:
        """Do nothing more for these messages, whose end is on record already."""
        await self.inbox.let_go(chat, pks, reason)
