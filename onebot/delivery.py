"""Delivering messages to chats, and telling what became of them."""

import asyncio
from collections.abc import Sequence
from typing import Any

from agent import faults
from agent.models import Message
from agent.types import ChatAddress, Delivery, Part
from onebot import bots
from onebot.actions import ActionResponse, encode_action, send_action
from onebot.calls import Calls
from onebot.connections import Connections
from onebot.errors import NotConnected, OneBotError
from onebot.relay import Relay
from onebot.segments import from_parts

State = Message.State

#: Time for a client to answer a send, in seconds; NapCat itself waits 10 s and more for QQ.
SEND_TIMEOUT = 60.0
#: The largest frame that is sent: NapCat closes the connection on more than 50 MiB.
MAX_FRAME_BYTES = 48 * 2**20
#: Characters in one value from which a message is encoded in a thread.
LARGE_VALUE = 2**20
#: How often to look whether an account has come back to another process.
LOOK_AGAIN_SECONDS = 5.0
#: Characters of a client's words that are kept.
ERROR_LIMIT = 1_000


class Delivery11:
    """The :class:`agent.types.Outbox` of OneBot 11."""

    def __init__(self, connections: Connections, calls: Calls, relay: Relay) -> None:
        self._connections = connections
        self._calls = calls
        self._relay = relay
        self._owners: dict[str, frozenset[str]] = {}

    def compose(self, parts: Sequence[Part]) -> list[dict[str, Any]]:
        return from_parts(parts)

    def owners(self, chat: ChatAddress) -> frozenset[str]:
        return self._owners.get(chat.account, frozenset())

    def reload(self) -> None:
        self._owners = bots.load_owners()

    def is_connected(self, chat: ChatAddress) -> bool:
        return self._connections.action_socket(chat.account) is not None or self._relay.knows(chat.account)

    async def wait_connected(self, chat: ChatAddress, seconds: float) -> bool:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while not self.is_connected(chat):
            left = deadline - loop.time()
            if left <= 0:
                return False
            await self._connections.wait(chat.account, min(left, LOOK_AGAIN_SECONDS))
        return True

    async def deliver(self, chat: ChatAddress, segments: list[dict[str, Any]], *, echo: str, temp_group_id: str = "") -> Delivery:
        action, params = send_action(chat.kind, chat.peer_id, segments, temp_group_id)
        if _is_large(segments):
            text = await asyncio.to_thread(encode_action, action, params, echo)
        else:
            text = encode_action(action, params, echo)
        if len(text) > MAX_FRAME_BYTES or len(text.encode()) > MAX_FRAME_BYTES:
            return Delivery(State.FAILED, error=f"the message is larger than {MAX_FRAME_BYTES >> 20} MiB")
        try:
            response = await self._call(chat.account, text, echo)
        except OneBotError as error:
            return Delivery(State.UNKNOWN if error.may_have_arrived else State.FAILED, error=str(error))
        faults.reached("answer_received")
        return outcome(response)

    async def _call(self, account: str, text: str, echo: str) -> ActionResponse:
        socket = self._connections.action_socket(account)
        if socket is not None:
            return await self._calls.call(account, socket, text, echo, SEND_TIMEOUT)
        if self._relay.knows(account):
            return await self._relay.call(account, text, echo, SEND_TIMEOUT)
        raise NotConnected("the account is not connected")


def _is_large(segments: list[dict[str, Any]]) -> bool:
    """Whether encoding takes long enough to keep other sockets waiting."""
    values = (value for segment in segments for value in segment["data"].values())
    return any(isinstance(value, str) and len(value) > LARGE_VALUE for value in values)


def outcome(response: ActionResponse) -> Delivery:
    """What a client's answer to a send says of the message."""
    if response.is_success:
        return Delivery(State.DELIVERED, message_id=response.message_id)
    if response.is_uncertain:
        return Delivery(State.UNKNOWN, error=response.error_text[:ERROR_LIMIT])
    return Delivery(State.FAILED, error=response.error_text[:ERROR_LIMIT])
