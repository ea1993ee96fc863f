"""What pages of the admin can have the running server do in its chats.

What an act changes is on record before it is asked for here: these are the parts that cannot wait
until the server looks by itself.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent.chat.hand_messages import HandMessages
from agent.chat.inbox import Inbox
from agent.domain.client_actions import ClientActions
from agent.domain.group_acts import LEAST_ROLE, NO_CLIENT, Asker
from agent.domain.states import MessageReason
from agent.domain.types import ChatAddress, MessagePart, Outbox
from agent.record.waiting.call_stops import find_stopped
from agent.record.waiting.operator_acts import set_act_outcome
from agent.run.acting import NotActed, carry_out, check_person, find_own
from agent.run.call_stops import calls_under_way, stop_calls

if TYPE_CHECKING:
    from agent.chat.undoing import Undoing


@dataclass(frozen=True, slots=True)
class GroupAct:
    """What an operator has an account do. ``name`` is that of the tool whose rules count, and
    ``person`` whom it is done to, "" for nobody."""

    name: str
    action: str
    params: Mapping[str, object]
    person: str = ""


@dataclass(frozen=True, slots=True)
class Steering:
    """The parts of a running server that operators steer. The coroutines belong on its loop
    (:meth:`agent.runtime.serving.ServingRegistry.steer`)."""

    outbox: Outbox
    inbox: Inbox
    hand_messages: HandMessages
    tell_decided: Callable[[Collection[int]], Coroutine[Any, Any, None]]
    """Tells clients what was decided over requests, and waits a while for what they say."""
    find_undoing: "Callable[[], Undoing]"
    actions: ClientActions | None = None

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

    async def undo(self) -> None:
        """Take back what an operator has put on record to be, until that is done."""
        await asyncio.wait([self.find_undoing().look()])

    async def stop_calls(self) -> None:
        """Stop the tool calls of this process that operators want to end. Others look by
        themselves, once a second."""
        if calls_under_way:
            stop_calls(await self.inbox.record.submit(find_stopped, list(calls_under_way)))

    async def act(
        self, chat: ChatAddress, act: GroupAct, row: int, detail: str, language: str
    ) -> str:
        """Do what an operator has put on record as ``row``, once; why it was not done, "" where it
        was. The record says what came of it, also where nobody waits for that."""
        words = ""
        try:
            await self._do(chat, act)
        except NotActed as error:
            words = error.say(language)
        outcome = f"{detail}: {words or 'ok'}"
        await self.inbox.record.submit(set_act_outcome, row, outcome)
        return words

    async def _do(self, chat: ChatAddress, act: GroupAct) -> None:
        if self.actions is None:
            raise NotActed(NO_CLIENT)
        if act.person:
            owners, asker = self.find_owners(chat.account), Asker("", is_trusted=True)
            await check_person(self.actions, chat, owners, asker, act.name, act.person)
        elif chat.kind == "group" and act.name != "recall_message":
            await find_own(self.actions, chat, LEAST_ROLE[act.name])
        await carry_out(self.actions, chat, act.action, act.params)

    async def let_go(self, chat: ChatAddress, pks: Collection[int], reason: MessageReason) -> None:
        """Do nothing more for these messages, whose end is on record already."""
        await self.inbox.let_go(chat, pks, reason)
