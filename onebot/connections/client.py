"""Asking the client of an account to do something, wherever its socket is.

Actions in flight wait for the response that carries their echo, on whatever socket it comes. Those
for accounts whose socket is in another process go through the channel layer, only where several
processes share a database. The layer may drop what it carries, so a
call is carried again until its answer comes, and performed once: the process that holds
the socket knows each call by its echo.
"""

import asyncio
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from channels.exceptions import ChannelFull
from channels.layers import InMemoryChannelLayer, get_channel_layer

from agent.run.message_sender import new_echo
from onebot.connections.handshake import Role
from onebot.protocol.actions import (
    ActionResponse,
    ActionTimeout,
    ConnectionLost,
    FrameTooLarge,
    NotConnected,
    OneBotError,
    encode_action,
)
from tools.error_boundary import KeptTasks, capture_error, log_errors
from tools.processes import crash_points
from tools.time_limits import TIME_LIMITS

#: Application close codes are 3000 to 4999; no client distinguishes them; they help people who read
#: logs.
REPLACED, FORBIDDEN, SILENT = 4009, 4003, 4008
#: Where the server puts the :class:`Link` of a WebSocket into its scope.
LINK_KEY = "frostagent.link"
BUSY = math.inf


class Link(Protocol):
    """What the server sees of a WebSocket below its frames."""

    @property
    def received(self) -> int:
        """Bytes that came in so far, those of a frame that is not whole yet too."""
        ...

    def require_pongs(self, are_required: bool) -> None:
        """Whether the connection ends where a ping is not answered."""
        ...


@dataclass(eq=False, slots=True)
class Socket:
    """One accepted WebSocket of a client."""

    send: Callable[[dict[str, object]], Awaitable[None]]
    role: Role
    user_agent: str = ""
    keys: frozenset[str] = frozenset({""})
    """What the client's token opens, see
    :class:`onebot.connections.handshake.HandshakeAccepted`."""
    is_open: bool = True
    unsupported: set[str] = field(default_factory=set)
    """Optional actions that the client has said it does not know."""
    connected_at: float = field(default_factory=time.time)
    """Unix time, to be compared with that of a socket in another process."""
    silent_since: float = 0.0
    """By the clock of the loop; 0 just after a frame was taken in, :data:`BUSY` while one is."""
    link: Link | None = None
    received: int = 0
    """Bytes that had come in when it was last looked at, see :class:`Link`."""

    async def write(self, text: str) -> None:
        """Hand one text frame to the server; it is on its way, not arrived, when this returns."""
        await self.send({"type": "websocket.send", "text": text})

    async def close(self, code: int) -> None:
        self.is_open = False
        await self.send({"type": "websocket.close", "code": code})

    @property
    def takes_actions(self) -> bool:
        """Event sockets are not read by the clients that open them."""
        return self.role != "event"


@dataclass(slots=True)
class ConnectedAccount:
    """A connected account: at most one socket for each role."""

    sockets: dict[Role, Socket] = field(default_factory=dict)

    @property
    def action_socket(self) -> Socket | None:
        """The newest socket that actions may be written to."""
        return next(
            (
                socket
                for socket in reversed(self.sockets.values())
                if socket.takes_actions and socket.is_open
            ),
            None,
        )


class Connections:
    """The sockets of this process by account and role; the newest wins."""

    def __init__(self) -> None:
        self._accounts: dict[str, ConnectedAccount] = {}
        self._arrivals: dict[str, asyncio.Event] = {}

    @property
    def accounts(self) -> Mapping[str, ConnectedAccount]:
        return self._accounts

    def attach(self, self_id: str, socket: Socket) -> Socket | None:
        """Register ``socket``; returns the one it replaces, which the caller closes."""
        account = self._accounts.setdefault(self_id, ConnectedAccount())
        replaced = account.sockets.pop(socket.role, None)
        account.sockets[socket.role] = socket
        if socket.takes_actions and (waiting := self._arrivals.pop(self_id, None)):
            waiting.set()
        return replaced

    def detach(self, self_id: str, socket: Socket) -> bool:
        """Forget ``socket``, unless a newer one has taken its place; True if the account has none
        left."""
        account = self._accounts.get(self_id)
        if account is None:
            return False
        if account.sockets.get(socket.role) is socket:
            del account.sockets[socket.role]
        if account.sockets:
            return False
        del self._accounts[self_id]
        return True

    def action_socket(self, self_id: str) -> Socket | None:
        account = self._accounts.get(self_id)
        return account.action_socket if account else None

    async def wait(self, self_id: str, seconds: float) -> bool:
        """Wait for a socket that takes actions; True once there is one."""
        try:
            async with asyncio.timeout(seconds):
                while self.action_socket(self_id) is None:
                    await self._arrivals.setdefault(self_id, asyncio.Event()).wait()
        except TimeoutError:
            return False
        return True


logger = logging.getLogger(__name__)

