"""MCP servers that no one of this project wrote: where their programs are, once they are installed.

They run on Node, 18 or newer, and are installed once into ``tests/mcp_servers/node_modules``, by
``npm ci``, which wants a network that time. Where there is no Node or no network the
tests that want them are skipped and say so; with ``FROST_TEST_NODE=required``, as in CI, they fail.
"""

import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Self

import pytest

from tests.environment import PROJECT, clean_environment
from tests.live_server import free_port

FOLDER = PROJECT / "tests" / "mcp_servers"
OLDEST_NODE = 18
INSTALL_SECONDS = 300


@dataclass(frozen=True, slots=True)
class ReferenceServers:
    """Command lines of the servers."""

    node: str

    def everything(self, transport: str = "stdio") -> list[str]:
        return [self.node, self._program("everything"), transport]

    def memory(self) -> list[str]:
        return [self.node, self._program("memory")]

    def filesystem(self, *folders: Path) -> list[str]:
        return [self.node, self._program("filesystem"), *map(str, folders)]

    def time(self) -> list[str]:
        """This one comes from PyPI, with the tests' requirements."""
        return [sys.executable, "-m", "mcp_server_time", "--local-timezone", "UTC"]

    def _program(self, name: str) -> str:
        return str(
            FOLDER
            / "node_modules"
            / "@modelcontextprotocol"
            / f"server-{name}"
            / "dist"
            / "index.js"
        )


def reference_servers() -> ReferenceServers:
    """The servers, installed if they were not; a test that asks where they cannot be is skipped, or
    fails."""
    return ReferenceServers(installed_node(FOLDER))


def installed_node(folder: Path, oldest: int = OLDEST_NODE) -> str:
    """The path of a Node that is not older than ``oldest``, once the packages that ``folder`` locks
    are installed there. The test is skipped, or fails, where that cannot be."""
    path = os.pathsep.join(
        [os.environ.get("PATH", ""), str(Path(sys.executable).parent)]
    )  # Node may have come as a wheel
    node, npm = (shutil.which(program, path=path) for program in ("node", "npm"))
    if node is None or npm is None:
        missing("Node and npm are not on this machine")
    version, program = _about(node)
    if version < oldest:
        missing(f"Node {version} is too old: the servers want {oldest} or newer")
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _is_installed(folder):
            _install(folder, npm, path)
    return program


def missing(reason: str) -> NoReturn:
    """Skip the test that is running, or fail it where it has to run."""
    if os.environ.get("FROST_TEST_NODE") == "required":
        pytest.fail(f"the servers of others cannot be run: {reason}")
    pytest.skip(reason)


def _about(node: str) -> tuple[int, str]:
    """The major version of a Node, 0 for one that does not start, and its own path: what is in the
    ``PATH`` may be a script."""
    words = [node, "-p", "`${parseInt(process.versions.node)} ${process.execPath}`"]
    found = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False).stdout
    version, _, program = found.strip().partition(" ")
    return int(version or 0), program


def _is_installed(folder: Path) -> bool:
    """Whether what is there is what the lock says: npm notes what it has installed."""
    noted = folder / "node_modules" / ".package-lock.json"
    wanted = json.loads((folder / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    wanted.pop("")
    return (
        noted.exists()
        and json.loads(noted.read_text(encoding="utf-8"))["packages"].keys() == wanted.keys()
    )


def _install(folder: Path, npm: str, path: str) -> None:
    environment = os.environ | {"PATH": path}
    try:
        done = subprocess.run(
            [npm, "ci", "--no-progress"],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        missing(f"npm did not install the servers within {INSTALL_SECONDS} s")
    if done.returncode:
        missing(f"npm cannot install the servers: {done.stderr.strip()[:300]}")


class HttpServer:
    """A server that listens on a port of this machine. It can be ended and started again on its
    port."""

    def __init__(self, command: list[str]) -> None:
        self.port = free_port()
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_exc: object) -> None:
        self.kill()

    def start(self, seconds: float = 60) -> Self:
        """Start the process and wait until it listens."""
        environment = clean_environment(PORT=str(self.port))
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(
            self._command, env=environment, stdin=quiet, stdout=quiet, stderr=quiet
        )
        end = time.monotonic() + seconds
        while not self._listens():
            if time.monotonic() > end:
                self.kill()
                raise AssertionError(f"{self._command} does not listen")
            time.sleep(0.02)
        return self

    def kill(self) -> None:
        """End the process at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None

    def _listens(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return True
        except OSError:
            return False
