"""Frames of 60 MiB: what each costs the server in memory, and how long its event loop stands
still."""

import asyncio
import base64
import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.chats import FIRST_ACCOUNT
from benchmarks.machine import cores
from benchmarks.onebot_load import PATH, SENDS
from benchmarks.outcome import Outcome
from benchmarks.process import ROOT, TOKEN, Installation, Server
from benchmarks.speedups import dumps, loads
from benchmarks.websocket import WebSocket

SIZE_MIB = 60
SEGMENTS = 1_400_000
PEER = 77_000_002
PAUSE_SECONDS = 0.004
SETTLE_SECONDS = 1.0
#: The kind that is refused, for its number of values.
REFUSED = "segments"

numbers = itertools.count(1)


class Sender:
    """One account to which a friend writes, one message at a time."""

    def __init__(self, port: int) -> None:
        self._answered = asyncio.Event()
        self._account = FIRST_ACCOUNT + 9
        headers = {
            "X-Self-ID": str(self._account),
            "X-Client-Role": "Universal",
            "Authorization": f"Bearer {TOKEN}",
        }
        self.socket = WebSocket(port, PATH, headers, self._on_text)

    def event(self, message: str) -> bytes:
        """A private message as a frame; ``message`` is JSON."""
        rest = {
            "post_type": "message",
            "message_type": "private",
            "self_id": self._account,
            "user_id": PEER,
        }
        rest |= {
            "time": int(time.time()),
            "message_id": next(numbers),
            "sender": {"user_id": PEER, "nickname": "小明😀"},
        }
        return (
            json.dumps(rest, ensure_ascii=False).encode()[:-1]
            + b',"message":'
            + message.encode()
            + b"}"
        )

    async def ask(self, frame: bytes) -> None:
        """Send ``frame`` and wait for the answer."""
        self._answered.clear()
        self.socket.send(frame)
        await asyncio.wait_for(self._answered.wait(), 60)

    def _on_text(self, payload: bytes) -> None:
        frame = loads(payload)
        response = {
            "status": "ok",
            "retcode": 0,
            "data": {"message_id": next(numbers)},
            "echo": frame.get("echo"),
        }
        self.socket.send(dumps(response))
        if frame.get("action") in SENDS:
            self._answered.set()


def messages(scale: float) -> dict[str, str]:
    """The JSON of each kind of message."""
    size = round(SIZE_MIB * scale * 2**20)
    content = base64.b64encode(b"\x89PNG\r\n\x1a\n" + os.urandom(size * 3 // 4)).decode()
    segment = '{"type":"text","data":{"text":"x"}}'
    return {
        "text": json.dumps([{"type": "text", "data": {"text": "x" * size}}]),
        "words": json.dumps(
            [{"type": "text", "data": {"text": "今天，吃“什么”？😀\n" * (size // 36)}}],
            ensure_ascii=False,
        ),
        "picture": json.dumps(
            [
                {"type": "image", "data": {"file": f"base64://{content}"}},
                {"type": "text", "data": {"text": "look"}},
            ]
        ),
        REFUSED: f"[{','.join([segment] * round(SEGMENTS * scale))}]",
    }


class Probe:
    """Another process that asks ``/health`` all the time; the longest wait is how long the loop
    stood still."""

    def __init__(self, port: int) -> None:
        command = [sys.executable, "-m", "benchmarks.health_probe", str(port), str(PAUSE_SECONDS)]
        self._child = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        os.sched_setaffinity(self._child.pid, cores()[1])

    def longest_ms(self) -> float:
        """The longest wait since the last time."""
        assert self._child.stdin
        assert self._child.stdout
        self._child.stdin.write("\n")
        self._child.stdin.flush()
        return float(self._child.stdout.readline())

    def end(self) -> None:
        self._child.kill()
        self._child.wait()


def memory_mib(pid: int, name: str) -> float:
    """``VmRSS``, or ``VmHWM`` for the peak of it."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def forget_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


async def measure(
    server: Server, kind: str, message: str
) -> tuple[dict[str, float], dict[str, float]]:
    """What one frame costs a server that has just started: the figures of the scenario, and what
    they are made of."""
    sender, probe, pid = Sender(server.port), Probe(server.port), server.child.pid
    try:
        await sender.socket.connect()
        await sender.ask(sender.event('"warm up"'))
        frame = sender.event(message)
        await asyncio.sleep(SETTLE_SECONDS)
        await asyncio.to_thread(probe.longest_ms)
        forget_peak(pid)
        before, cpu = memory_mib(pid, "VmRSS"), server.usage().cpu_seconds
        if kind == REFUSED:
            sender.socket.send(frame)
        else:
            await sender.ask(frame)
        await sender.ask(sender.event('"still there?"'))
        await asyncio.sleep(SETTLE_SECONDS)
        longest, peak = await asyncio.to_thread(probe.longest_ms), memory_mib(pid, "VmHWM")
    finally:
        sender.socket.close()
        probe.end()
    size = len(frame) / 2**20
    details = {"frame": size, "before": before, "peak": peak, "after": memory_mib(pid, "VmRSS")}
    details = {f"{name}_mib": round(value, 1) for name, value in details.items()}
    details["cpu_seconds"] = round(server.usage().cpu_seconds - cpu, 2)
    return {f"{kind}_times_its_size": (peak - before) / size, f"{kind}_stall_ms": longest}, details


async def cost(installation: Installation, scale: float) -> Outcome:
    """Everything that the scenario ``frames`` asks for. Raises TimeoutError when a message is not
    answered."""
    figures, details = dict[str, float](), {}
    for kind, message in messages(scale).items():
        with installation.serving() as server:
            measured, details[kind] = await measure(server, kind, message)
            figures |= measured
    target = {name: 100 if name.endswith("_ms") else 3 for name in figures}
    return Outcome(target, figures, details=details)
