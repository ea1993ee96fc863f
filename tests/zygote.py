"""Python processes that start cheaply: forked from one that has imported what is heavy.

A start spends most of its time on imports. The zygote does them once, the project's own with
settings that it forgets again (:func:`load_project`); every process forked from it reads its own
environment and settings, installs its own event loop, and runs the command it is given as
``python`` would. What a test says about the start itself (what is printed, which settings are
refused, what is loaded when) is tested with the real command.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import IO
from unittest import mock

import django
from asgiref.local import Local
from django.conf import settings
from django.db import connections
from django.template.backends.django import get_installed_libraries
from django.urls import get_resolver
from django.utils import timezone, translation
from django.utils.functional import empty
from django.utils.module_loading import import_string
from django.utils.translation import trans_real

from tests.environment import PROJECT, clean_environment

#: What servers import from other projects, without what asks Django for settings and without
#: Twisted's reactor,
#: which opens an event loop.
HEAVY = (
    *(
        "django.core.management",
        "django.core.handlers.asgi",
        "django.db.models",
        "django.db.migrations.executor",
    ),
    *(
        "django.db.backends.sqlite3.base",
        "django.forms",
        "django.template.loader",
        "django.test.signals",
        "django.urls",
    ),
    *(
        "django.contrib.admin.options",
        "django.contrib.admin.views.main",
        "django.contrib.staticfiles.handlers",
    ),
    *(
        "aiohttp",
        "asgiref.sync",
        "attr",
        "channels.generic.websocket",
        "channels_redis.core",
        "cryptography.fernet",
    ),
    *(
        "autobahn.websocket.protocol",
        "docstring_parser",
        "h11",
        "httpcore2",
        "jsonpath",
        "jsonschema",
        "openai.resources.chat",
        "PIL.Image",
    ),
    *(
        "openai.resources.embeddings",
        "openai.resources.audio",
        "packaging.specifiers",
        "psycopg",
        "pydantic",
        "requests",
    ),
    *(
        "anyio._backends._asyncio",
        "mcp.client.sse",
        "mcp.client.streamable_http",
        "mcp.server.streamable_http_manager",
        "segno",
        "truststore",
        "twisted.internet.asyncioreactor",
        "twisted.web.http",
        "urllib3",
        "watchfiles",
        "webauthn",
        "yaml",
    ),
)
#: And of the project, with its pages.
PROJECT_MODULES = (
    "frostproject.cockpit.dashboard",
    "frostproject.urls",
    "frostproject.live.feed",
    "frostproject.metrics.endpoint",
    "frostproject.metrics.traces",
    "frostproject.signin.pages",
    "frostproject.web.http",
    "frostproject.web.mcp",
    "frostproject.web.readiness",
    "onebot.gateway.consumer",
    "onebot.playground.door",
)
Stream = int | IO[bytes]
#: Variables that the interpreter or the system's libraries read before any program runs.
_EARLY = ("PYTHON", "LC_", "LD_", "MALLOC_")
_UNBUFFERED = "PYTHONUNBUFFERED"  # forked processes are it in any case


def is_possible() -> bool:
    """Whether this system lets processes be forked and waited for as is done here."""
    return sys.platform == "linux" and hasattr(os, "pidfd_open")


def start(
    command: Sequence[str], env: Mapping[str, str], stdin: Stream, stdout: Stream, stderr: Stream
) -> "Process":
    """Start ``command``, whose first word is this Python, in the project's folder; forked where
    that is possible.

    The streams are as ``subprocess`` takes them, except for pipes.
    """
    if is_possible() and command[0] == sys.executable and _early(env) == _early(_environment()):
        zygote = _loaded_zygote(env.get("TEST_LIMITS") or "{}")
        return zygote.fork(command[1:], env, (stdin, stdout, stderr))
    return popen(command, env, stdin, stdout, stderr)


def popen(
    command: Sequence[str], env: Mapping[str, str], stdin: Stream, stdout: Stream, stderr: Stream
) -> "Process":
    """The same by the command itself."""
    return subprocess.Popen(
        command, cwd=PROJECT, env=env, stdin=stdin, stdout=stdout, stderr=stderr
    )


def run(
    command: Sequence[str],
    env: Mapping[str, str],
    given: str | bytes = "",
    *,
    check: bool = False,
    timeout: float = 60,
) -> "subprocess.CompletedProcess[str]":
    """Start ``command`` with ``given`` on its standard input, and wait until it has ended. Blocks.

    Raises subprocess.TimeoutExpired, and with ``check`` AssertionError where it does not end well.
    """
    with contextlib.ExitStack() as files:
        stdin, stdout, stderr = (files.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        stdin.write(given.encode() if isinstance(given, str) else given)
        stdin.seek(0)
        process = start(command, env, stdin, stdout, stderr)
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            raise
        stdout.seek(0)
        stderr.seek(0)
        ended = subprocess.CompletedProcess(
            list(command), status, stdout.read().decode(), stderr.read().decode(errors="replace")
        )
    assert not check or status == 0, ended.stderr
    return ended


def _early(env: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in env.items()
        if (name.startswith(_EARLY) or name == "LANG") and name != _UNBUFFERED
    }


def _environment() -> dict[str, str]:
    return clean_environment(**{_UNBUFFERED: "1"})


class Forked:
    """A process forked from the zygote, with what is used of ``Popen``."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self.pid = self._told()
        self.returncode: int | None = None

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        if self.returncode is None:
            os.kill(self.pid, number)

    def wait(self, timeout: float | None = None) -> int:
        """The exit status, negative for a signal. Raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._channel], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a forked process", timeout or 0)
            self.returncode = self._told()
            self._channel.close()
        return self.returncode

    def _told(self) -> int:
        number = self._channel.recv(32)
        assert number, "the zygote has ended"
        return int(number)


Process = subprocess.Popen[bytes] | Forked


class Zygote:
    """A process that others are forked from, as its user sees it. Both end with this process.

    ``parent`` is the one that it is forked from itself, with the time limits ``limits`` read.
    """

    def __init__(self, parent: "Zygote | None" = None, limits: str = "") -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process: Process
        with theirs:
            if parent is None:
                command = [sys.executable, "-m", "tests.zygote"]
                self._process = popen(command, _environment(), theirs.fileno(), 1, 2)
            else:
                env = _environment() | {"TEST_LIMITS": limits}
                program = "from tests import zygote; zygote.load_project(); zygote.run_requests()"
                self._process = parent.fork(["-c", program], env, (theirs.fileno(), 1, 2))
        atexit.register(self._end)

    def fork(
        self, arguments: Sequence[str], env: Mapping[str, str], streams: Sequence[Stream]
    ) -> Forked:
        """Start ``python *arguments``; returns when the process has its number."""
        channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, open(os.devnull, "r+b", buffering=0) as null:
            files = [null if stream == subprocess.DEVNULL else stream for stream in streams]
            numbers = [
                file if isinstance(file, int) else file.fileno() for file in (*files, theirs)
            ]
            socket.send_fds(
                self._requests, [json.dumps([list(arguments), dict(env)]).encode()], numbers
            )
        return Forked(channel)

    def _end(self) -> None:
        self._requests.close()
        self._process.wait(10)


@functools.cache
def _zygote() -> Zygote:
    return Zygote()


@functools.cache
def _loaded_zygote(limits: str) -> Zygote:
    """One that has the project loaded. Time limits are the one setting that its modules keep."""
    return Zygote(_zygote(), limits)


# --- In the zygote ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Request:
    """What a forked process is to become."""

    arguments: list[str]
    env: dict[str, str]
    streams: list[int]


def load() -> None:
    """Import what is heavy and of others."""
    for name in HEAVY:
        importlib.import_module(name)


def load_project() -> None:
    """Import the project and its pages as a server does, with settings that are forgotten again:
    none of its modules keeps a setting, so each forked process obeys its own.

    What opens an event loop, Daphne's server and what is built on it, is left to each process.
    """
    sys.modules["daphne.server"] = ModuleType("daphne.server")  # imported by Django's list of apps
    with tempfile.TemporaryDirectory(prefix="frost-zygote-") as folder:
        given = {"FROST_DATA_DIR": folder, "DJANGO_SETTINGS_MODULE": "tests.served"}
        with mock.patch.dict(os.environ, given):
            django.setup()
            for name in (*PROJECT_MODULES, *get_installed_libraries().values()):
                importlib.import_module(name)
            for name in settings.MIDDLEWARE:
                import_string(name)
            _read_texts_and_addresses()
    for name in ("daphne.server", "frostproject.settings", "tests.served"):
        del sys.modules[name]
    _forget_settings()
    machine = sys.modules["frostproject.configuration.machine"]
    machine.token_sources.clear()
    machine.made_files.clear()
    assert "twisted.internet.reactor" not in sys.modules, "an event loop was opened before the fork"
    assert threading.active_count() == 1, "a thread was started before the fork"
    gc.collect()
    gc.freeze()  # what is shared stays shared
    gc.enable()


def _read_texts_and_addresses() -> None:
    """What the first page in each language would read otherwise."""
    for language in ("en", "zh-hans"):
        with translation.override(language):
            translation.gettext("")
            get_resolver()._populate()
    translation.deactivate()  # what was before has become the language of this thread


def _forget_settings() -> None:
    vars(settings).clear()
    settings._wrapped = empty
    vars(connections).pop("settings", None)
    connections._settings = None  # type: ignore[attr-defined]
    connections._connections = Local(connections.thread_critical)  # type: ignore[attr-defined]
    timezone.get_default_timezone.cache_clear()  # type: ignore[attr-defined]
    trans_real._default = None  # type: ignore[attr-defined]


def serve(requests: socket.socket) -> Request | None:
    """Fork at each request, and tell its sender when that process has ended.

    Returns the request in the forked process; None in the zygote, when nobody can ask any more.
    """
    # By the descriptor that tells of the end: the process, and who asked.
    running: dict[int, tuple[int, socket.socket]] = {}
    poll = select.poll()  # not epoll, which forked processes would share
    poll.register(requests, select.POLLIN)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor != requests.fileno():
                poll.unregister(descriptor)
                pid, channel = running.pop(descriptor)
                _tell(channel, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
                channel.close()
                os.close(descriptor)
                continue
            said, descriptors, _flags, _address = socket.recv_fds(requests, 2**18, 4)
            if not said:
                for pid, _ in running.values():
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                return None
            channel = socket.socket(fileno=descriptors.pop())
            if (pid := os.fork()) == 0:
                for mine in (requests, channel, *(other for _, other in running.values())):
                    mine.close()
                arguments, env = json.loads(said)
                return Request(arguments, env, descriptors)
            _tell(channel, pid)
            running[number := os.pidfd_open(pid)] = pid, channel
            poll.register(number, select.POLLIN)
            for stream in descriptors:
                os.close(stream)


def _tell(channel: socket.socket, number: int) -> None:
    with contextlib.suppress(OSError):  # whoever asked has gone
        channel.send(str(number).encode())


def become(request: Request) -> None:
    """Be the process that was asked for."""
    for number, stream in enumerate(request.streams):
        os.dup2(stream, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.environ.clear()
    os.environ.update(request.env)
    time.tzset()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    first, *rest = request.arguments
    if first == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv = ["-c", *rest[1:]]
        main = sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), main.__dict__)
    else:
        sys.argv = request.arguments
        runpy.run_path(first, run_name="__main__")


def run_requests() -> None:
    """Fork at the requests that come over the standard input. Who runs the tests and ends them by
    Ctrl-C is heard by the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if wanted := serve(socket.socket(fileno=0)):
        become(wanted)
        # As at the end of a program, but for taking all that is loaded to pieces.
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


if __name__ == "__main__":
    gc.disable()  # until the project is loaded: none of that is garbage
    load()
    run_requests()
