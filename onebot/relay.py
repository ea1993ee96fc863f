"""Actions for accounts whose socket is in another process, through the channel layer.

Only where several processes share a database. The layer carries one message there and
one back; it may drop either, which makes the outcome unknown like any lost answer.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from channels.layers import InMemoryChannelLayer, get_channel_layer

from onebot.actions import ActionResponse
from onebot.errors import ActionTimeout
from tools.boundary import survive

logger = logging.getLogger(__name__)

#: How often the accounts of the other processes are read from the database, in seconds.
REFRESH_SECONDS = 5.0

Carry = Callable[[str, str, str, float], Awaitable[ActionResponse]]


class Relay:
    """This process's mailbox on the channel layer, and where the other accounts are."""

    def __init__(self, online_accounts: Callable[[], Awaitable[dict[str, str]]]) -> None:
        self.channel = ""
        """The name of the mailbox, "" while there is none."""
        self.accounts: dict[str, str] = {}
        """Connected accounts of all processes, with the mailbox of the process that holds them."""
        self._online_accounts = online_accounts
        self._waiting: dict[str, asyncio.Future[ActionResponse]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self, carry: Carry) -> None:
        """Start to listen, if the layer reaches other processes. ``carry`` performs their actions here."""
        layer = get_channel_layer()
        if layer is None or isinstance(layer, InMemoryChannelLayer):
            return
        self.channel = await layer.new_channel()
        self._keep(self._listen(layer, carry))
        self._keep(self._refresh())

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def knows(self, account: str) -> bool:
        """Whether another process holds the socket of ``account``."""
        return self.accounts.get(account, self.channel) not in ("", self.channel)

    async def call(self, account: str, text: str, echo: str, timeout_seconds: float) -> ActionResponse:
        """Have the process that holds ``account`` write ``text``; its client's response.

        Raises :class:`ActionTimeout` when nothing came back. After cancellation the
        action may have been carried out.
        """
        future: asyncio.Future[ActionResponse] = asyncio.get_running_loop().create_future()
        self._waiting[echo] = future
        request = {"type": "call", "account": account, "text": text, "echo": echo, "reply_to": self.channel}
        try:
            async with asyncio.timeout(timeout_seconds):
                await get_channel_layer().send(self.accounts[account], {**request, "seconds": timeout_seconds})
                return await future
        except TimeoutError as error:
            raise ActionTimeout(f"no answer through another process within {timeout_seconds:g} s") from error
        finally:
            del self._waiting[echo]

    async def _listen(self, layer: Any, carry: Carry) -> None:
        while True:
            with survive(logger, "The channel layer cannot be read; trying again"):
                self._on_message(layer, carry, await layer.receive(self.channel))
                continue
            await asyncio.sleep(REFRESH_SECONDS)

    def _on_message(self, layer: Any, carry: Carry, message: dict[str, Any]) -> None:
        if message["type"] == "call":
            self._keep(self._carry(layer, carry, message))
        else:
            self._resolve(ActionResponse(**message["response"]))

    def _resolve(self, response: ActionResponse) -> None:
        future = self._waiting.get(response.echo or "")
        if future is not None and not future.done():
            future.set_result(response)

    async def _carry(self, layer: Any, carry: Carry, message: dict[str, Any]) -> None:
        """Perform another process's action; silence is the answer when nothing is known of its outcome."""
        with survive(logger, "An action for %s could not be carried out for another process", message["account"]):
            response = await carry(message["account"], message["text"], message["echo"], message["seconds"])
            fields = ("status", "retcode", "data", "echo", "error_text")
            answer = {field: getattr(response, field) for field in fields}
            await layer.send(message["reply_to"], {"type": "answer", "response": answer})

    async def _refresh(self) -> None:
        while True:
            with survive(logger, "The accounts of the other processes could not be read"):
                self.accounts = await self._online_accounts()
            await asyncio.sleep(REFRESH_SECONDS)

    def _keep(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
