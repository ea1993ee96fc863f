"""The client of one account over all its sockets: it comes back, tells again what it may not have
got through, and hears."""

import asyncio
import contextlib
import itertools
import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from websockets.exceptions import InvalidHandshake, WebSocketException

from chaos import marks
from chaos.marks import Mark
from chaos.process import ChaosServer
from tests.fake_onebot import FakeOneBot, Frame, ok, spoken

TOKEN = "chaos"
#: Pause before dialling again, in seconds.
REDIAL_SECONDS = 0.2
#: What a client takes to answer a send at most, in seconds: between two parts of one answer there is
#: time for a fault.
ANSWER_SECONDS = 0.2
#: What was told in the last seconds of a socket that broke may not have got through.
DOUBTFUL_SECONDS = 2.0

#: How a socket ended: ``left`` by the client in order, ``cut`` by the client, ``broke`` by the
#: server or its end.
End = Literal["open", "left", "cut", "broke"]
_order = itertools.count()


@dataclass(frozen=True, slots=True)
class Heard:
    """One sending action. ``order`` counts over all accounts."""

    order: int
    account: str
    chat: str
    text: str
    echo: str
    at: float


@dataclass(slots=True)
class Telling:
    """One event written to one socket; ``event`` stays empty where the socket was no longer
    there."""

    mark: Mark
    account: str
    socket: "Socket"
    at: float
    event: Frame = field(default_factory=dict)


class Socket(FakeOneBot):
    """One connection to one life of a server."""

    def __init__(self, server: ChaosServer, account: int) -> None:
        super().__init__(server.ws_url, account, token=TOKEN)
        self.server, self.life = server, server.life
        self.end: End = "open"
        self.ended_at = 0.0

    async def gone(self) -> None:
        """Return when nothing more can be heard here."""
        await self._reader
        self.ended_at = time.monotonic()
        if self.end == "open":
            self.end = "broke"

    async def leave(self) -> None:
        """Close in order: what the server wrote before it saw that is heard, what was written to it
        is read."""
        self.end = "left"
        await self._socket.close()

    def drop(self) -> None:
        """Cut: what was on the way is lost."""
        self.end = "cut"
        self.cut()

    def deafen(self) -> None:
        """Read and answer nothing more, as behind a cable that was pulled; the connection stays."""
        self.end = "cut"
        self._socket.transport.pause_reading()


class Account:
    """One account, connected to the server ``home`` of ``servers``.

    With ``roams`` it tries the others too when that one does not let it in; with ``retells`` it
    reports again what it had told last on a socket that broke.
    """

    def __init__(
        self, self_id: int, servers: Sequence[ChaosServer], home: int, *, retells: bool
    ) -> None:
        self.id, self.home = self_id, home
        self.heard: list[Heard] = []
        self.tellings: list[Telling] = []
        self.violations: list[str] = []
        """What broke the rules of the wire."""
        self.socket: Socket | None = None
        self._servers, self._retells = servers, retells
        self._deaf: list[Socket] = []
        self._is_connected = asyncio.Event()
        self._answers: set[asyncio.Task[None]] = set()
        self._life: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._life = asyncio.create_task(self._live(), name=f"account {self.id}")

    async def stop(self) -> None:
        if self._life:
            self._life.cancel()
            await asyncio.gather(self._life, return_exceptions=True)
        for socket in filter(None, [self.socket, *self._deaf]):
            socket.drop()
        await asyncio.gather(*self._answers, return_exceptions=True)

    # --- What it tells ------------------------------------------------------------

    async def say(self, mark: Mark, person: int) -> None:
        """Tell a message as soon as there is a socket."""
        await self._is_connected.wait()
        socket = self.socket
        assert socket is not None
        telling = Telling(mark, str(self.id), socket, time.monotonic())
        self.tellings.append(telling)
        with contextlib.suppress(WebSocketException, OSError):
            if mark.kind == "group":
                telling.event = await socket.say_group(mark.peer, person, marks.saying(mark))
            else:
                telling.event = await socket.say_private(mark.peer, marks.saying(mark))

    async def connected(self) -> None:
        await self._is_connected.wait()

    # --- Where it is ---------------------------------------------------------------

    async def hop(self, home: int) -> None:
        """Close in order and dial in elsewhere."""
        self.home = home
        if self.socket is not None and self._is_connected.is_set():
            self._is_connected.clear()
            await self.socket.leave()

    def flee(self, home: int) -> None:
        """Cut the connection and dial in elsewhere."""
        self.home = home
        if self.socket is not None and self._is_connected.is_set():
            self._is_connected.clear()
            self.socket.drop()

    def hang(self) -> None:
        """Leave the connection as it is, deaf and mute, and dial in once more beside it."""
        if self.socket is not None and self._is_connected.is_set():
            self._is_connected.clear()
            self._deaf.append(self.socket)
            self.socket.deafen()
            self.start_over()

    def start_over(self) -> None:
        if self._life:
            self._life.cancel()
        self.start()

    async def _live(self) -> None:
        while True:
            server = self._servers[self.home]
            socket = Socket(server, self.id)
            socket.answer_with(self._listener(socket))
            try:
                async with asyncio.timeout(5):
                    await socket.__aenter__()
            except (OSError, InvalidHandshake, WebSocketException, TimeoutError, EOFError):
                self.home = (self.home + 1) % len(self._servers)
                await asyncio.sleep(REDIAL_SECONDS)
                continue
            await self._be(socket)

    async def _be(self, socket: Socket) -> None:
        """The time of one socket."""
        before, self.socket = self.socket, socket
        if self._retells and before is not None:
            await self._tell_again(before, socket)
        self._is_connected.set()
        try:
            await socket.gone()
        finally:
            self.violations += socket.violations
            if self.socket is socket:
                self._is_connected.clear()

    async def _tell_again(self, before: Socket, socket: Socket) -> None:
        doubtful = [
            one
            for one in self.tellings
            if one.socket is before
            and one.event
            and before.end != "left"
            and one.at > before.ended_at - DOUBTFUL_SECONDS
        ]
        for one in doubtful:
            self.tellings.append(
                Telling(one.mark, one.account, socket, time.monotonic(), one.event)
            )
            with contextlib.suppress(WebSocketException, OSError):
                await socket.send_raw(json.dumps(one.event))

    # --- What it hears --------------------------------------------------------------

    def _listener(self, socket: Socket) -> Callable[[Frame], None]:
        """Answers come on the newest socket, whichever the action came on."""

        def listen(action: Frame) -> None:
            answer = socket.usual_answer(action)
            if action["action"].startswith("send_"):
                self.heard.append(self._heard(action))
                answer = ok()
            task = asyncio.create_task(self._answer(socket, action, answer))
            self._answers.add(task)
            task.add_done_callback(self._answers.discard)

        return listen

    async def _answer(self, socket: Socket, action: Frame, answer: Frame) -> None:
        await asyncio.sleep(random.uniform(0, ANSWER_SECONDS))
        own = socket if socket.end == "open" else self.socket
        with contextlib.suppress(WebSocketException, OSError):
            if own is not None:
                await own.answer(action, answer)

    def _heard(self, action: Frame) -> Heard:
        params = action["params"]
        is_group = action["action"] == "send_group_msg" or params.get("message_type") == "group"
        chat = f"group:{params.get('group_id')}" if is_group else f"private:{params.get('user_id')}"
        return Heard(
            next(_order), str(self.id), chat, spoken(action), str(action["echo"]), time.monotonic()
        )
