"""A plugin's configuration as its row keeps it: JSON in which each secret is sealed. No I/O.

A secret stands there as ``{"$sealed": "…"}``, whatever JSON it is; the plugin is given it
opened, and no page shows it. What a later version of the plugin no longer knows stays
in the row, for the version after it, and is not given to the plugin.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tools.vault import SealBroken, seal, unseal

SEALED = "$sealed"

Schema = Mapping[str, Any]
"""The manifest's ``config_schema``, whatever stands there."""


def properties(schema: Any) -> dict[str, Any]:
    """The schema of each value by name; {} where nothing can be configured."""
    found = schema.get("properties") if isinstance(schema, Mapping) else None
    return {str(name): part for name, part in found.items()} if isinstance(found, Mapping) else {}


def is_secret(part: Any) -> bool:
    """Whether a value is a secret, or has one in it: marked ``writeOnly`` or with the format ``password``."""
    if isinstance(part, Mapping):
        marked = part.get("writeOnly") is True or part.get("format") == "password"
        return marked or any(is_secret(inner) for inner in part.values())
    return isinstance(part, list) and any(is_secret(inner) for inner in part)


def is_sealed(value: Any) -> bool:
    return isinstance(value, Mapping) and value.keys() == {SEALED} and isinstance(value[SEALED], str)


def sealed(config: Mapping[str, Any], schema: Any) -> dict[str, Any]:
    """``config`` as a row may keep it: what ``schema`` calls secret is sealed, unless it is already."""
    secret = {name for name, part in properties(schema).items() if is_secret(part)}
    return {
        name: {SEALED: seal(json.dumps(value))} if name in secret and not is_sealed(value) else value
        for name, value in config.items()
    }


def opened(config: Any, schema: Any) -> dict[str, Any]:
    """The configuration as the plugin is given it: what ``schema`` names, with its defaults for what is not given.

    Raises :class:`tools.vault.SealBroken` when a secret has to be entered anew.
    """
    parts = properties(schema)
    defaults = {name: part["default"] for name, part in parts.items() if isinstance(part, Mapping) and "default" in part}
    return defaults | {name: opened_value(value) for name, value in _known(config, parts)}


def broken(config: Any, schema: Any) -> list[str]:
    """The names of the secrets that have to be entered anew."""
    return [name for name, value in _known(config, properties(schema)) if is_sealed(value) and not _opens(value)]


def opened_value(value: Any) -> Any:
    """A kept value in clear. Raises :class:`tools.vault.SealBroken`."""
    return json.loads(unseal(value[SEALED])) if is_sealed(value) else value


def _opens(value: Any) -> bool:
    try:
        opened_value(value)
    except SealBroken:
        return False
    return True


def _known(config: Any, parts: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    kept = config if isinstance(config, Mapping) else {}
    return ((name, kept[name]) for name in parts if name in kept)
