"""MCP servers as a live server's database has them, and how the server gets on with them."""

import json
import sys
import time
from typing import Any

from tests import zygote
from tests.environment import clean_environment
from tests.live_server import LiveServer

_SAVE = """
import json, sys, django
django.setup()
from tools.models import McpServer
for name, fields in json.load(sys.stdin).items():
    row = McpServer.objects.filter(name=name).first() or McpServer(name=name)
    for field, value in fields.items():
        setattr(row, field, value)
    row.save()
"""
_LOOK = """
import django
django.setup()
from tools.models.row_history import record_look
from tools.models import ToolConfig
for row in ToolConfig.objects.exclude(fingerprint=""):
    record_look(row.pk, row.fingerprint, None)
"""
_STATUS = (
    "SELECT t.* FROM tools_mcpserverstatus t JOIN tools_mcpserver s ON s.id = t.server_id "
    "JOIN agent_serverprocess p ON p.id = t.process_id WHERE s.name = ? AND t.state = ?"
)

_AWAY = (
    "SELECT s.name, t.state, t.error FROM tools_mcpserver s LEFT JOIN tools_mcpserverstatus t "
    "ON s.id = t.server_id "
    "WHERE s.enabled AND coalesce(t.state, '') != 'connected'"
)


def stdio(command: list[str], **fields: Any) -> dict[str, Any]:
    """The row of a server that is a program."""
    return {"transport": "stdio", "command": command[0], "arguments": command[1:], **fields}


class McpRows:
    """The table of MCP servers of one installation, changed by a process of its own, as by another
    worker's admin."""

    def __init__(self, server: LiveServer) -> None:
        self._server = server

    def save(self, **rows: dict[str, Any]) -> None:
        """Make rows or change them, by name; what is not named stays as it is. Blocks."""
        self._run(_SAVE, json.dumps(rows))

    def _run(self, program: str, said: str = "") -> None:
        environment = clean_environment(
            FROST_DATA_DIR=str(self._server.data_dir),
            DJANGO_SETTINGS_MODULE="frostproject.settings",
        )
        command = [sys.executable, "-c", program]
        zygote.run(command, environment, said, check=True)

    def wait_connected(self, timeout: float = 60) -> None:
        """Wait until every enabled server is connected. Blocks."""
        end = time.monotonic() + timeout
        while away := self._server.rows(_AWAY):
            assert time.monotonic() < end, (
                f"not connected within {timeout} s: {away}\n{self._server.log[-2000:]}"
            )
            time.sleep(0.05)

    def look(self, *names: str, timeout: float = 60) -> None:
        """Look at all tools that there are, once these are among them, as somebody at the admin
        does. Blocks."""
        end = time.monotonic() + timeout
        while missing := [
            name
            for name in names
            if not self._server.rows("SELECT 1 FROM tools_toolconfig WHERE name = ?", name)
        ]:
            assert time.monotonic() < end, f"not there: {missing}"
            time.sleep(0.05)
        self._run(_LOOK)

    async def state(
        self,
        name: str,
        state: str = "connected",
        timeout: float = 30,  # noqa: ASYNC109
    ) -> dict[str, Any]:
        """What the process says of a server, once it is in that state."""
        return await self._server.row(_STATUS, name, state, timeout=timeout)
