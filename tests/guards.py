"""What no test may do unnoticed: leave the machine, or block the event loop."""

import asyncio.events
import ipaddress
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.environment import PROJECT

PRODUCTION = tuple(PROJECT / package for package in ("frostproject", "onebot", "agent", "tools"))
LOCAL_NAMES = frozenset({"", "localhost", "localhost.localdomain", socket.gethostname()})


class OffMachineError(OSError):
    """A test tried to reach something beyond this machine's loopback addresses.

    An ``OSError``, so that the code under test sees a machine without a network; the
    attempt is also remembered, so that code which copes with it still fails the test.
    """


class NetworkGuard:
    """Refuses every connection, datagram and name lookup that would leave the machine."""

    def __init__(self) -> None:
        self.attempts: list[str] = []
        self._originals: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> "NetworkGuard":
        # Connecting a datagram socket sends nothing; it is how a machine learns its own address.
        self._wrap(socket.socket, "connect", lambda sock, address: sock.type == socket.SOCK_DGRAM or _stays_here(sock, address))
        self._wrap(socket.socket, "connect_ex", _stays_here)
        self._wrap(socket.socket, "sendto", lambda sock, _data, *rest: _stays_here(sock, rest[-1]))
        self._wrap(socket, "getaddrinfo", lambda host, *_rest, **_options: _needs_no_lookup(host))
        self._wrap(socket, "gethostbyname", _needs_no_lookup)
        return self

    def __exit__(self, *_exc: object) -> None:
        while self._originals:
            owner, name, original = self._originals.pop()
            setattr(owner, name, original)

    def taken_attempts(self) -> list[str]:
        """The attempts since the last call."""
        taken, self.attempts = self.attempts, []
        return taken

    def _wrap(self, owner: Any, name: str, allowed: Callable[..., bool]) -> None:
        original = getattr(owner, name)

        def guarded(*args: Any, **options: Any) -> Any:
            if not allowed(*args, **options):
                target = next((arg for arg in args if isinstance(arg, tuple | str)), options)
                self.attempts.append(f"{name} {target}")
                raise OffMachineError(f"tests stay on this machine: {name} {target}")
            return original(*args, **options)

        self._originals.append((owner, name, original))
        setattr(owner, name, guarded)


def _stays_here(sock: socket.socket, address: Any) -> bool:
    return sock.family not in (socket.AF_INET, socket.AF_INET6) or _is_loopback(address[0])


def _is_loopback(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host in LOCAL_NAMES
    return address.is_loopback or address.is_unspecified


def _needs_no_lookup(host: str | bytes | None) -> bool:
    name = host.decode() if isinstance(host, bytes) else host or ""
    try:
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return name in LOCAL_NAMES
    return True


@dataclass(slots=True)
class _Callback:
    """One callback of the event loop, as far as it has been watched."""

    ticks: int = 0
    stacks: list[str] = field(default_factory=list)
    touched_production: bool = False


class LoopWatch:
    """Collects callbacks of this thread's event loop that run longer than ``limit`` seconds.

    Computing is measured in CPU time and waiting in samples of a second thread, so
    that a busy machine, on which every callback takes long, raises no false alarm. A
    callback counts only when a file under ``roots`` was seen on its stack: what a test
    or the harness itself blocks on is its own affair.
    """

    def __init__(self, roots: Sequence[Path] = PRODUCTION, limit: float = 0.25, tick: float = 0.025) -> None:
        self.stalls: list[str] = []
        self._roots = tuple(f"{root}/" for root in roots)
        self._limit = limit
        self._tick = tick
        self._thread = threading.get_ident()
        self._current: _Callback | None = None
        self._stopped = threading.Event()
        self._sampler = threading.Thread(target=self._sample, name="loop-watch", daemon=True)
        self._original = asyncio.events.Handle._run

    def __enter__(self) -> "LoopWatch":
        watch, original = self, self._original

        def run(handle: asyncio.events.Handle) -> None:
            if threading.get_ident() == watch._thread:
                watch._measured(original, handle)
            else:
                original(handle)

        asyncio.events.Handle._run = run  # type: ignore[method-assign, assignment] # every callback passes here
        self._sampler.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        asyncio.events.Handle._run = self._original  # type: ignore[method-assign]
        self._stopped.set()
        self._sampler.join()

    def _measured(self, original: Callable[[asyncio.events.Handle], None], handle: asyncio.events.Handle) -> None:
        before, self._current = time.thread_time(), (callback := _Callback())
        try:
            original(handle)
        finally:
            self._current = None
            self._judge(callback, time.thread_time() - before, handle)

    def _judge(self, callback: _Callback, computed: float, handle: asyncio.events.Handle) -> None:
        took = max(computed, callback.ticks * self._tick)
        if took < self._limit or (callback.stacks and not callback.touched_production):
            return
        where = callback.stacks[-1] if callback.stacks else f"(inside one call that let no other thread run)\n{handle!r}"
        self.stalls.append(f"the event loop stood still for {took:.2f} s at\n{where}")

    def _sample(self) -> None:
        while not self._stopped.wait(self._tick):
            if callback := self._current:
                callback.ticks += 1
                if callback.ticks * self._tick * 4 >= self._limit:
                    self._look(callback)

    def _look(self, callback: _Callback) -> None:
        frame = sys._current_frames().get(self._thread)
        stack = traceback.extract_stack(frame)
        if any(entry.filename == threading.__file__ and entry.name == "start" for entry in stack[-4:]):
            callback.ticks -= 1  # a thread that is slow to start on a busy machine is nobody's fault
            return
        ours = [entry for entry in stack if entry.filename.startswith(self._roots)]
        if ours:
            callback.touched_production = True
        elif callback.touched_production:
            return
        callback.stacks[:] = ["".join(traceback.format_list(ours + [entry for entry in stack[-4:] if entry not in ours]))]
