"""Actions for accounts whose socket is in another process, through the channel layer.

Only where several processes share a database. The layer may drop what it carries, so a
call is carried again until its answer comes, and performed once: the process that holds
the socket knows each call by its echo.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from channels.exceptions import ChannelFull
from channels.layers import InMemoryChannelLayer, get_channel_layer

from onebot.protocol.actions import ActionResponse
from onebot.protocol.errors import (
    ActionTimeout,
    ConnectionLost,
    FrameTooLarge,
    NotConnected,
    OneBotError,
)
from tools.error_boundary import capture_error, log_errors
from tools.log_limit import LogLimit
from tools.time_limits import TIME_LIMITS

logger = logging.getLogger(__name__)
LogLimit(logger)

#: How often the accounts of the other processes are read from the database, in seconds.
REFRESH_SECONDS = TIME_LIMITS.account_refresh
#: How long an answer is waited for before the call is carried again, in seconds.
CARRY_AGAIN_SECONDS = 3.0
#: Calls whose outcomes are kept for when they are carried again.
MAX_REMEMBERED_CALLS = 1_000
#: Where every process hears of an account that has connected somewhere.
LOCATIONS_GROUP = "frostagent.places"

ERROR_TYPES: dict[str, type[OneBotError]] = {
    kind.__name__: kind for kind in (NotConnected, FrameTooLarge, ActionTimeout, ConnectionLost)
}
RESPONSE_FIELDS = ("status", "retcode", "data", "echo", "error_text")

PerformAction = Callable[[str, str, str, float], Awaitable[ActionResponse]]


@dataclass(frozen=True, slots=True)
class AccountLocation:
    """Where an account has connected: the mailbox of the process, its socket's role, and when (Unix
    time)."""

    account: str
    channel: str
    role: str
    at: float


class Relay:
    """This process's mailbox on the channel layer, and where the other accounts are.

    ``load_channels`` asks the database for the mailbox of each connected account;
    ``on_moved`` is called when an account has connected to another process.
    """

    def __init__(
        self,
        load_channels: Callable[[], Awaitable[dict[str, str]]],
        on_moved: Callable[[AccountLocation], None] = lambda _: None,
    ) -> None:
        self.channel = ""
        """The name of the mailbox, "" while there is none."""
        self.accounts: dict[str, str] = {}
        """Connected accounts of all processes, with the mailbox of the process that holds them."""
        self._load_channels = load_channels
        self._on_moved = on_moved
        self._waiting: dict[str, asyncio.Future[ActionResponse]] = {}
        self._performed_calls: OrderedDict[str, asyncio.Task[dict[str, Any]]] = OrderedDict()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def open(self, perform: PerformAction) -> None:
        """Start to listen, if the layer reaches other processes; ``perform`` carries out their
        actions here."""
        layer = get_channel_layer()
        if layer is None or isinstance(layer, InMemoryChannelLayer):
            return
        self.channel = await layer.new_channel()
        await layer.group_add(LOCATIONS_GROUP, self.channel)
        self._keep(self._listen(layer, perform))
        self._keep(self._refresh(layer))

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def announce(self, account: str, role: str) -> None:
        """Tell the other processes that ``account`` has connected here. Returns at once; a process
        that misses it reads the database."""
        if self.channel:
            self._keep(
                self._announce(
                    {
                        "type": "place",
                        "account": account,
                        "channel": self.channel,
                        "role": role,
                        "at": time.time(),
                    }
                )
            )

    def is_elsewhere(self, account: str) -> bool:
        """Whether another process holds the socket of ``account``."""
        return self.accounts.get(account, self.channel) not in ("", self.channel)

    async def refresh_accounts(self) -> None:
        """Ask the database where the accounts are now."""
        self.accounts = await self._load_channels()

    async def call(
        self, account: str, text: str, echo: str, timeout_seconds: float
    ) -> ActionResponse:
        """Have the process that holds ``account`` write ``text``; its client's response.

        Raises :class:`NotConnected` when it was surely not written, because the account is
        not there or the layer could not be reached; what kept the other process from an
        answer; and :class:`ActionTimeout` when none came. After cancellation the action may
        have been carried out.
        """
        future: asyncio.Future[ActionResponse] = asyncio.get_running_loop().create_future()
        self._waiting[echo] = future
        request = {
            "type": "call",
            "account": account,
            "text": text,
            "echo": echo,
            "reply_to": self.channel,
        }
        try:
            async with asyncio.timeout(timeout_seconds):
                return await self._send_until_answered(
                    account, {**request, "seconds": timeout_seconds}, future
                )
        except TimeoutError as error:
            raise ActionTimeout(
                f"no answer through another process within {timeout_seconds:g} s"
            ) from error
        finally:
            del self._waiting[echo]

    async def _send_until_answered(
        self, account: str, request: dict[str, Any], future: "asyncio.Future[ActionResponse]"
    ) -> ActionResponse:
        """The first process that may have the request is the only one that is ever given it."""
        holder = ""
        while True:
            channel = self.accounts.get(account, "") if self.is_elsewhere(account) else ""
            if not channel or (holder and channel != holder):
                raise (
                    ConnectionLost("the account has moved to another process")
                    if holder
                    else NotConnected(account)
                )
            with capture_error() as attempt:
                await get_channel_layer().send(channel, request)
            if attempt.error is None or not _is_surely_unsent(attempt.error):
                holder = channel
            elif not holder:
                raise NotConnected(
                    f"the channel layer cannot be reached: {attempt.error}"
                ) from attempt.error
            with suppress(TimeoutError):
                async with asyncio.timeout(CARRY_AGAIN_SECONDS):
                    return await asyncio.shield(future)

    async def _listen(self, layer: Any, perform: PerformAction) -> None:
        while True:
            with log_errors(logger, "The channel layer cannot be read; trying again"):
                self._on_message(layer, perform, await layer.receive(self.channel))
                continue
            await asyncio.sleep(REFRESH_SECONDS)

    def _on_message(self, layer: Any, perform: PerformAction, message: dict[str, Any]) -> None:
        match message["type"]:
            case "call":
                self._keep(self._answer(layer, perform, message))
            case "place":
                self._on_place(
                    AccountLocation(
                        *(message[name] for name in ("account", "channel", "role", "at"))
                    )
                )
            case "answer":
                self._resolve(message["response"]["echo"], ActionResponse(**message["response"]))
            case "failure":
                self._resolve(message["echo"], ERROR_TYPES[message["kind"]](message["text"]))

    def _on_place(self, place: AccountLocation) -> None:
        if place.channel != self.channel:
            self.accounts[place.account] = place.channel
            self._on_moved(place)

    def _resolve(self, echo: str | None, outcome: ActionResponse | OneBotError) -> None:
        future = self._waiting.get(echo or "")
        if future is None or future.done():
            return
        if isinstance(outcome, OneBotError):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)

    async def _answer(self, layer: Any, perform: PerformAction, message: dict[str, Any]) -> None:
        """Perform another process's action, or repeat its result."""
        echo = message["echo"]
        performed = self._performed_calls.get(echo)
        if performed is None:
            performed = self._performed_calls[echo] = self._keep(_performed(perform, message))
            while len(self._performed_calls) > MAX_REMEMBERED_CALLS:
                self._performed_calls.popitem(last=False)
        with log_errors(
            logger,
            "What came of an action for %s could not be told to another process",
            message["account"],
        ):
            await layer.send(message["reply_to"], await asyncio.shield(performed))

    async def _announce(self, place: dict[str, Any]) -> None:
        with log_errors(
            logger, "The other processes could not be told of account %s", place["account"]
        ):
            await get_channel_layer().group_send(LOCATIONS_GROUP, place)

    async def _refresh(self, layer: Any) -> None:
        while True:
            with log_errors(logger, "The accounts of the other processes could not be read"):
                await self.refresh_accounts()
            with log_errors(logger, "The channel layer cannot be reached"):
                await layer.group_add(
                    LOCATIONS_GROUP, self.channel
                )  # memberships end with a restart of Redis, and by themselves
            await asyncio.sleep(REFRESH_SECONDS)

    def _keep(self, work: Any) -> "asyncio.Task[Any]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _performed(perform: PerformAction, message: dict[str, Any]) -> dict[str, Any]:
    """The message with the result of an action; no client behaviour makes it fail."""
    try:
        response = await perform(
            message["account"], message["text"], message["echo"], message["seconds"]
        )
    except OneBotError as error:
        return {
            "type": "failure",
            "echo": message["echo"],
            "kind": type(error).__name__,
            "text": str(error),
        }
    return {
        "type": "answer",
        "response": {field: getattr(response, field) for field in RESPONSE_FIELDS},
    }


def _is_surely_unsent(error: BaseException | None) -> bool:
    """Whether nothing was handed to the channel layer: there was no listener, or the mailbox was
    full."""
    while error is not None:
        if isinstance(error, ConnectionRefusedError | ChannelFull):
            return True
        error = error.__cause__ or error.__context__
    return False
