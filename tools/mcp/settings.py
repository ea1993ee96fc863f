"""The settings of an MCP server from its row, read once and passed to the code that uses the
server; and the reasons why it cannot be used, as far as they are visible without connecting.

A program runs as the system user of this server. So three conditions must hold: the environment
lists it (``MCP_ALLOWED_COMMANDS``), which no page can change; a superuser saves it; and that
superuser was given the permission explicitly. Otherwise every superuser would have it by accident.

The program is run as written, without a shell. Only a bare name is looked up, in the ``PATH`` of
the server. Variables that could redirect this are refused.
"""

import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any
from urllib.parse import quote, unquote

from django.conf import settings
from django.contrib.auth.models import Permission
from django.db.models import Q
from django.utils.translation import gettext as _

from tools.fetch.allow_list import AllowList
from tools.fetch.request import check_headers, check_url
from tools.models import McpServer
from tools.secrets.encryption import DecryptionError
from tools.secrets.hosts import PROGRAM, SecretHosts, format_origin
from tools.secrets.masked import (
    SecretMask,
    SecretValues,
    find_possible_keys,
    secret_refusal_message,
)
from tools.secrets.models import load_secrets

_SECRET = re.compile(r"\{secret:([A-Za-z][A-Za-z0-9_]*)\}")
_STDIO = "stdio"


def find_secret_names(texts: Iterable[str]) -> list[str]:
    """The names of the secrets that ``texts`` name, each once."""
    return list(dict.fromkeys(name for text in texts for name in _SECRET.findall(text)))


def secret_texts(values: Mapping[str, Any]) -> dict[str, list[str]]:
    """Where a server with these ``values``, its fields by name, may name secrets, by field: only
    what its transport uses, arguments and variables of a program, the URL and headers of an
    address."""
    if values["transport"] == _STDIO:
        variables = list((values["environment"] or {}).values())
        return {"arguments": list(values["arguments"] or ()), "environment": variables}
    return {"url": [values["url"]], "headers": list((values["headers"] or {}).values())}


def check_secret_placeholders(
    values: Mapping[str, object], secrets: SecretValues
) -> dict[str, list[str]]:
    """Why a server with these ``values``, its fields by name, may not get the secrets that it
    names: translated sentences, by field."""
    found = {
        field: [_problem(name, values, secrets) for name in find_secret_names(part)]
        for field, part in secret_texts(values).items()
    }
    return {field: [line for line in lines if line] for field, lines in found.items() if any(lines)}


def _problem(name: str, values: Mapping[str, Any], secrets: SecretValues) -> str:
    if name in secrets.undecryptable:
        return _("The secret “%(name)s” can no longer be read: enter it anew.") % {"name": name}
    if name not in secrets.values:
        return _("There is no secret “%(name)s”.") % {"name": name}
    hosts = secrets.hosts.get(name, SecretHosts())
    if values["transport"] == _STDIO:
        command = values["command"]
        return (
            ""
            if hosts.runs(command)
            else secret_refusal_message(name, f"{PROGRAM}{command}", hosts)
        )
    return (
        ""
        if hosts.permits(values["url"])
        else secret_refusal_message(name, format_origin(values["url"]), hosts)
    )


def insert_secrets(text: str, secrets: SecretValues, encode: Callable[[str], str] = str) -> str:
    """``text`` with the secrets in their places; all of them have to be there."""
    return _SECRET.sub(lambda match: encode(secrets.values[match[1]]), text)


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
    elif row.enabled:
        problem = check_command(row.command, ())
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
    if not (named := find_secret_names(chain(*secret_texts(values).values()))):
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
    else:
        headers = {name: insert_secrets(value, known) for name, value in settings.headers.items()}
        # In an address a secret is always one part of a path or one value.
        url = insert_secrets(settings.url, known, lambda value: quote(value, safe=""))
        whole = replace(settings, url=url, headers=headers)
    return replace(whole, secrets=tuple(known.values[name] for name in named))


def load_server_settings(secrets: SecretValues) -> dict[int, McpServerSettings]:
    """All servers by their primary keys, in their order. For the database thread."""
    return {row.pk: to_server_settings(row, secrets) for row in McpServer.objects.order_by("pk")}


def _patterns(text: str) -> tuple[str, ...]:
    return tuple(part for part in re.split(r"[\s,]+", text) if part)


PERMISSION = "tools.run_commands"
_UNSENDABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_UNSENDABLE_VALUE = re.compile(r"[\x00\ud800-\udfff]")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LEADS_ELSEWHERE = re.compile(
    r"PATH|IFS|ENV|BASH_ENV|BASH_FUNC.*|(LD|DYLD)_.*|GCONV_PATH|NODE_(OPTIONS|PATH)|PYTHON(PATH|HOME|STARTUP|USERBASE|BREAKPOINT)"
    r"|PERL5(LIB|OPT|DB)|RUBY(LIB|OPT)|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|CLASSPATH|DOTNET_STARTUP_HOOKS",
    re.IGNORECASE,
)
"""Names of variables that decide which program, or which code inside it, is run."""


def check_command(command: str, arguments: Sequence[object]) -> str:
    """Why this program may not be run, as a translated sentence with what to do; "" when it may.

    A bare name in ``MCP_ALLOWED_COMMANDS`` allows exactly that bare name, an absolute path exactly
    that path. :func:`check_program_exists` checks whether it exists.
    """
    if not command:
        return _("Name the program to run.")
    if _UNSENDABLE.search(command) or any(
        not isinstance(part, str) or _UNSENDABLE.search(part) for part in arguments
    ):
        return _(
            "The program and its arguments are texts without control characters and line breaks."
        )
    if "/" in command and not command.startswith("/"):
        return _("Write the name of the program alone, or its absolute path.")
    return "" if command in settings.MCP_ALLOWED_COMMANDS else _not_allowed(command)


