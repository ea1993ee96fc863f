"""``/ready``: whether everything is there that an answer needs, and otherwise what is wrong."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from channels.layers import get_channel_layer
from django.conf import settings
from django.db import connection

from agent.record.ground.outage import plain_reason
from agent.record.waiting.recovery import touch_processes
from frostproject.web.http import Receive, Send, send_json
from onebot.connections.handshake import Handshake
from onebot.gateway.gateway import Gateway
from tools.error_boundary import LogLimit, capture_error

logger = logging.getLogger(__name__)
unready = LogLimit(logger)

READY_SECONDS = 3.0

#: Returns what is wrong, "" for nothing.
ReadinessCheck = Callable[[], Awaitable[str]]


class ReadinessEndpoint:
    """200 when an answer could be made and recorded now, else 503 with what is missing; for
    ``ADMIN_NETWORKS`` also why."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._file: tuple[int, int] | None = None
        self._checks: dict[str, ReadinessCheck] = {
            "database": self._database,
            "channel layer": _channel_layer,
        }

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        self._gateway.ensure_started()
        async with asyncio.TaskGroup() as group:
            checks = {
                name: group.create_task(_problem(name, check))
                for name, check in self._checks.items()
            }
        problems = {name: problem for name, check in checks.items() if (problem := check.result())}
        status: dict[str, Any] = {
            "status": "unavailable" if problems else "ok",
            "missing": list(problems),
        }
        if Handshake.from_scope(scope).peer in settings.ADMIN_NETWORKS:
            status["reasons"] = problems
        await send_json(send, 503 if problems else 200, status)

    async def _database(self) -> str:
        """Written like everything else, in its turn: a database that can only be read takes no
        message in."""
        record = self._gateway.runtime.record
        if outage := record.outage:
            return outage.plain_text
        await record.submit(touch_processes, record.process_id)
        if self._is_there():
            return ""
        return "its file was moved or deleted while the server runs: stop it and put the file back"

    def _is_there(self) -> bool:
        """Whether the open file is still the one at that path: SQLite keeps writing to a deleted
        file."""
        if connection.vendor != "sqlite":
            return True
        path = Path(str(settings.DATABASES["default"]["NAME"]))
        found = path.stat() if path.exists() else None
        now = (found.st_dev, found.st_ino) if found else None
        self._file = self._file or now
        return now is not None and now == self._file


async def _problem(name: str, check: ReadinessCheck) -> str:
    with capture_error() as attempt:
        async with asyncio.timeout(READY_SECONDS):
            return await check()
    error = attempt.error
    unready.warn(name, "The %s is not ready: %s: %s", name, type(error).__name__, error)
    return (
        f"no answer within {READY_SECONDS:g} s"
        if isinstance(error, TimeoutError)
        else plain_reason(error)
    )


async def _channel_layer() -> str:
    layer = get_channel_layer()
    # The usual prefix, which the relay also listens under: the layer has one listener per process,
    # and messages under another prefix would never be read.
    channel = await layer.new_channel()
    await layer.send(channel, {"type": "ready"})
    await layer.receive(channel)
    return ""
