"""Server processes on PostgreSQL that notice within moments what others of them do, or do no
more."""

import asyncio
import sys
from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg.rows import dict_row

from tests import zygote
from tests.live_server import LiveServer

#: Seconds after which a process that shows no sign of life is taken for dead, instead of thirty.
LEASE = 2.0


class BriskServer(LiveServer):
    """The real server on PostgreSQL, but it notices within moments what other processes do, or do
    no more."""

    limits: Mapping[str, float] = {
        **dict.fromkeys(["lease", "silent_transaction"], LEASE),
        "heartbeat": 0.2,
        "turn_pause": 0.05,
        "account_look": 0.1,
        "account_refresh": 0.1,
        "drain": 0.5,
    }

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