def _not_allowed(command: str) -> str:
    if "," in command or "，" in command:
        return _("A program with a comma in its name cannot be allowed.")
    line = "MCP_ALLOWED_COMMANDS=" + ",".join([*settings.MCP_ALLOWED_COMMANDS, command])
    words = _(
        "“%(command)s” is not among the programs that may be run. A superuser allows it on the "
        "page “System settings”; or put this into .env and restart: %(line)s"
    )
    return words % {"command": command, "line": line}


def check_program_exists(command: str) -> str:
    """Why there is nothing to run under the name ``command`` on this machine; "" when there is."""
    if shutil.which(command):
        return ""
    return _("The program “%s” is not on this machine, or not in the PATH of the server.") % command


def check_environment(environment: Mapping[str, str]) -> str:
    """Why a program may not be given these variables, as a translated sentence; "" when it may.

    ``PATH`` and its like are refused: they would make another program of an allowed one.
    """
    for name, value in environment.items():
        if not _VARIABLE.fullmatch(name) or _UNSENDABLE_VALUE.search(value):
            return _("“%s” is not a variable that can be set.") % _UNSENDABLE.sub("�", name)[:100]
        if _LEADS_ELSEWHERE.fullmatch(name):
            return _("“%s” may not be set: it changes which program, or which code, is run.") % name
    return ""


def may_run_commands(user: Any) -> bool:
    """Whether ``user`` may set up MCP servers that are programs.

    True for a superuser who was given the permission explicitly, by the account or one of its
    groups. The implicit permissions of superusers do not count here.
    """
    if not (user.is_active and user.is_superuser):
        return False
    given = Permission.objects.filter(Q(user=user) | Q(group__user=user))
    return given.filter(content_type__app_label="tools", codename="run_commands").exists()


ENCRYPTED_FIELDS = ("headers", "environment")
"""Never shown again."""
STORED = (*ENCRYPTED_FIELDS, "arguments")
"""Under seal in the table, so that they may be unreadable."""
CHECKED_FIELDS = ("enabled", "transport", "command", "url")


def check_server(
    values: Mapping[str, object], *, has_new_command: bool = True
) -> dict[str, list[str]]:
    """Translated sentences about ``values``, the fields of a server by name, under the field that
    each is about.

    ``headers``, ``environment`` and ``arguments`` are among them, None for what cannot be read any
    more. What is switched off may be incomplete, but not wrong: a program that is not allowed is
    refused unless it stands there already (``has_new_command``) and is not to be run.
    """
    is_program = values["transport"] == McpServer.Transport.STDIO
    problems = (
        _program_problems(values, has_new_command) if is_program else _address_problems(values)
    )
    if values["enabled"] and find_secret_names(chain(*secret_texts(values).values())):
        for name, lines in check_secret_placeholders(values, load_secrets()).items():
            problems[name] = [*problems.get(name, []), *lines]
    for name in STORED:
        if values[name] is None and values["enabled"]:
            problems[name] = [
                _(
                    "What is stored here was sealed under another secret key: enter it anew, or "
                    "delete this line."
                )
            ]
    return {name: lines for name, lines in problems.items() if lines}


def server_values(row: McpServer) -> dict[str, object]:
    """What :func:`check_server` judges of a row as it is."""
    return {name: getattr(row, name) for name in CHECKED_FIELDS} | {
        name: decrypt_field(row, name) for name in STORED
    }


def decrypt_field(row: McpServer, name: str) -> Any:
    """The ``headers``, the ``environment`` or the ``arguments`` of ``row``; None when they cannot
    be read any more."""
    try:
        return getattr(row, name)
    except DecryptionError:
        return None


def check_server_row(row: McpServer) -> list[str]:
    """Why a server on this machine could not use ``row``, in translated sentences; nothing is
    resolved or run."""
    values = server_values(row)
    if None in (values[name] for name in STORED):
        return [
            _(
                "Its headers, variables and arguments were sealed under another secret key and "
                "cannot be read any more: enter them anew."
            )
        ]
    found = [line for lines in check_server(values | {"enabled": True}).values() for line in lines]
    if row.transport == McpServer.Transport.STDIO and not found:
        found = [line for line in [check_program_exists(row.command)] if line]
    return found


def _program_problems(values: Mapping[str, Any], has_new_command: bool) -> dict[str, list[str]]:
    is_judged = values["enabled"] or (values["command"] and has_new_command)
    command = check_command(values["command"], values["arguments"] or ()) if is_judged else ""
    environment = check_environment(values["environment"] or {})
    return {
        "command": [command] if command else [],
        "environment": [environment] if environment else [],
    }


def _address_problems(values: Mapping[str, Any]) -> dict[str, list[str]]:
    url = values["url"]
    if not url:
        return {
            "url": [_("Enter the URL of the server.")] if values["enabled"] else [],
            "headers": check_headers(values["headers"] or {}),
        }
    allow = AllowList.parse(settings.FETCH_ALLOW, "mcp") if values["enabled"] else None
    return {"url": check_url(url, allow), "headers": check_headers(values["headers"] or {})}