#: How often the accounts of the other processes are read from the database, in seconds.
REFRESH_SECONDS = TIME_LIMITS.account_refresh
#: How long an answer is waited for before the call is carried again, in seconds.
CARRY_AGAIN_SECONDS = 3.0
#: Calls whose outcomes are kept for when they are carried again.
MAX_REMEMBERED_CALLS = 1_000
#: Where every process hears of an account that has connected somewhere.
LOCATIONS_GROUP = "frostagent.locations"

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
        self._tasks = KeptTasks()

    async def open(self, perform: PerformAction) -> None:
        """Start to listen, if the layer reaches other processes; ``perform`` carries out their
        actions here."""
        layer = get_channel_layer()
        if layer is None or isinstance(layer, InMemoryChannelLayer):
            return
        self.channel = await layer.new_channel()
        await layer.group_add(LOCATIONS_GROUP, self.channel)
        self._tasks.begin(self._listen(layer, perform), "relay")
        self._tasks.begin(self._refresh(layer), "relay")

    async def close(self) -> None:
        await self._tasks.close()

    def announce(self, account: str, role: str) -> None:
        """Tell the other processes that ``account`` has connected here. Returns at once; a process
        that misses it reads the database."""
        if self.channel:
            location: dict[str, object] = {
                "type": "location",
                "account": account,
                "channel": self.channel,
            }
            location |= {"role": role, "at": time.time()}
            self._tasks.begin(self._announce(location), "relay")

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
        self, account: str, request: dict[str, object], future: "asyncio.Future[ActionResponse]"
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

    def _on_message(self, layer: object, perform: PerformAction, message: dict[str, Any]) -> None:
        match message["type"]:
            case "call":
                self._tasks.begin(self._answer(layer, perform, message), "relay")
            case "location":
                self._on_location(
                    AccountLocation(
                        *(message[name] for name in ("account", "channel", "role", "at"))
                    )
                )
            case "answer":
                self._resolve(message["response"]["echo"], ActionResponse(**message["response"]))
            case "failure":
                self._resolve(message["echo"], ERROR_TYPES[message["kind"]](message["text"]))

    def _on_location(self, location: AccountLocation) -> None:
        if location.channel != self.channel:
            self.accounts[location.account] = location.channel
            self._on_moved(location)

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
            performed = self._tasks.begin(_performed(perform, message), "relay")
            self._performed_calls[echo] = performed
            while len(self._performed_calls) > MAX_REMEMBERED_CALLS:
                self._performed_calls.popitem(last=False)
        with log_errors(
            logger,
            "What came of an action for %s could not be told to another process",
            message["account"],
        ):
            await layer.send(message["reply_to"], await asyncio.shield(performed))

    async def _announce(self, location: dict[str, object]) -> None:
        with log_errors(
            logger, "The other processes could not be told of account %s", location["account"]
        ):
            await get_channel_layer().group_send(LOCATIONS_GROUP, location)

    async def _refresh(self, layer: Any) -> None:
        while True:
            with log_errors(logger, "The accounts of the other processes could not be read"):
                await self.refresh_accounts()
            with log_errors(logger, "The channel layer cannot be reached"):
                await layer.group_add(
                    LOCATIONS_GROUP, self.channel
                )  # memberships end with a restart of Redis, and by themselves
            await asyncio.sleep(REFRESH_SECONDS)


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


#: How long the answer may still come, on the client's next socket, after its socket ended; in
#: seconds.
GRACE_SECONDS = TIME_LIMITS.lost_socket
#: How a frame begins that asks for information: no message is lost or repeated with it.
QUESTION = '{"action":"get_'


@dataclass(slots=True, eq=False)
class _Pending:
    account: str
    socket: Socket
    future: "asyncio.Future[ActionResponse]"


class PendingActions:
    """The actions of this process that have no answer yet."""

    def __init__(self) -> None:
        self._pending: dict[str, _Pending] = {}

    async def call(
        self, account: str, socket: Socket, text: str, echo: str, timeout_seconds: float
    ) -> ActionResponse:
        """Write the action ``text`` and wait for the response to ``echo``.

        Raises :class:`NotConnected` when the socket is closed already and nothing was
        written, :class:`ActionTimeout` when no answer came, :class:`ConnectionLost`
        when the socket ended and no answer came on a later one. After cancellation the
        action may have been carried out; its answer counts as late.
        """
        if not socket.is_open:
            raise NotConnected(account)
        pending = _Pending(account, socket, asyncio.get_running_loop().create_future())
        self._pending[echo] = pending  # before the frame goes out: an answer can be very fast
        try:
            async with asyncio.timeout(timeout_seconds):
                await socket.write(text)
                if not text.startswith(QUESTION):
                    crash_points.hit_crash_point_after_flush("frame_written")
                return await pending.future
        except TimeoutError as error:
            raise ActionTimeout(f"no answer within {timeout_seconds:g} s") from error
        finally:
            del self._pending[echo]

    def resolve(self, account: str, response: ActionResponse) -> bool:
        """Hand ``response`` to the call that waits for it; False if no call of ``account`` does."""
        pending = self._pending.get(response.echo or "")
        if pending is None or pending.account != account:
            return False
        if not pending.future.done():
            pending.future.set_result(response)
        return True

    def socket_ended(self, socket: Socket) -> None:
        """Let what was written to ``socket`` wait a little longer, and no more."""
        loop = asyncio.get_running_loop()
        for pending in self._pending.values():
            if pending.socket is socket:
                loop.call_later(GRACE_SECONDS, _give_up, pending.future)


def _give_up(future: "asyncio.Future[ActionResponse]") -> None:
    if not future.done():
        future.set_exception(ConnectionLost("the connection ended before the client answered"))


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

    def unsupported(self, account: str) -> set[str] | None:
        """The actions that the client has said on this connection that it does not know; None where
        its socket is not in this process."""
        socket = self._connections.action_socket(account)
        return socket.unsupported if socket else None

    async def call(
        self,
        account: str,
        action: str,
        params: Mapping[str, object],
        echo: str,
        timeout_seconds: float,
    ) -> ActionResponse:
        """Have the client carry out ``action``; its response. Raises what :meth:`send` raises."""
        return await self.send(account, encode_action(action, params, echo), echo, timeout_seconds)

    async def call_optional(
        self, account: str, action: str, params: Mapping[str, object], timeout_seconds: float
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
        :meth:`onebot.connections.client.PendingActions.call` and
        :meth:`onebot.connections.client.Relay.call`. After cancellation the action may have been
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
