"""The real server in a process of its own, with a data folder that outlives restarts."""

import asyncio
import contextlib
import http.client
import json
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from tests import prepared, rebuilt_requests, zygote
from tests.environment import PATIENCE, clean_environment

ADMIN = "admin"
ADMIN_PASSWORD = "a long password for tests"
Program = Literal["runserver", "daphne"]


#: Time limits of servers whose tests would otherwise wait for seconds. They share them, since the
#: project is loaded once for each set of limits.
HURRIED: Mapping[str, float] = {
    "quick_answer": 1.0,
    "heartbeat": 0.5,
    "drain": 0.5,
    "tool_listing": 1.0,
    "provider_close": 1.0,
    "playground_check": 0.2,
    "request_head": 2.5,  # of its own: phases of a connection are told apart by their seconds
}

#: So many ports stay taken: a server may be started again on its own.
MARKS = 50
_marks: deque[socket.socket] = deque()
"""One each for the ports handed out last, at the same number of UDP, where nothing else is."""


def free_port() -> int:
    """A port of the loopback address that nothing listens on now, and that no other process of the
    suite is given before something does.

    Of those that systems do not give to outgoing connections: what is started there again would
    meet one of another test.
    """
    for _ in range(100):
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            _marks.append(socket.socket(type=socket.SOCK_DGRAM))
            if len(_marks) > MARKS:
                _marks.popleft().close()
            _marks[-1].bind(("127.0.0.1", port))
            return port
    raise AssertionError("no free port")


