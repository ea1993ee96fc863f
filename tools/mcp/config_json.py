"""The ``mcpServers`` JSON that other programs keep their MCP servers in, read and written. Pure.

Accepted are: ``mcpServers`` (Claude Desktop, Claude Code, Cursor, Windsurf, Cline, Gemini CLI,
Cherry Studio), ``servers`` and ``mcp.servers`` (VS Code), a bare map or list of servers;
``command`` / ``args`` / ``env``, ``url`` (``serverUrl``, ``httpUrl``, ``baseUrl``) / ``headers``,
``type`` or ``transport`` in their spellings, ``disabled`` / ``enabled`` / ``isActive``,
``timeout``, ``includeTools`` / ``excludeTools`` / ``disabledTools``; and our own ``connectTimeout``
and ``toolPrefix``. ``${VAR}`` is left unchanged: it is not replaced from this machine's
environment, since the value would be sent to an address from the text.
"""

import contextlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from urllib.parse import urlsplit

from django.utils.translation import gettext as _

from tools.secrets.masked import PLACEHOLDER
from tools.text.storable import make_storable

T = TypeVar("T")

MOST_SERVERS = 500
LONGEST_SECONDS = 3600
"""A larger ``timeout`` is one in milliseconds, as some programs write it."""
_TRANSPORTS = {
    **dict.fromkeys(("stdio", "local"), "stdio"),
    **dict.fromkeys(("http", "streamablehttp", "streamable", "remote"), "streamable_http"),
    "sse": "sse",
}
_SERVER_KEYS = {"command", "url", "serverUrl", "httpUrl", "baseUrl", "type", "transport"}
_SAYS_NOTHING = {"description", "$schema", "icon", "tags"}


class ConfigUnreadable(ValueError):  # noqa: N818 - it says what is wrong
    """The text is not a list of servers; ``str`` of it is a translated sentence."""


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """One server of such a text.

    ``values`` are fields of :class:`tools.models.McpServer` (``environment`` and ``headers``
    among them), those alone that the text speaks of, and all that a connection is made
    with. ``problems`` and ``notes`` are translated sentences: what cannot be read, and what
    the operator should know.
    """

    name: str
    values: dict[str, object]
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def parse_mcp_servers(text: str) -> list[ServerConfig]:
    """The servers of ``text``, good and bad. Raises :class:`ConfigUnreadable` when it has none to
    speak of."""
    named = list(_servers(_document(text)))
    if not named:
        raise ConfigUnreadable(_("There is no server in it."))
    if len(named) > MOST_SERVERS:
        raise ConfigUnreadable(_("There are more than %d servers in it.") % MOST_SERVERS)
    found = [_read(name, entry) for name, entry in named]
    names = [config.name for config in found]
    return [
        replace(config, problems=(*config.problems, _("This name stands here twice.")))
        if names.count(config.name) > 1
        else config
        for config in found
    ]


def find_placeholders(values: Mapping[str, object]) -> list[str]:
    """The placeholders in ``values`` that a user has to replace, as written."""
    made_with = [values[name] for name in ("command", "arguments", "environment", "url", "headers")]
    return sorted(set(PLACEHOLDER.findall(json.dumps(made_with, ensure_ascii=False))))


def render_mcp_servers(configs: Iterable[ServerConfig]) -> str:
    """``configs`` as ``mcpServers`` JSON with unchanged values: the caller has masked them."""
    return json.dumps(
        {"mcpServers": {config.name: _written(config.values) for config in configs}},
        ensure_ascii=False,
        indent=2,
    )


# --- The whole text ---------------------------------------------------------------


def _document(text: str) -> object:
    try:
        return make_storable(json.loads(text.lstrip("\ufeff"), object_pairs_hook=_unambiguous))
    except json.JSONDecodeError as error:
        words = _(
            "This is not JSON: line %(line)d, column %(column)d: %(reason)s. Comments and commas "
            "at the end are not allowed."
        )
        raise ConfigUnreadable(
            words % {"line": error.lineno, "column": error.colno, "reason": error.msg}
        ) from error
    except RecursionError as error:
        raise ConfigUnreadable(_("This is nested too deeply.")) from error
    except ConfigUnreadable:
        raise
    except ValueError as error:  # a number beyond what Python reads
        raise ConfigUnreadable(_("This is not JSON that can be read.")) from error


