"""One server process of the system under test, over all its lives."""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg.rows import dict_row

from chaos.model import TOOL_NAME
from tests.environment import PROJECT
from tests.live_server import LiveServer

START_SECONDS = 90
END_SECONDS = 60
#: Time limits of scenarios of several processes: a lease of 6 s for 30, an answer of a client
#: awaited for 10 s instead of 60.
BRISK = {"lease": 6.0, "heartbeat": 1.0, "send": 10.0}
_PREPARE = "import django; django.setup(); from chaos.prepare import main; main()"


class ChaosServer(LiveServer):
    """The real server; with ``pace`` some of its time limits are shorter (see :data:`BRISK`).

    ``database`` is where the record is read from, which is not the server's own way there
    when a proxy stands between; "" for the embedded one. ``mutant`` is what is broken in it on
    purpose (:mod:`chaos.mutants`).
    """

    def __init__(
        self,
        env: Mapping[str, str],
        pace: Mapping[str, float],
        database: str = "",
        mutant: str = "",
    ) -> None:
        super().__init__(env, fresh=True, limits=pace)
        self.life = 0
        self._database = database
        self._mutant = mutant

    def _command(self) -> list[str]:
        python, program, *words = super()._command()
        if not self._mutant:
            return [python, program, *words]
        return [python, "-m", "chaos.mutants", self._mutant, *words]

    def prepare(self, *urls: str) -> None:
        """Make the database, the counted tool at the first of ``urls``, and endpoints at the
        others."""
        command = [sys.executable, "-c", _PREPARE, TOOL_NAME, *urls]
        subprocess.run(command, cwd=PROJECT, env=self._environment(), check=True)

    def rows(self, query: str, *values: Any) -> list[dict[str, Any]]:
        if not self._database:
            return super().rows(query, *values)
        with psycopg.connect(self._database, row_factory=dict_row) as connection:
            return connection.execute(query.replace("?", "%s"), values).fetchall()

    # --- Life, without blocking the loop ----------------------------------------------

    async def begin(self, **env: str) -> None:
        """Start, with ``env`` for this life alone."""
        usual, self.env = self.env, self.env | env
        try:
            await asyncio.to_thread(self.start, START_SECONDS)
        finally:
            self.env = usual

    async def end(self, number: signal.Signals) -> float:
        """End this life with a signal; the seconds that took."""
        began = time.monotonic()
        await asyncio.to_thread(self._end, number, END_SECONDS)
        self.life += 1
        return time.monotonic() - began

    async def died(self, seconds: float) -> bool:
        """Whether the process ended by itself within ``seconds``."""
        if await asyncio.to_thread(self.exit_code, seconds) is None:
            return False
        self.life += 1
        return True

    def signal(self, number: signal.Signals) -> None:
        assert self._process
        self._process.send_signal(number)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self.exit_code(0) is None
