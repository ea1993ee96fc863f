"""Messages of eight pictures: what the server adds before a model looks at them, and what others
feel of it."""

import asyncio
import contextlib
import itertools
import json
import os
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from http.client import HTTPConnection
from typing import Any

from benchmarks.chats import CONNECTIONS, FIRST_ACCOUNT, Chat, chats, message_event
from benchmarks.machine import cores
from benchmarks.marks import now_us
from benchmarks.onebot_load import PATH, SENDS, Load, Plan
from benchmarks.outcome import Outcome, of_tallies
from benchmarks.process import HOST, ROOT, TOKEN, Server
from benchmarks.speedups import dumps, loads
from benchmarks.tally import Tally, percentile
from benchmarks.websocket import WebSocket

PICTURES = 8
DELAY_MS = 200
PEER = 77_000_001
ROUNDS = 6

numbers = itertools.count(1)


@dataclass(frozen=True)
class PictureServers:
    """Two of :mod:`benchmarks.picture_server`: one hands out the pictures, the other plays both
    models.

    Two, because handing out eight MiB at once would hold up the answers that others wait for.
    """

    files_port: int
    port: int

    def report(self) -> dict[str, Any]:
        """Downloads and requests for descriptions since the last report."""
        return {
            "downloads": _report(self.files_port)["downloads"],
            "visions": _report(self.port)["visions"],
        }


def _report(port: int) -> dict[str, Any]:
    connection = HTTPConnection(HOST, port, timeout=10)
    try:
        connection.request("GET", "/report")
        return dict(json.loads(connection.getresponse().read()))
    finally:
        connection.close()


@contextlib.contextmanager
def picture_servers() -> Iterator[PictureServers]:
    """On the rig's core; they have ended at the end."""
    with contextlib.ExitStack() as children:
        files, models = (children.enter_context(_child(niceness)) for niceness in (10, 0))
        yield PictureServers(files, models)


@contextlib.contextmanager
def _child(niceness: int) -> Iterator[int]:
    command = [sys.executable, "-m", "benchmarks.picture_server"]
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    os.sched_setaffinity(child.pid, cores()[1])
    os.setpriority(os.PRIO_PROCESS, child.pid, niceness)
    try:
        assert child.stdout
        yield int(child.stdout.readline())
    finally:
        child.kill()
        child.wait()


class Sender:
    """One account whose friend sends pictures, one message at a time."""

    def __init__(self, port: int, pictures: PictureServers) -> None:
        self._account = FIRST_ACCOUNT + CONNECTIONS
        self._pictures = pictures
        self._answered = asyncio.Event()
        headers = {
            "X-Self-ID": str(self._account),
            "X-Client-Role": "Universal",
            "Authorization": f"Bearer {TOKEN}",
        }
        self._socket = WebSocket(port, PATH, headers, self._on_text)

    async def connect(self) -> None:
        await self._socket.connect()

    def close(self) -> None:
        self._socket.close()

    async def send(self, kind: str) -> int:
        """Send eight pictures and wait for the answer; the moment they were sent, in monotonic
        microseconds."""
        number = next(numbers)
        event = message_event(
            Chat(CONNECTIONS, False, PEER, PEER), number, f"pictures-{number}", "plain"
        )
        urls = [
            f"http://{HOST}:{self._pictures.files_port}/{kind}/{next(numbers)}?delay={DELAY_MS}"
            for _ in range(PICTURES)
        ]
        event["message"] += [
            {"type": "image", "data": {"file": f"{n}.jpg", "url": url}}
            for n, url in enumerate(urls)
        ]
        self._answered.clear()
        sent = now_us()
        self._socket.send(dumps(event))
        await asyncio.wait_for(self._answered.wait(), 30)
        return sent

    def _on_text(self, payload: bytes) -> None:
        frame = loads(payload)
        response = {
            "status": "ok",
            "retcode": 0,
            "data": {"message_id": next(numbers)},
            "echo": frame.get("echo"),
        }
        self._socket.send(dumps(response))
        if frame.get("action") in SENDS:
            self._answered.set()


async def alone(sender: Sender, pictures: PictureServers, kind: str, count: int) -> list[float]:
    """For each of ``count`` messages: milliseconds from the message to the vision call, beyond its
    slowest download."""
    pictures.report()
    sent = [await sender.send(kind) for _ in range(count)]
    report = await asyncio.to_thread(pictures.report)
    excess = []
    for index, at in enumerate(sent):
        downloads = sorted(report["downloads"])[index * PICTURES : (index + 1) * PICTURES]
        slowest = max(end - begin for begin, end in downloads)
        excess.append((report["visions"][index][0] - at - slowest) / 1000)
    return excess


async def beside(sender: Sender, load: Load, plan: Plan, kind: str) -> tuple[Tally, int]:
    """The tally of ``plan`` while messages of pictures follow one another; and how many there
    were."""
    count, stop = 0, asyncio.Event()

    async def keep_sending() -> None:
        nonlocal count
        while not stop.is_set():
            await sender.send(kind)
            count += 1

    sending = asyncio.create_task(keep_sending())
    tally = await load.run(plan)
    stop.set()
    await sending
    return tally, count


async def measure(server: Server, load: Load, pictures: PictureServers, scaled: Any) -> Outcome:
    """Everything that the scenario ``pictures`` asks for, on a server that is warm."""
    sender = Sender(server.port, pictures)
    await sender.connect()
    try:
        await sender.send("fit")
        excess = {
            kind: await alone(sender, pictures, kind, scaled(20)) for kind in ("fit", "large")
        }
        stretches, messages, rss = await by_turns(sender, load, server, scaled(250))
    finally:
        sender.close()
    quiet, fit, large = (
        percentile([ms for tally in tallies for ms in tally.added_ms], 0.99)
        for tallies in stretches.values()
    )
    figures = {
        "added_ms_before_vision": percentile(excess["fit"], 0.9),
        "added_ms_before_vision_p50": statistics.median(excess["fit"]),
        "added_ms_before_vision_large_p50": statistics.median(excess["large"]),
        "others_added_ms_p99": fit - quiet,
        "others_added_ms_p99_large": large - quiet,
        "rss_mib": max(rss),
    }
    target = {
        "added_ms_before_vision": 100,
        "others_added_ms_p99": 20,
        "others_added_ms_p99_large": 20,
        "rss_mib": 300,
    }
    details = {
        "added_ms": {kind: [round(ms, 1) for ms in values] for kind, values in excess.items()},
        "messages": messages,
    }
    reports = {name: tallies[-1].report() for name, tallies in stretches.items()}
    every = [tally for tallies in stretches.values() for tally in tallies]
    return of_tallies(
        target, figures, every, **details, rss=rss, **reports, server=asdict(server.usage())
    )


async def by_turns(
    sender: Sender, load: Load, server: Server, count: int
) -> tuple[dict[str, list[Tally]], Counter[str], list[float]]:
    """Other people's messages without pictures and with them, by turns, for the machine may be
    shared."""
    stretches: dict[str, list[Tally]] = {"quiet": [], "fit": [], "large": []}
    messages, rss = Counter[str](), [server.usage().rss_mib]
    for _ in range(ROUNDS):
        plan = Plan(chats(1000), count, per_second=50, linger_seconds=0.2)
        stretches["quiet"].append(await load.run(plan))
        for kind in ("fit", "large"):
            tally, sent = await beside(sender, load, plan, kind)
            stretches[kind].append(tally)
            messages[kind] += sent
            rss.append(server.usage().rss_mib)
    return stretches, messages, rss
