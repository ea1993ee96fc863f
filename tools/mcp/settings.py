"""The settings of an MCP server from its row, read once and passed to the code that uses the
server."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import unquote

from django.utils.translation import gettext as _

from tools.mcp.secret_places import (
    check_secret_placeholders,
    find_secret_names,
    has_secret_placeholders,
    insert_secrets,
    insert_url_secrets,
)
from tools.models import McpServer
from tools.secrets.encryption import DecryptionError
from tools.secrets.masked import SecretMask, SecretValues
from tools.secrets.store import load_secrets
from tools.secrets.url_masking import find_possible_keys

_SHORTEST_SECRET, _SHORTEST_IN_URL = 4, 8
"""Characters; what is shorter stands in too many words that are none."""


@dataclass(frozen=True, slots=True)
class McpServerSettings:
    """One server as the operator set it up. ``problem`` is the reason why it cannot be used, in the
    operator's language, or "".

    ``include`` and ``exclude`` are patterns with ``*`` over the server's own tool names.
    ``refreshes`` and ``reconnects`` are counters: a growing one is a command.
    """

    pk: int
    name: str
    enabled: bool = True
    transport: str = McpServer.Transport.STDIO.value
    command: str = ""
    arguments: tuple[str, ...] = field(default=(), repr=False)
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    connect_seconds: float = 30
    call_seconds: float = 60
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    name_prefix: str = ""
    refreshes: int = 0
    reconnects: int = 0
    problem: str = ""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """The values of the secrets that the row names."""

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
        """``text`` without the values of headers and variables, and without what may be a key in
        URL and arguments."""
        return SecretMask(self._hidden()).text(text)

    def _hidden(self) -> set[str]:
        values = [*self.headers.values(), *self.environment.values(), *self.secrets]
        words = {
            word
            for value in values
            for word in (value, value.rpartition(" ")[2])
            if len(word) >= _SHORTEST_SECRET
        }
        others = find_possible_keys(self.url, self.arguments)
        return words | {
            form
            for word in others
            for form in (word, unquote(word))
            if len(form) >= _SHORTEST_IN_URL
        }


def to_server_settings(row: McpServer, secrets: SecretValues | None = None) -> McpServerSettings:
    """The settings of ``row`` with its secrets filled in. They are read from the database if
    ``secrets`` is not given.

    Raises only database errors: the reason why a server cannot be used is its ``problem``.
    """
    headers: dict[str, str] = {}
    environment: dict[str, str] = {}
    arguments: list[str] = []
    problem = ""
    if row.transport != McpServer.Transport.STDIO:
        problem = "" if row.url else _("It has no URL.")
    elif not row.command:
        problem = _("It has no command.")
    try:
        headers, environment, arguments = row.headers, row.environment, row.arguments
    except DecryptionError:
        problem = _(
            "Its headers, variables and arguments were sealed under another secret key. Enter "
            "them anew."
        )
    settings = McpServerSettings(
        pk=row.pk,
        name=row.name,
        enabled=row.enabled,
        transport=row.transport,
        command=row.command,
        arguments=tuple(arguments),
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
        problem=problem,
    )
    return settings if problem else _with_secrets(settings, secrets)


def _with_secrets(settings: McpServerSettings, secrets: SecretValues | None) -> McpServerSettings:
    """``settings`` with the secrets filled in where they are named; unchanged, with a ``problem``,
    when a secret is not allowed there."""
    values = {
        name: getattr(settings, name)
        for name in ("transport", "command", "arguments", "environment", "url", "headers")
    }
    if not has_secret_placeholders(values):
        return settings
    known = load_secrets() if secrets is None else secrets
    if problems := check_secret_placeholders(values, known):
        return replace(
            settings, problem=" ".join(line for lines in problems.values() for line in lines)
        )
    if settings.is_stdio:
        arguments = tuple(insert_secrets(one, known) for one in settings.arguments)
        environment = {
            name: insert_secrets(value, known) for name, value in settings.environment.items()
        }
        whole = replace(settings, arguments=arguments, environment=environment)
        used = find_secret_names([*settings.arguments, *settings.environment.values()])
    else:
        headers = {name: insert_secrets(value, known) for name, value in settings.headers.items()}
        whole = replace(settings, url=insert_url_secrets(settings.url, known), headers=headers)
        used = find_secret_names([settings.url, *settings.headers.values()])
    return replace(whole, secrets=tuple(known.values[name] for name in used))


def load_server_settings(secrets: SecretValues) -> dict[int, McpServerSettings]:
    """All servers by their primary keys, in their order. For the database thread."""
    return {row.pk: to_server_settings(row, secrets) for row in McpServer.objects.order_by("pk")}


def _patterns(text: str) -> tuple[str, ...]:
    return tuple(part for part in re.split(r"[\s,]+", text) if part)
