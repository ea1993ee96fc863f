"""Plays the OneBot v11 clients of several accounts, and checks every answer.

Each account has one reverse WebSocket. Every action the server calls is answered
as a client would; an answer is matched to its message by the mark in its text
(:mod:`benchmarks.marks`), so that one that is lost, sent twice, out of order
within its chat, or sent to another chat is seen.
"""

import asyncio
import contextlib
import itertools
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.chats import CONNECTIONS, FIRST_ACCOUNT, Chat, chats, message_event
from benchmarks.marks import Mark, now_us, read_mark
from benchmarks.process import ServerError
from benchmarks.speedups import dumps, loads
from benchmarks.tally import Tally
from benchmarks.websocket import WebSocket

PATH = "/ws/frostagent"
SENDS = frozenset({"send_msg", "send_private_msg", "send_group_msg"})
PARTS = {"plain": "f", "weather": "f", "look": "f", "looks": "f", "send": "tf"}
_message_ids = itertools.count(1001)  # of all loads: a client that comes again begins no id anew


@dataclass(frozen=True, slots=True)
class Plan:
    """A stretch of load.

    Without ``per_second`` the loop is closed: ``in_flight`` messages are always
    under way, and no chat has two of them unless there are fewer chats. With it
    messages come at random moments (Poisson), each to a chat that waits for nothing.
    """

    chats: Sequence[Chat]
    count: int
    in_flight: int = 64
    per_second: float = 0
    script: str = "plain"
    timeout_seconds: float = 30
    """A message unanswered for so long is lost."""
    max_seconds: float = 300
    """No message is sent after so long; what is in flight is still awaited."""
    linger_seconds: float = 1
    """How long late duplicates are watched for."""


@dataclass(slots=True)
class Asked:
    """A message under way."""

    chat: Chat
    sent_us: int
    parts: str = ""


