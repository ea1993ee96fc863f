"""Being told at once that another process has changed a row, where PostgreSQL tells it."""

import asyncio
import contextlib
import logging
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections

from tools.live_rows import CHANGES_CHANNEL

logger = logging.getLogger(__name__)

#: How long PostgreSQL may take to answer, and how long it is let alone after it did not.
ANSWER_SECONDS, REST_SECONDS = 10.0, 5.0
#: After so long without a change it is asked whether it is still there.
SILENCE_SECONDS = 60.0


class SettingsWatch:
    """Wakes whoever waits for a change, by one connection that does nothing but listen.

    Where none can be had (SQLite, a pooler that shares connections, an outage), a change is met
    at the end of the wait, as it always is before a message is judged.
    """

    def __init__(self) -> None:
        self._change = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Return at the next change, and after ``seconds`` in any case."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._change.wait()
        self._change.clear()

    async def listen(self) -> None:
        """Listen until cancelled; ends at once where the database has nothing to tell."""
        database = connections[DEFAULT_DB_ALIAS]
        if database.vendor != "postgresql":
            return
        from psycopg import Error  # which the database has loaded by now

        parameters: dict[str, Any] = database.get_connection_params()
        parameters.pop("cursor_factory", None)  # Django's, which is not async
        while True:
            try:
                await self._listen_once(parameters)
            except (OSError, Error) as error:  # a time limit is an OSError too
                logger.debug("Changes of settings are looked up once a second: %s", error)
            await asyncio.sleep(REST_SECONDS)

    async def _listen_once(self, parameters: dict[str, Any]) -> None:
        from psycopg import AsyncConnection

        async with asyncio.timeout(ANSWER_SECONDS):
            server = await AsyncConnection.connect(**parameters, autocommit=True)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await server.execute(f"LISTEN {CHANGES_CHANNEL}")
            self._change.set()  # what was changed before is not told
            while True:
                async for _notice in server.notifies(timeout=SILENCE_SECONDS):
                    self._change.set()
                async with asyncio.timeout(ANSWER_SECONDS):
                    await server.execute("SELECT 1")
        finally:
            await server.close()  # ends the socket, and waits for nobody