class LiveServer:
    """One installation: a port, a data folder, an environment, and at most one running process.

    ``env`` is all the server sees of settings; what is not named there is empty. The
    methods that start and end it block until that is done. As a context manager it is
    started on entry, and ended and deleted on exit.

    It is started cheaply: its process is forked from one that has imported what it needs
    (:mod:`tests.zygote`), its data folder is a copy of one after a first start
    (:mod:`tests.prepared`), and passwords are hashed at no cost (:mod:`tests.served`). With
    ``empty`` it has no data folder, and the product's own settings; with ``fresh`` it is as on a
    new machine: that, and the command itself. ``limits`` are time limits other than usual
    (:class:`tools.time_limits.TimeLimits`).
    """

    limits: Mapping[str, float] = {}

    def __init__(
        self,
        env: Mapping[str, str],
        program: Program = "runserver",
        *,
        fresh: bool = False,
        empty: bool = False,
        limits: Mapping[str, float] | None = None,
    ) -> None:
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="frost-server-"))
        self.data_dir = self.folder / "data"
        self.url = f"http://127.0.0.1:{self.port}"
        self.ws_url = f"ws://127.0.0.1:{self.port}/ws/frostagent"
        self.env = dict(env)
        self._program = program
        self._is_fresh = fresh
        self._is_empty = fresh or empty
        if limits is not None:
            self.limits = limits
        self._log_file = self.folder / "server.log"
        self._process: zygote.Process | None = None

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.remove()
            raise

    def __exit__(self, *_exc: object) -> None:
        self.remove()

    def remove(self) -> None:
        """End the process and delete everything it left. Raises where its record does not make
        the requests again that it sent."""
        self.kill()
        asks_ours = self.env.get("UPSTREAM_ENDPOINT") in rebuilt_requests.models
        differing = rebuilt_requests.find_differing(self.data_dir) if asks_ours else []
        shutil.rmtree(self.folder, ignore_errors=True)
        if differing:
            raise AssertionError("the record makes other requests:\n" + "\n".join(differing[:3]))

    # --- Life -------------------------------------------------------------------

    def start(self, timeout: float = 60) -> Self:
        """Start the process and wait until ``/health`` answers 200."""
        env, start = self._environment(), zygote.popen if self._is_fresh else zygote.start
        if not self._is_empty:
            prepared.fill(self.data_dir, env)
        with self._log_file.open("ab") as log:
            self._process = start(self._command(), env, subprocess.DEVNULL, log, log)
        end = time.monotonic() + timeout
        while not self.is_healthy():
            if self.exit_code(0.02) is not None or time.monotonic() > end:
                self.kill()
                raise AssertionError(f"the server did not become healthy:\n{self.log}")
        return self

    def terminate(self, timeout: float = PATIENCE) -> int:
        """Ask the process to end (SIGTERM); its exit status."""
        return self._end(signal.SIGTERM, timeout)

    def kill(self) -> int:
        """End the process at once (SIGKILL), as a crash would; its exit status."""
        return self._end(signal.SIGKILL, 10)

    def restart(self, **env: str) -> Self:
        """End the process if it runs, and start again on the same data folder, with ``env``
        changed."""
        self.terminate()
        self.env |= env
        return self.start()

    def exit_code(self, timeout: float) -> int | None:
        """The exit status once the process has ended, None when it still runs after ``timeout``
        seconds."""
        assert self._process, "the server was never started"
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None

    @property
    def pid(self) -> int:
        assert self._process, "the server was never started"
        return self._process.pid

    def _end(self, number: signal.Signals, timeout: float) -> int:
        if self._process is None:
            return 0
        self._process.send_signal(number)
        code = self.exit_code(timeout)
        if code is None:
            self.kill()
            raise AssertionError(f"the server ignored {number.name} for {timeout} s:\n{self.log}")
        return code

    def _command(self) -> list[str]:
        if self._program == "daphne":
            address = ["-b", "127.0.0.1", "-p", str(self.port)]
            return [sys.executable, "-m", "daphne", *address, "frostproject.asgi:application"]
        return [sys.executable, "manage.py", "runserver", f"127.0.0.1:{self.port}", "--noreload"]

    def _environment(self) -> dict[str, str]:
        admin = {"DJANGO_SUPERUSER_USERNAME": ADMIN, "DJANGO_SUPERUSER_PASSWORD": ADMIN_PASSWORD}
        is_plain = self._is_empty and not self.limits
        fixed = {
            "FROST_DATA_DIR": str(self.data_dir),
            "DJANGO_SETTINGS_MODULE": "frostproject.settings" if is_plain else "tests.served",
            "TEST_LIMITS": json.dumps(dict(self.limits)),
            "PYTHONUNBUFFERED": "1",
        }
        return clean_environment(**(fixed | admin | self.env))

    # --- What can be seen of it -------------------------------------------------

    def is_healthy(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    @property
    def log(self) -> str:
        """Everything the server has printed, over all its lives."""
        return (
            self._log_file.read_text(encoding="utf-8", errors="replace")
            if self._log_file.exists()
            else ""
        )

    def rows(self, query: str, *values: Any) -> list[dict[str, Any]]:
        """What ``query`` finds in the server's SQLite file, read beside the running server."""
        connection = sqlite3.connect(
            f"file:{self.data_dir / 'frostagent.sqlite3'}?mode=ro", uri=True, timeout=10
        )
        try:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(query, values)]
        finally:
            connection.close()

    async def row(self, query: str, *values: Any, timeout: float = PATIENCE) -> dict[str, Any]:  # noqa: ASYNC109
        """The first row that ``query`` finds, awaited until there is one."""
        end = time.monotonic() + timeout
        while not (found := self.rows(query, *values)):
            if time.monotonic() > end:
                raise AssertionError(
                    f"no row within {timeout} s: {query} {values}\n{self.log[-2000:]}"
                )
            await asyncio.sleep(0.02)
        return found[0]

    async def logged(self, words: str, timeout: float = PATIENCE) -> str:  # noqa: ASYNC109
        """The log, once it holds ``words``."""
        end = time.monotonic() + timeout
        while words not in (log := self.log):
            if time.monotonic() > end:
                raise AssertionError(f"{words!r} was not logged within {timeout} s:\n{log[-2000:]}")
            await asyncio.sleep(0.02)
        return log