class Load:
    """The clients. One ``run`` at a time; connections and what was seen last over all runs."""

    def __init__(
        self, ports: Sequence[int], token: str, on_answer: Callable[[int], None] | None = None
    ) -> None:
        self.on_answer = on_answer
        self.tally = Tally()
        self._script = "plain"
        self._run_id = f"{time.time_ns():x}"
        self._sockets = [
            self._socket(ports[index % len(ports)], token, index) for index in range(CONNECTIONS)
        ]
        self._serial = 0
        self._asked: dict[int, Asked] = {}
        self._done: set[int] = set()
        self._last: dict[Chat, int] = {}
        self._idle: deque[Chat] = deque()
        self._gate = asyncio.Semaphore(0)
        self._quiet = asyncio.Event()

    def _socket(self, port: int, token: str, index: int) -> WebSocket:
        headers = {
            "X-Self-ID": str(FIRST_ACCOUNT + index),
            "X-Client-Role": "Universal",
            "User-Agent": "OneBot/11",
            "Authorization": f"Bearer {token}",
        }
        return WebSocket(port, PATH, headers, lambda payload: self._on_text(index, payload))

    # --- sending ----------------------------------------------------------------

    async def connect(self) -> None:
        for index, socket in enumerate(self._sockets):
            await socket.connect()
            kind = {
                "post_type": "meta_event",
                "meta_event_type": "lifecycle",
                "sub_type": "connect",
            }
            socket.send(dumps({"time": int(time.time()), "self_id": FIRST_ACCOUNT + index, **kind}))

    def close(self) -> None:
        for socket in self._sockets:
            if socket.is_open:
                socket.close()

    async def run(self, plan: Plan) -> Tally:
        """Send ``plan``, wait for the answers, and say what became of them."""
        self.tally = Tally(planned=plan.count)
        self._prepare(plan)
        reaper = asyncio.create_task(self._give_up(plan.timeout_seconds))
        started = time.monotonic()
        try:
            await (self._send_at_random if plan.per_second else self._send_in_turn)(plan)
            await self._answered(plan.timeout_seconds + 5)
            self.tally.wall_seconds = time.monotonic() - started
            await asyncio.sleep(plan.linger_seconds)
        finally:
            reaper.cancel()
        for socket in self._sockets:
            if socket.close_reason:
                self.tally.fault("disconnected", socket.close_reason)
        return self.tally

    def _prepare(self, plan: Plan) -> None:
        self._script = plan.script
        self._quiet.set()
        idle = list(plan.chats) * max(
            1, -(-plan.in_flight // len(plan.chats)) if not plan.per_second else 1
        )
        random.Random(7).shuffle(idle)
        self._idle = deque(idle)
        self._gate = asyncio.Semaphore(min(plan.in_flight, len(idle)))

    async def _send_in_turn(self, plan: Plan) -> None:
        deadline = time.monotonic() + plan.max_seconds
        for _ in range(plan.count):
            await self._gate.acquire()
            if time.monotonic() > deadline:
                return
            self._send(self._idle.popleft())

    async def _send_at_random(self, plan: Plan) -> None:
        draw, due = random.Random(7).expovariate, time.monotonic()
        deadline = due + plan.max_seconds
        for _ in range(plan.count):
            due += draw(plan.per_second)
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            if time.monotonic() > deadline or not self._idle:
                self.tally.fault("not_sent", "no chat was free, or the time was over")
                return
            self.tally.late_ms.append((time.monotonic() - due) * 1000)
            self._send(self._idle.popleft())

    def _send(self, chat: Chat) -> None:
        self._serial += 1
        event = message_event(
            chat, next(_message_ids), f"{self._run_id}-{self._serial}", self._script
        )
        self._asked[self._serial] = Asked(chat, now_us())
        self._quiet.clear()
        self.tally.sent += 1
        self.tally.max_in_flight = max(self.tally.max_in_flight, len(self._asked))
        self._sockets[chat.connection].send(dumps(event))

    async def _answered(self, seconds: float) -> None:
        """Wait until nothing is under way; the reaper ends what never comes."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._quiet.wait(), seconds)

    async def _give_up(self, timeout_seconds: float) -> None:
        while True:
            await asyncio.sleep(min(1.0, timeout_seconds / 4))
            limit = now_us() - int(timeout_seconds * 1e6)
            for serial in [
                serial for serial, asked in self._asked.items() if asked.sent_us < limit
            ]:
                self.tally.fault("lost")
                self._settle(serial)

    # --- receiving --------------------------------------------------------------

    def _on_text(self, connection: int, payload: bytes) -> None:
        arrived_us, frame = now_us(), loads(payload)
        action, params = frame.get("action"), frame.get("params") or {}
        if action is None:
            return
        response = {
            "status": "ok",
            "retcode": 0,
            "data": self._response(connection, action, params),
        }
        self._sockets[connection].send(
            dumps(response | ({"echo": frame["echo"]} if "echo" in frame else {}))
        )
        if action in SENDS:
            self._on_answer(connection, params, payload, arrived_us)

    def _response(self, connection: int, action: str, params: dict[str, Any]) -> Any:
        if action in SENDS:
            return {"message_id": next(_message_ids)}
        if action == "get_login_info":
            return {"user_id": FIRST_ACCOUNT + connection, "nickname": "bench"}
        if action.endswith("_list"):
            return []
        return {key: params[key] for key in ("user_id", "group_id", "message_id") if key in params}

    def _on_answer(
        self, connection: int, params: dict[str, Any], payload: bytes, arrived_us: int
    ) -> None:
        found = read_mark(payload)
        run_id, _, number = found.nonce.rpartition("-") if found else ("", "", "")
        if found is None or run_id != self._run_id:
            self.tally.fault("unasked", payload[:300].decode("utf-8", "replace"))
            return
        serial = int(number)
        asked = self._asked.get(serial)
        if asked is None or found.part in asked.parts:
            self.tally.fault("doubled" if asked or serial in self._done else "too_late")
            return
        if not _reaches(asked.chat, connection, params):
            self.tally.fault("misrouted", payload[:300].decode("utf-8", "replace"))
        asked.parts += found.part
        if found.part == "f":
            self._on_final(serial, asked, found, arrived_us)

    def _on_final(self, serial: int, asked: Asked, found: Mark, arrived_us: int) -> None:
        tally = self.tally
        if serial < self._last.get(asked.chat, 0):
            tally.fault("misordered")
        self._last[asked.chat] = max(serial, self._last.get(asked.chat, 0))
        if asked.parts != PARTS[self._script]:
            tally.fault("incomplete")
        tally.answered += 1
        tally.latency_ms.append((arrived_us - asked.sent_us) / 1000)
        if self._script == "plain":
            before, after = (
                (found.model_in_us - asked.sent_us) / 1000,
                (arrived_us - found.model_out_us) / 1000,
            )
            tally.before_model_ms.append(before)
            tally.after_model_ms.append(after)
            tally.added_ms.append(before + after)
        self._done.add(serial)
        self._settle(serial)
        if self.on_answer:
            self.on_answer(tally.answered)

    def _settle(self, serial: int) -> None:
        self._idle.append(self._asked.pop(serial).chat)
        self._gate.release()
        if not self._asked:
            self._quiet.set()


def _reaches(chat: Chat, connection: int, params: dict[str, Any]) -> bool:
    target = params.get("group_id" if chat.is_group else "user_id")
    return connection == chat.connection and str(target) == str(chat.peer_id)


@contextlib.asynccontextmanager
async def connected(
    ports: Sequence[int], token: str, on_answer: Callable[[int], None] | None = None
) -> AsyncIterator[Load]:
    """The clients, connected to the servers in turn, and closed again at the end."""
    load = Load(ports, token, on_answer)
    try:
        await load.connect()
        yield load
    finally:
        load.close()


async def warm_up(load: Load, count: int) -> None:
    """Raises ServerError when that alone goes wrong: no need to measure more."""
    tally = await load.run(
        Plan(chats(500, first=900_000), count, timeout_seconds=15, linger_seconds=0.2)
    )
    if tally.faults:
        raise ServerError(
            f"{tally.answered} of {count} answered in the warm-up, {dict(tally.faults)} {tally.samples}"
        )
