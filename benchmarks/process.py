"""The server under test as a child process, and other children of the rig."""

import asyncio
import contextlib
import json
import os
import re
import secrets
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from benchmarks.machine import Usage, cores, usage

HOST = "127.0.0.1"
ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 120
STOP_SECONDS = 30
TOKEN = secrets.token_hex(16)
ADMIN, PASSWORD = "bench", secrets.token_hex(16)
_SETUP = "import django; django.setup(); from benchmarks.{} import main; main()"


class ServerError(RuntimeError):
    """The server, or a child that prepares its data, ended or did not become ready; the text holds
    its last lines."""


#: A load is a few people who say very much; with limits it would measure how they are refused.
LIMITS = (
    "PERSON_ANSWERS_PER_MINUTE",
    "PERSON_ANSWERS_PER_DAY",
    "CHAT_ANSWERS_PER_MINUTE",
    "TOKENS_PER_DAY",
)


@dataclass
class Installation:
    """A data folder of its own, and how the server is started on it."""

    folder: Path
    model_port: int
    use_daphne: bool = False
    profile: Path | None = None
    """A file name to profile into, one file a thread."""
    settings: dict[str, str] = field(default_factory=dict)
    own_tools: int = 0
    """How many tools the server offers beside those it brings along, see
    :mod:`benchmarks.own_tools`."""
    root: Path = ROOT
    """Where the code of the server is."""
    has_core: bool = True
    """Whether the server has one core, to itself; else all are there for it."""

    @property
    def log(self) -> Path:
        return self.folder / "bench-server.log"

    def environment(self) -> dict[str, str]:
        """The process environment without what a developer's ``.env`` would add."""
        dotenv = self.root / ".env"
        silenced = re.findall(
            r"^\s*(?:export\s+)?(\w+)\s*=",
            dotenv.read_text() if dotenv.is_file() else "",
            re.MULTILINE,
        )
        return {
            **os.environ,
            **dict.fromkeys(silenced, ""),
            "DJANGO_SETTINGS_MODULE": "frostproject.settings",
            "FROST_DATA_DIR": str(self.folder),
            "UPSTREAM_ENDPOINT": f"http://{HOST}:{self.model_port}/v1",
            "UPSTREAM_API_KEY": "bench",
            "MODEL_NAME": "bench",
            "ONEBOT_ACCESS_TOKEN": TOKEN,
            "DATABASE_URL": "",
            "REDIS_URL": "",
            "DJANGO_SUPERUSER_USERNAME": ADMIN,
            "DJANGO_SUPERUSER_PASSWORD": PASSWORD,
            "LANGUAGE_CODE": "en",
            **dict.fromkeys(LIMITS, "0"),
            **self.settings,
        }

    def command(self, port: int) -> list[str]:
        if self.use_daphne:
            server = ["-m", "daphne", "-b", HOST, "-p", str(port), "frostproject.asgi:application"]
        else:
            server = ["manage.py", "runserver", f"{HOST}:{port}", "--noreload"]
        profiler = ["-m", "benchmarks.profiling", str(self.profile)] if self.profile else []
        tools = ["-c", _SETUP.format("own_tools"), str(self.own_tools)] if self.own_tools else []
        return [sys.executable, *(tools or profiler), *(profiler if tools else []), *server]

    async def seed(self, *words: str, seconds: float) -> None:
        """Fill the database in a child process, see :mod:`benchmarks.seeding`; after cancellation
        it has ended."""
        with self.log.open("ab") as log:
            command = [sys.executable, "-c", _SETUP.format("seeding"), *words]
            child = await asyncio.create_subprocess_exec(
                *command, cwd=ROOT, env=self.environment(), stdout=log, stderr=log
            )
        try:
            status = await asyncio.wait_for(child.wait(), seconds)
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()
        if status:
            raise ServerError(f"seeding ended with status {status}:\n{tail(self.log)}")

    def tool_costs(self, count: int) -> dict[str, float]:
        """What ``count`` tools cost the registry by itself, see :mod:`benchmarks.own_tools`."""
        return self._measured("own_tools", str(count), "--cost", seconds=60)

    def page_costs(self) -> dict[str, Any]:
        """What the operator's pages cost by themselves, see :mod:`benchmarks.page_costs`."""
        return self._measured("page_costs", seconds=900)

    def _measured(self, module: str, *words: str, seconds: float) -> dict[str, Any]:
        """What a module measures in a process of its own."""
        output = subprocess.run(
            [sys.executable, "-c", _SETUP.format(module), *words],
            cwd=ROOT,
            env=self.environment(),
            stdout=subprocess.PIPE,
            timeout=seconds,
            check=True,
        ).stdout
        return dict(json.loads(output))

    @contextlib.contextmanager
    def serving(self) -> Iterator["Server"]:
        """A server that answers ``/health``; it is stopped, and has ended, at the end."""
        server = Server(self, free_port())
        try:
            server.wait_healthy()
            yield server
        finally:
            server.stop()


class Server:
    """One start of the server. Alone on its core where there are two."""

    def __init__(self, installation: Installation, port: int) -> None:
        self.port = port
        self._log, self._folder = installation.log, installation.folder
        self._started = time.monotonic()
        with self._log.open("ab") as log:
            self.child = subprocess.Popen(
                installation.command(port),
                cwd=installation.root,
                env=installation.environment(),
                stdout=log,
                stderr=log,
            )
        # Before it has made a thread: threads inherit their maker's cores.
        if installation.has_core:
            os.sched_setaffinity(self.child.pid, cores()[0])
        self.start_seconds = 0.0

    def wait_healthy(self) -> None:
        """Raises ServerError when it ends, or is not healthy in time."""
        while not self._is_healthy():
            if self.child.poll() is not None:
                raise ServerError(
                    f"the server ended with status {self.child.returncode}:\n{tail(self._log)}"
                )
            if time.monotonic() > self._started + START_SECONDS:
                raise ServerError(f"not healthy after {START_SECONDS} s:\n{tail(self._log)}")
            time.sleep(0.01)
        self.start_seconds = time.monotonic() - self._started

    def _is_healthy(self) -> bool:
        connection = HTTPConnection(HOST, self.port, timeout=5)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()

    def usage(self) -> Usage:
        return usage(self.child.pid)

    def database_bytes(self) -> int:
        """What is in use of the embedded database, whatever is not yet moved from its log."""
        [path] = self._folder.glob("*.sqlite3")
        with contextlib.closing(sqlite3.connect(path)) as database:
            pages, free, size = (
                database.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_count", "freelist_count", "page_size")
            )
        return int((pages - free) * size)

    def stop(self) -> None:
        """Ask it to end, and end it if it does not."""
        self.child.terminate()
        try:
            self.child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            sys.stderr.write(f"the server did not stop within {STOP_SECONDS} s of SIGTERM\n")
            self.child.kill()
            self.child.wait()


@contextlib.contextmanager
def fresh_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="frost-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def tail(path: Path, lines: int = 15) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
