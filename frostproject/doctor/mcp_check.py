"""What ``doctor`` finds out about MCP servers: those that are switched on and cannot work. None is
started or connected to."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.db import DatabaseError, connection
from django.urls import reverse
from django.utils.translation import gettext as _

from agent.runtime.database import DatabaseRefused, check_migrations
from frostproject.doctor.diagnosis import Finding, ok_finding, warn_finding
from tools.fetch.allow_list import AllowList
from tools.fetch.destinations import DestinationResolver
from tools.fetch.errors import DestinationRefused, NameUnknown
from tools.mcp.validation import check_server_row
from tools.models import McpServer

MAX_SERVER_FINDINGS = 200
"""The most servers that are checked."""


def check_mcp_servers() -> Iterator[Finding]:
    """A finding for each hindrance, or one for all servers together; nothing where there is no
    server, or no database to ask."""
    servers = _enabled()
    found = [finding for server in servers for finding in _hindrances(server)]
    yield from found
    if servers and not found:
        yield ok_finding(
            _("The MCP servers that are switched on can be used as they are set up: %d")
            % len(servers)
        )


def _enabled() -> list[McpServer]:
    if connection.vendor == "sqlite" and not _is_there(connection.settings_dict["NAME"]):
        return []
    try:
        return (
            list(McpServer.objects.filter(enabled=True).order_by("pk")[:MAX_SERVER_FINDINGS])
            if check_migrations()
            else []
        )
    except (DatabaseError, DatabaseRefused):  # the check of the database has said so
        return []


def _is_there(database: object) -> bool:
    """Whether there is such a file; looking into a database that is none would make one."""
    return "mode=memory" in str(database) or Path(str(database)).exists()


def _hindrances(server: McpServer) -> Iterator[Finding]:
    lines = check_server_row(server)
    if (
        not lines
        and server.transport != McpServer.Transport.STDIO
        and (refusal := _refusal(server.url))
    ):
        lines = [refusal]
    for line in lines:
        text = _("The MCP server %(name)s cannot be used: %(reason)s") % {
            "name": server.name,
            "reason": line,
        }
        page = reverse("admin:tools_mcpserver_change", args=(server.pk,))
        yield warn_finding(
            text, _("Mend it on its page in the admin, or switch it off there."), page
        )


def _refusal(url: str) -> str:
    """Why the host of ``url`` may not be reached, by what its name stands for at present; "" where
    it may."""
    destinations = DestinationResolver(AllowList.parse(settings.FETCH_ALLOW, "mcp"))
    host = urlsplit(url).hostname or ""
    try:
        asyncio.run(destinations.permitted(host))
    except DestinationRefused:
        return _("%s has no public address, and FETCH_ALLOW in .env does not list it.") % host
    except NameUnknown:
        return _("Nobody knows the host %s at present.") % host
    return ""
