"""What no test may do unnoticed: leave the machine, or block the event loop."""

import asyncio.events
import faulthandler
import gc
import ipaddress
import linecache
import os
import re
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

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
        self._wrap(
            socket.socket,
            "connect",
            lambda sock, address: sock.type == socket.SOCK_DGRAM or _stays_here(sock, address),
        )
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


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds: how far the clocks that matter to one thread have come, or the difference of two
    such readings."""

    wall: float
    computed: float
    """CPU time of the watched thread, garbage collection included."""
    collected: float = 0.0
    """What garbage collection took of that."""
    others: float = 0.0
    """CPU time of the other threads of this process, for which this one may have had to wait."""

    def __sub__(self, earlier: "Spent") -> "Spent":
        return Spent(
            *(getattr(self, each.name) - getattr(earlier, each.name) for each in fields(self))
        )

    def is_plain(self, tick: float) -> bool:
        """Whether the thread computed all the time, and was looked at when it should have been."""
        return self.wall < 3 * tick and self.computed > self.wall / 2


@dataclass(frozen=True, slots=True)
class Queued:
    """Seconds that a thread was ready to run and had no core."""

    watched: float = 0.0
    watcher: float = 0.0

    def __sub__(self, earlier: "Queued") -> "Queued":
        return Queued(self.watched - earlier.watched, self.watcher - earlier.watcher)


def stall(spent: Spent, queued: Queued, tick: float) -> float:
    """How long the thread surely computed or waited of its own accord; one look proves no more than
    a ``tick`` of waiting.

    What a machine short of cores, garbage collection or another thread may have taken is
    left out. Computing is believed for as long as the watcher was kept from looking by
    the interpreter, as it is during one long call, and not by the machine.
    """
    computed = min(spent.computed, spent.wall - queued.watcher) - spent.collected
    waited = min(spent.wall, tick) - spent.collected - spent.others - queued.watched
    return max(computed, waited, 0.0)


class Place(NamedTuple):
    """Where a function of a stack is at work."""

    file: str
    line: int
    function: str

    @property
    def words(self) -> str:
        return linecache.getline(self.file, self.line).strip()


Stack = list[Place]


@dataclass(slots=True, eq=False)
class _Callback:
    """One callback of the event loop, as far as it has been watched."""

    wall: float
    computed: float
    stall: float = 0.0
    stack: Stack = field(default_factory=list)


class LoopWatch:
    """Collects callbacks of this thread's event loop in which code under ``roots`` took longer than
    ``limit`` seconds.

    A second thread looks at the stack of a callback that is older than a ``tick`` every ``tick``
    seconds, and after a call that lets no other thread run as soon as that has ended, which is
    still in the function that made it.
    What passed since its last look is laid to production only when a file under
    ``roots`` is on the stack: what a test or the harness itself blocks on is its own
    affair. So are imports, the starting of threads, garbage collection, and a machine
    that is busy otherwise. ``stalls`` is complete after the ``with`` block.

    Why not blockbuster: it judges calls by their name and not by their time. It sees no long
    computing, JSON or regular expression; it refuses a ``stat`` of a microsecond, which
    production does on purpose; its error reaches production code, which copes with errors.
    It costs a third more processor time, and this a twentieth. The event loop's own
    ``slow_callback_duration`` counts time in which the machine was busy with something else.
    """

    def __init__(
        self, roots: Sequence[Path] = PRODUCTION, limit: float = 0.25, tick: float = 0.025
    ) -> None:
        self.stalls: list[str] = []
        self._roots = tuple(f"{root}/" for root in roots)
        self._limit = limit
        self._tick = tick
        self._thread = threading.get_ident()
        self._clock = time.pthread_getcpuclockid(self._thread)
        self._native_id = threading.get_native_id()
        self._current: _Callback | None = None
        self._stalled: list[_Callback] = []
        self._collected = 0.0
        self._collecting_since: float | None = None
        self._stopped = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="loop-watch", daemon=True)
        self._original = asyncio.events.Handle._run
        self._last = self._spent()
        self._queue = Queued()

    def __enter__(self) -> "LoopWatch":
        watch, original = self, self._original

        def run(handle: asyncio.events.Handle) -> None:
            if threading.get_ident() == watch._thread:
                watch._run(original, handle)
            else:
                original(handle)

        self._dump = tempfile.TemporaryFile()
        asyncio.events.Handle._run = run  # type: ignore[method-assign, assignment] # every callback passes here
        gc.callbacks.append(self._note_collection)
        self._last = self._spent()
        self._watcher.start()
        self._queue = self._queued()
        return self

    def __exit__(self, *_exc: object) -> None:
        asyncio.events.Handle._run = self._original  # type: ignore[method-assign]
        self._stopped.set()
        self._watcher.join()
        self._dump.close()
        self.stalls += map(self._told, self._stalled)
        gc.callbacks.remove(self._note_collection)

    def _run(
        self, original: Callable[[asyncio.events.Handle], None], handle: asyncio.events.Handle
    ) -> None:
        self._current = _Callback(time.perf_counter(), time.thread_time())
        try:
            original(handle)
        finally:
            self._current = None

    def _note_collection(self, phase: str, _info: dict[str, int]) -> None:
        if threading.get_ident() != self._thread:
            return
        if phase == "start":
            self._collecting_since = time.thread_time()
        elif self._collecting_since is not None:
            self._collected += time.thread_time() - self._collecting_since
            self._collecting_since = None

    def _watch(self) -> None:
        # Whoever was kept from looking looks at once.
        while not self._stopped.wait(max(0.0, self._last.wall + self._tick - time.perf_counter())):
            if self._collecting_since is not None:
                time.sleep(self._tick)  # the next look knows how long it took
                continue
            self._look(self._dump.fileno())
            # Reading a file lets the watched thread go on: what it did meanwhile is laid to nobody.
            self._last = self._spent()

    def _look(self, file: int) -> None:
        callback, now = self._current, self._spent()
        if callback is None or now.wall - callback.wall < self._tick:
            self._queue = self._queued()
            return
        faulthandler.dump_traceback(file)
        stack = _read_stack(file, self._thread)
        if self._is_ours(stack):
            self._note_stall(callback, stack, now)

    def _note_stall(self, callback: _Callback, stack: Stack, now: Spent) -> None:
        last, queued = self._last, Queued()
        spent = now - replace(
            last, wall=max(last.wall, callback.wall), computed=max(last.computed, callback.computed)
        )
        if not spent.is_plain(self._tick):
            before, self._queue = self._queue, self._queued()
            queued = self._queue - before
        callback.stall += stall(spent, queued, self._tick)
        callback.stack = stack
        if callback.stall >= self._limit and callback not in self._stalled:
            self._stalled.append(callback)

    def _spent(self) -> Spent:
        computed = time.clock_gettime(self._clock)
        return Spent(time.perf_counter(), computed, self._collected, time.process_time() - computed)

    def _queued(self) -> Queued:
        return Queued(_queued(self._native_id), _queued(self._watcher.native_id))

    def _is_ours(self, stack: Stack) -> bool:
        is_ours = any(place.file.startswith(self._roots) for place in stack)
        return is_ours and not any(map(_is_excused, stack))

    def _told(self, callback: _Callback) -> str:
        """Where it was seen last: what is ours, and where that had led to."""
        last = len(callback.stack) - 4
        lines = (
            f'  File "{place.file}", line {place.line}, in {place.function}\n    {place.words}'
            for number, place in enumerate(callback.stack)
            if number >= last or place.file.startswith(self._roots)
        )
        return f"the event loop stood still for {callback.stall:.2f} s at\n" + "\n".join(lines)


_PLACE = re.compile(rb'^  File "(.*)", line (\d+) in (.*)$', re.MULTILINE)


def _read_stack(file: int, thread: int) -> Stack:
    """Who is at work in ``thread``, the outermost first, by the dump of all threads that was just
    written to ``file``, which is left empty. A function that was only just entered has done nothing
    yet.

    Why a dump: it is written at one moment and touches no frame. Walking the frames of a thread
    that goes on crashes Python 3.11, which hands out frames that are just being cleared.
    """
    size = os.lseek(file, 0, os.SEEK_CUR)
    dump = os.pread(file, size, 0)
    os.lseek(file, 0, os.SEEK_SET)
    _before, _title, rest = dump.partition(b"hread 0x%016x " % thread)
    found = _PLACE.findall(rest.partition(b"\n\n")[0])
    stack = [Place(name.decode(), int(line), function.decode()) for name, line, function in found]
    if stack and stack[0].words.startswith(("def ", "async def ", "@")):
        del stack[0]
    return stack[::-1]


def _is_excused(place: Place) -> bool:
    """Whether it imports, or starts a thread, which a busy machine may make wait."""
    is_start = (place.file, place.function) == (threading.__file__, "start")
    return is_start or place.file.startswith("<frozen importlib")


def _queued(native_id: int | None) -> float:
    """Seconds that the thread was ready to run and had no core; 0.0 where the system does not
    tell."""
    try:
        return int(Path(f"/proc/self/task/{native_id}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0
