"""Server processes on PostgreSQL that notice within moments what others of them do, or do no
more."""

import asyncio
import sys
from typing import Any

import psycopg
from psycopg.rows import dict_row

from tests import zygote
from tests.live_server import LiveServer

#: Seconds after which a process that shows no sign of life is taken for dead, instead of thirty.
LEASE = 2.0

_BRISK = """
import sys, django
django.setup()
from agent.record import idle_transactions
from agent.chat import inbox
from agent.runtime import runtime
from agent.record import recovery
from frostproject.server import daphne_server
from onebot.gateway import delivery
from onebot.connections import relay
recovery.LEASE_SECONDS = idle_transactions.IDLE_TRANSACTION_SECONDS = {lease}
runtime.HEARTBEAT_SECONDS, inbox.TURN_PAUSE = 0.2, 0.05
delivery.LOOK_AGAIN_SECONDS, relay.REFRESH_SECONDS = 0.1, {refresh}
daphne_server.DRAIN_SECONDS = 0.5
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", *sys.argv[1:]])
"""


class BriskServer(LiveServer):
    """The real server on PostgreSQL, but it notices within moments what other processes do, or do
    no more."""

    refresh_seconds = 0.1
    """How often it reads where the accounts are."""

    def _command(self) -> list[str]:
        code = _BRISK.format(lease=LEASE, refresh=self.refresh_seconds)
        return [sys.executable, "-c", code, "runserver", f"127.0.0.1:{self.port}", "--noreload"]

    def rows(self, query: str, *values: Any) -> list[dict[str, Any]]:
        with psycopg.connect(self.env["DATABASE_URL"], row_factory=dict_row) as connection:
            return connection.execute(query.replace("?", "%s"), values).fetchall()

    def migrate(self) -> "BriskServer":
        zygote.run(
            [sys.executable, "manage.py", "migrate", "--verbosity", "0"],
            self._environment(),
            check=True,
        )
        return self


def running(server: BriskServer) -> BriskServer:
    """The server, started unless it runs."""
    if server._process is None or server.exit_code(0) is not None:
        server.start()
    return server


async def known_to_others(server: BriskServer, account: int) -> None:
    """Wait until the record says that the account is connected, and the other process may have read
    so."""
    await server.row(
        "SELECT 1 FROM onebot_bot WHERE self_id = ? AND online AND channel <> ''", str(account)
    )
    await asyncio.sleep(0.3)
