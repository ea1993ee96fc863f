"""From a text with MCP servers to rows: which rows it would create, and what prevents that. Nothing
is saved here."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from tools.mcp.admin.form import changes_command, find_moved_secrets, server_field_label
from tools.mcp.config_json import ServerConfig, find_placeholders
from tools.mcp.settings import (
    ENCRYPTED_FIELDS,
    STORED,
    check_server,
    decrypt_field,
    server_values,
)
from tools.models import McpServer
from tools.secrets.masked import (
    MASK,
    export_arguments,
    export_placeholder,
    export_url,
    mask_command,
    mask_url,
)

PLAIN = ("transport", "command", "arguments", "url", "enabled")
SETTINGS = ("connect_seconds", "call_seconds", "include", "exclude", "name_prefix")
SHOWN = (*PLAIN, *SETTINGS, *ENCRYPTED_FIELDS)
HIDDEN = (*STORED, "url")
"""Of which the new value may look as the old one did."""


class ImportAction(StrEnum):
    MAKE = "make"
    REPLACE = "replace"
    SKIP = "skip"
    NOTHING = "nothing"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class ImportRights:
    """What the person who imports may do; ``changes`` is asked about each row that is there."""

    runs_commands: bool
    changes: Callable[[McpServer], bool]


@dataclass(frozen=True, slots=True)
class PlannedServer:
    """The plan for one server of the text: ``row`` as it would be saved, and ``differences``, what
    is new in it."""

    name: str
    action: ImportAction
    row: McpServer
    differences: list[tuple[str, str, str]]
    problems: list[str]
    notes: list[str]

    @property
    def is_saved(self) -> bool:
        return self.action in (ImportAction.MAKE, ImportAction.REPLACE)


def plan_import(
    configs: Iterable[ServerConfig], rights: ImportRights, *, replaces: bool
) -> list[PlannedServer]:
    """What importing ``configs`` would do. Those whose name is taken are skipped, or replace what
    is there."""
    configs = list(configs)
    known = {
        row.name: row
        for row in McpServer.objects.filter(name__in=[config.name for config in configs])
    }
    return [_planned(config, known.get(config.name), rights, replaces) for config in configs]


def _planned(
    config: ServerConfig, before: McpServer | None, rights: ImportRights, replaces: bool
) -> PlannedServer:
    if config.problems:
        return PlannedServer(
            config.name,
            ImportAction.REFUSE,
            McpServer(name=config.name),
            [],
            list(config.problems),
            [],
        )
    if before is not None and not replaces:
        return PlannedServer(
            config.name,
            ImportAction.SKIP,
            before,
            [],
            [],
            [_("A server of this name is there already and stays as it is.")],
        )
    row = McpServer(name=config.name) if before is None else McpServer.objects.get(pk=before.pk)
    values, dropped = (config.values, []) if before is None else _kept(config.values, before)
    notes = [*config.notes, *_filled_in(row, values)]
    problems = [*_problems(row, before, rights), *dropped]
    differences = _differences(before, row)
    if problems:
        action = ImportAction.REFUSE
    elif before is None:
        action = ImportAction.MAKE
    else:
        action = ImportAction.REPLACE if differences else ImportAction.NOTHING
    return PlannedServer(config.name, action, row, differences, problems, notes)


def _kept(values: Mapping[str, Any], before: McpServer) -> tuple[dict[str, Any], list[str]]:
    """``values`` with what is stored wherever they have the placeholder that an export puts in its
    place.

    Not where they lead elsewhere: that is a fault, for values that are only stored are not taken
    along.
    """
    found, problems = dict(values), []
    if found["url"] == export_url(before.url):
        found["url"] = before.url
    if found["command"] == before.command and (arguments := decrypt_field(before, "arguments")):
        handed = [
            export_arguments(before.command, arguments, names_package=is_named)
            for is_named in (True, False)
        ]
        found["arguments"] = arguments if found["arguments"] in handed else found["arguments"]
    reasons = find_moved_secrets(before, found["url"], found["command"], found["arguments"])
    for name in ENCRYPTED_FIELDS:
        stored = decrypt_field(before, name) or {}
        kept = [
            key
            for key, given in found[name].items()
            if key in stored and given == export_placeholder(key)
        ]
        if kept and name in reasons:
            problems.append(f"{server_field_label(name)}: {reasons[name] % ', '.join(kept)}")
        else:
            found[name] = found[name] | {key: stored[key] for key in kept}
    return found, problems


def _filled_in(row: McpServer, values: dict[str, Any]) -> list[str]:
    """Give ``row`` its ``values``; returns what the person should know about that."""
    for name, value in values.items():
        if name not in STORED or value != decrypt_field(row, name):
            setattr(row, name, value)
    missing = find_placeholders(values)
    if not missing:
        return []
    row.enabled = False
    words = _(
        "Placeholders stay as they are written, and the server is imported switched off. Enter on "
        "its page what belongs there: %s"
    )
    return [words % ", ".join(missing)]


def _problems(row: McpServer, before: McpServer | None, rights: ImportRights) -> list[str]:
    if before is not None and not rights.changes(before):
        return [_("You may not change the server of this name.")]
    if changes_command(before, row) and not rights.runs_commands:
        return [
            _(
                "It is a program. Only superusers with the permission to run commands may set up "
                "one."
            )
        ]
    found: dict[str, list[str]] = {}
    try:
        row.full_clean(exclude=[f"sealed_{name}" for name in STORED])
    except ValidationError as error:
        found = error.message_dict
    for name, lines in check_server(server_values(row)).items():
        found[name] = [*found.get(name, []), *lines]
    return [
        f"{server_field_label(name)}: {line}" for name, lines in found.items() for line in lines
    ]


def _differences(before: McpServer | None, after: McpServer) -> list[tuple[str, str, str]]:
    """Each field that is not as it was: what it is called, and both values without keys."""
    old, found = before or McpServer(), []
    for name in SHOWN:
        if _value(old, name) != _value(after, name):
            was, now = format_server_field(old, name), format_server_field(after, name)
            if now == was and name in HIDDEN:
                now = _("%s (new values)") % now
            found.append((server_field_label(name), was, now))
    return found


def _value(row: McpServer, name: str) -> Any:
    return decrypt_field(row, name) if name in STORED else getattr(row, name)


def format_server_field(row: McpServer, name: str) -> str:
    """One field of ``row`` in words, without any key in it; "-" for an empty one."""
    value = _value(row, name)
    if name in ENCRYPTED_FIELDS:
        return (
            ", ".join(f"{key} = {MASK}" for key in value) if value else "-" if value == {} else MASK
        )
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if name == "transport":
        return row.get_transport_display()
    if name == "url":
        return mask_url(value) or "-"
    if name == "arguments":
        return MASK if value is None else mask_command("", value).strip() or "-"
    return " ".join(str(value).split()) or "-"