def _unambiguous(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """JSON lets a name stand twice, and readers differ on which one counts."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _value in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ConfigUnreadable(_("“%s” stands twice in the same place.") % twice[:100])
    return found


def _servers(document: object) -> Iterable[tuple[str, object]]:
    if isinstance(document, dict):
        inner = document.get("mcp")
        for level in (document, inner if isinstance(inner, dict) else {}):
            for key in ("mcpServers", "servers"):
                if key in level:
                    return _pairs(level[key], key)
        is_one = bool(document.keys() & _SERVER_KEYS) and not any(
            isinstance(value, dict) for value in document.values()
        )
        if is_one or not all(isinstance(entry, dict) for entry in document.values()):
            return _pairs([document], "")
    return _pairs(document, "mcpServers")


def _pairs(servers: object, key: str) -> Iterable[tuple[str, object]]:
    if isinstance(servers, dict):
        return servers.items()
    if isinstance(servers, list) and all(
        isinstance(entry, dict) and isinstance(entry.get("name"), str) for entry in servers
    ):
        return [(entry["name"], entry) for entry in servers]
    if key:
        raise ConfigUnreadable(_("“%s” must be an object with a server under each name.") % key)
    words = _(
        "This is no list of servers: it wants an object “mcpServers” with a server under each name."
    )
    raise ConfigUnreadable(words)


# --- One server -------------------------------------------------------------------


def _read(key: str, given: object) -> ServerConfig:
    if not isinstance(given, dict):
        return ServerConfig(key.strip(), {}, (_("A server must be an object."),))
    entry = _Entry(given)
    name = entry.text("name") or key
    # What a connection is made with: always all of it, so that nothing of a former server is left.
    values: dict[str, object] = {
        "command": entry.text("command"),
        "arguments": entry.texts("args", "arguments"),
        "environment": entry.pairs("env", separator="="),
        "url": entry.text("httpUrl", "url", "serverUrl", "baseUrl"),
        "headers": entry.pairs("headers", separator=":"),
    }
    values = {"transport": _transport(entry, values)} | values
    # The settings that the text may leave to what they are.
    disabled, enabled = entry.flag("disabled"), entry.flag("enabled", "isActive")
    excluded = entry.texts("excludeTools") + entry.texts("disabledTools")
    settings = {
        "enabled": enabled if disabled is None else not disabled,
        "call_seconds": entry.seconds("timeout", "read_timeout"),
        "connect_seconds": entry.seconds("connectTimeout"),
        "include": "\n".join(entry.texts("includeTools")) or None,
        "exclude": "\n".join(excluded) or None,
        "name_prefix": entry.text("toolPrefix") or None,
    }
    values |= {name: value for name, value in settings.items() if value is not None}
    if rest := entry.left_over():
        entry.notes.append(_("Not understood and left out: %s") % ", ".join(rest))
    return ServerConfig(name.strip(), values, tuple(entry.problems), tuple(entry.notes))


def _transport(entry: "_Entry", values: Mapping[str, Any]) -> str:
    if given := entry.text("type", "transport", "transportType"):
        known = _TRANSPORTS.get(re.sub(r"[-_ ]", "", given).lower(), "")
        if not known:
            entry.problems.append(_("“%s” is no transport: stdio, http and sse are.") % given[:100])
        return known
    path = ""
    with contextlib.suppress(ValueError):  # it is no URL
        path = urlsplit(values["url"]).path.rstrip("/")
    if values["command"] and values["url"]:
        entry.problems.append(
            _("It names a command and a URL: “type” has to say which one counts.")
        )
    elif values["command"]:
        return "stdio"
    elif not values["url"] and not entry.problems:
        entry.problems.append(_("It names neither a command nor a URL."))
    elif path.endswith("/sse") and entry.given.get("httpUrl") is None:
        entry.notes.append(_("Taken for SSE, because the URL ends in /sse."))
        return "sse"
    return "streamable_http"


@dataclass(slots=True)
class _Entry:
    """One server's object while it is read: what was asked for, and what was wrong with it."""

    given: dict[str, object]
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _read: set[str] = field(default_factory=set)

    def left_over(self) -> list[str]:
        return sorted(self.given.keys() - self._read - _SAYS_NOTHING)

    def text(self, *names: str) -> str:
        name, value = self._take(names)
        if isinstance(value, str):
            return value.strip()
        return self._refuse(name, _("“%s” must be a text."), "") if name else ""

    def texts(self, *names: str) -> list[str]:
        name, value = self._take(names)
        if isinstance(value, list) and all(_is_plain(part) for part in value):
            return [_plain(part) for part in value]
        return self._refuse(name, _("“%s” must be a list of texts."), []) if name else []

    def pairs(self, *names: str, separator: str) -> dict[str, str]:
        """An object of texts, or a list of lines as some programs write it."""
        name, value = self._take(names)
        if isinstance(value, list) and all(
            isinstance(line, str) and separator in line for line in value
        ):
            value = {
                head.strip(): rest.strip()
                for head, _sign, rest in (line.partition(separator) for line in value)
            }
        if isinstance(value, dict) and all(_is_plain(part) for part in value.values()):
            return {key: _plain(part) for key, part in value.items()}
        return self._refuse(name, _("“%s” must be an object of texts."), {}) if name else {}

    def flag(self, *names: str) -> bool | None:
        name, value = self._take(names)
        if isinstance(value, bool):
            return value
        return self._refuse(name, _("“%s” must be true or false."), None) if name else None

    def seconds(self, *names: str) -> int | None:
        name, value = self._take(names)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 10**9:
            return math.ceil(value / 1000 if value > LONGEST_SECONDS else value)
        return self._refuse(name, _("“%s” must be a number of seconds."), None) if name else None

    def _take(self, names: Iterable[str]) -> tuple[str, object]:
        """The first of ``names`` that is there, and its value; "" where none is."""
        self._read.update(names)
        given = ((name, self.given.get(name)) for name in names)
        return next(((name, value) for name, value in given if value is not None), ("", None))

    def _refuse(self, name: str, words: str, instead: T) -> T:
        self.problems.append(words % name)
        return instead


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float)


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


# --- Writing ----------------------------------------------------------------------


def _written(values: Mapping[str, Any]) -> dict[str, Any]:
    """One server as other programs read it, with our own settings where they say something."""
    if values["transport"] == "stdio":
        entry = {
            "type": "stdio",
            "command": values["command"],
            "args": list(values["arguments"]),
            "env": values["environment"],
        }
    else:
        spelling = "sse" if values["transport"] == "sse" else "http"
        entry = {"type": spelling, "url": values["url"], "headers": values["headers"]}
    settings = {
        "disabled": not values["enabled"],
        "timeout": values["call_seconds"],
        "connectTimeout": values["connect_seconds"],
        "includeTools": re.findall(r"[^\s,]+", values["include"]),
        "excludeTools": re.findall(r"[^\s,]+", values["exclude"]),
        "toolPrefix": values["name_prefix"],
    }
    return {
        name: value
        for name, value in (entry | settings).items()
        if value or name in ("command", "args", "url")
    }
