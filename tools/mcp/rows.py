"""What a row says of an MCP server, read once and carried to wherever the server is used."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qsl

from django.utils.translation import gettext as _

from tools.mcp.masking import MASK
from tools.models import McpServer
from tools.vault import SealBroken

_SHORTEST_SECRET, _SHORTEST_IN_URL = 4, 8
"""Characters; what is shorter stands in too many words that are none."""


@dataclass(frozen=True, slots=True)
class McpServerSettings:
    """One server as the operator wants it. ``fault`` says in the operator's words why it cannot be used, or is "".

    ``include`` and ``exclude`` are patterns with ``*`` over the server's own tool names.
    ``refreshes`` and ``reconnects`` are counters: a growing one is a command.
    """

    pk: int
    name: str
    enabled: bool = True
    transport: str = McpServer.Transport.STDIO.value
    command: str = ""
    arguments: tuple[str, ...] = ()
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    connect_seconds: float = 30
    call_seconds: float = 60
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    name_prefix: str = ""
    refreshes: int = 0
    reconnects: int = 0
    fault: str = ""

    @property
    def is_stdio(self) -> bool:
        return self.transport == McpServer.Transport.STDIO.value

    def reaches_as(self, other: "McpServerSettings") -> bool:
        """Whether a connection that was made for ``other`` is one for this."""
        same = replace(
            other,
            name=self.name,
            call_seconds=self.call_seconds,
            include=self.include,
            exclude=self.exclude,
            name_prefix=self.name_prefix,
            refreshes=self.refreshes,
            reconnects=self.reconnects,
        )
        return same == self

    def masked(self, text: str) -> str:
        """``text`` without the values of headers, of variables and of the URL's query."""
        for word in sorted(self._secrets(), key=len, reverse=True):
            text = text.replace(word, MASK)
        return text

    def _secrets(self) -> set[str]:
        values = [*self.headers.values(), *self.environment.values()]
        words = {word for value in values for word in (value, value.rpartition(" ")[2]) if len(word) >= _SHORTEST_SECRET}
        query = self.url.partition("?")[2]
        return words | {value for _, value in parse_qsl(query) if len(value) >= _SHORTEST_IN_URL}


def settings_of(row: McpServer) -> McpServerSettings:
    """What ``row`` says. Never raises: what keeps the server from being used is its ``fault``."""
    headers: dict[str, str] = {}
    environment: dict[str, str] = {}
    fault = _missing(row)
    try:
        headers, environment = row.headers, row.environment
    except SealBroken:
        fault = _("Its headers and variables were sealed under another secret key. Enter them anew.")
    return McpServerSettings(
        pk=row.pk,
        name=row.name,
        enabled=row.enabled,
        transport=row.transport,
        command=row.command,
        arguments=tuple(str(one) for one in row.arguments) if isinstance(row.arguments, list) else (),
        url=row.url,
        headers=headers,
        environment=environment,
        connect_seconds=row.connect_seconds,
        call_seconds=row.call_seconds,
        include=_patterns(row.include),
        exclude=_patterns(row.exclude),
        name_prefix=row.name_prefix,
        refreshes=row.refreshes,
        reconnects=row.reconnects,
        fault=fault,
    )


def read_settings() -> dict[int, McpServerSettings]:
    """All servers by their primary keys, in their order. For the database thread."""
    return {row.pk: settings_of(row) for row in McpServer.objects.order_by("pk")}


def _missing(row: McpServer) -> str:
    if row.transport == McpServer.Transport.STDIO:
        return "" if row.command else _("It has no command.")
    return "" if row.url else _("It has no URL.")


def _patterns(text: str) -> tuple[str, ...]:
    return tuple(part for part in re.split(r"[\s,]+", text) if part)
