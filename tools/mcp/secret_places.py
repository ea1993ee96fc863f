"""``{secret:NAME}`` in the settings of an MCP server, and the reasons against using the secret
there. Pure."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import quote

from django.utils.translation import gettext as _

from tools.secrets.hosts import PROGRAM, SecretHosts, format_origin
from tools.secrets.masked import SecretValues, secret_refusal_message

_PLACE = re.compile(r"\{secret:([A-Za-z][A-Za-z0-9_]*)\}")
_STDIO = "stdio"


def find_secret_names(texts: Iterable[str]) -> list[str]:
    """The names of the secrets that ``texts`` name, each once."""
    return list(dict.fromkeys(name for text in texts for name in _PLACE.findall(text)))


def has_secret_placeholders(values: Mapping[str, Any]) -> bool:
    """Whether anything in ``values``, the fields of a server, names a secret at all."""
    parts = (
        values["arguments"] or (),
        (values["environment"] or {}).values(),
        (values["headers"] or {}).values(),
    )
    return bool(find_secret_names([values["url"], *(text for part in parts for text in part)]))


def check_secret_placeholders(
    values: Mapping[str, Any], secrets: SecretValues
) -> dict[str, list[str]]:
    """Why a server with these ``values`` may not get the secrets that it names: translated
    sentences, by field.

    ``values`` are fields of a server by name. Only those that its transport uses are checked:
    arguments and variables of a program, the URL and headers of an address.
    """
    is_program = values["transport"] == _STDIO
    texts: dict[str, list[str]] = {
        "arguments": list(values["arguments"] or ()) if is_program else [],
        "environment": list((values["environment"] or {}).values()) if is_program else [],
        "url": [] if is_program else [values["url"]],
        "headers": [] if is_program else list((values["headers"] or {}).values()),
    }
    found = {
        field: [_problem(name, values, secrets) for name in find_secret_names(part)]
        for field, part in texts.items()
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
    return _PLACE.sub(lambda place: encode(secrets.values[place[1]]), text)


def insert_url_secrets(url: str, secrets: SecretValues) -> str:
    """The same of an address, where a secret is always one part of a path or one value."""
    return insert_secrets(url, secrets, lambda value: quote(value, safe=""))
