"""The reasons why an MCP server of the table cannot be used, as far as they are visible without
connecting."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from tools.fetch.allow_list import AllowList
from tools.fetch.request import check_headers
from tools.fetch.urls import check_url
from tools.mcp.commands import check_command, check_environment, check_program_exists
from tools.mcp.secret_places import check_secret_placeholders, has_secret_placeholders
from tools.models import McpServer
from tools.secrets.encryption import DecryptionError
from tools.secrets.store import load_secrets

ENCRYPTED_FIELDS = ("headers", "environment")
"""Never shown again."""
STORED = (*ENCRYPTED_FIELDS, "arguments")
"""Under seal in the table, so that they may be unreadable."""
CHECKED_FIELDS = ("enabled", "transport", "command", "url")


def check_server(
    values: Mapping[str, Any], *, has_new_command: bool = True
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
    if values["enabled"] and has_secret_placeholders(values):
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


def server_values(row: McpServer) -> dict[str, Any]:
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
