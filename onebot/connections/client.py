"""Asking the client of an account to do something, wherever its socket is."""

import asyncio
import logging
from typing import Any

from agent.run.echoes import new_echo
from onebot.connections.calls import PendingActions
from onebot.connections.connections import Connections
from onebot.connections.relay import Relay
from onebot.protocol.actions import ActionResponse, encode_action
from onebot.protocol.errors import NotConnected, OneBotError
from tools.time_limits import TIME_LIMITS

logger = logging.getLogger(__name__)

#: How often to look whether an account has come back to another process, in seconds.
LOOK_AGAIN_SECONDS = TIME_LIMITS.account_look


class OneBotClient:
    """The clients of all accounts: their sockets are here, or in a process behind ``relay``."""

    def __init__(self, connections: Connections, pending: PendingActions, relay: Relay) -> None:
        self._connections = connections
        self._pending = pending
        self._relay = relay

    def is_connected(self, account: str) -> bool:
        """Whether an action for ``account`` could be written to a socket now."""
        here = self._connections.action_socket(account) is not None
        return here or self._relay.is_elsewhere(account)

    async def wait_connected(self, account: str, seconds: float) -> bool:
        """Wait at most ``seconds`` for ``account``; True once it is connected."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while not self.is_connected(account):
            left = deadline - loop.time()
            if left <= 0:
                return False
            await self._connections.wait(account, min(left, LOOK_AGAIN_SECONDS))
        return True

    def user_agent(self, account: str) -> str:
        """What the client calls itself; "" where its socket is not in this process."""
        socket = self._connections.action_socket(account)
        return socket.user_agent if socket else ""

    async def call(
        self, account: str, action: str, params: dict[str, Any], echo: str, timeout_seconds: float
    ) -> ActionResponse:
        """Have the client carry out ``action``; its response. Raises what :meth:`send` raises."""
        return await self.send(account, encode_action(action, params, echo), echo, timeout_seconds)

    async def call_optional(
        self, account: str, action: str, params: dict[str, Any], timeout_seconds: float
    ) -> ActionResponse | None:
        """Have the client carry out what not every client can. None where it does not answer, is
        not connected, or has said on this connection that it does not know ``action``: then it is
        not asked again. Never raises."""
        socket = self._connections.action_socket(account)
        if socket is not None and action in socket.unsupported:
            return None
        try:
            response = await self.call(account, action, params, new_echo(), timeout_seconds)
        except OneBotError as error:
            logger.debug("%s was not answered by %s: %s", action, account, error)
            return None
        if response.is_unsupported and socket is not None:
            socket.unsupported.add(action)
        return response

    async def send(
        self, account: str, text: str, echo: str, timeout_seconds: float
    ) -> ActionResponse:
        """Write the encoded action ``text``, and wait for the response to ``echo``.

        Raises :class:`NotConnected` when it was certainly not written: the account is connected
        neither where it was last nor elsewhere. The other errors are those of
        :meth:`onebot.connections.calls.PendingActions.call` and
        :meth:`onebot.connections.relay.Relay.call`. After cancellation the action may have been
        carried out.
        """
        try:
            return await self.send_once(account, text, echo, timeout_seconds)
        except NotConnected:
            if not self._relay.channel:
                raise
            await self._relay.refresh_accounts()
            return await self.send_once(account, text, echo, timeout_seconds)

    async def send_once(
        self, account: str, text: str, echo: str, timeout_seconds: float, *, only_here: bool = False
    ) -> ActionResponse:
        """The same without looking for the account where it is not; ``only_here``: in no other
        process."""
        socket = self._connections.action_socket(account)
        if socket is not None:
            return await self._pending.call(account, socket, text, echo, timeout_seconds)
        if not only_here and self._relay.is_elsewhere(account):
            return await self._relay.call(account, text, echo, timeout_seconds)
        raise NotConnected("the account is not connected")
