"""A plugin's configuration as its row keeps it: JSON in which each secret is sealed. No I/O.

A secret of any JSON type is stored as ``{"$sealed": "…"}``; the plugin gets it decrypted, and no
page shows it. Values that a later version of the plugin does not declare stay in the row, in case
the next version does, and the plugin does not get them.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tools.secrets.encryption import DecryptionError, decrypt, encrypt

SEALED = "$sealed"

Schema = Mapping[str, Any]
"""The manifest's ``config_schema``, whatever stands there."""


def config_properties(schema: Any) -> dict[str, Any]:
    """The schema of each value by name; {} where nothing can be configured."""
    found = schema.get("properties") if isinstance(schema, Mapping) else None
    return {str(name): part for name, part in found.items()} if isinstance(found, Mapping) else {}


def is_secret_schema(part: Any) -> bool:
    """Whether a value is a secret, or has one in it: marked ``writeOnly`` or with the format
    ``password``."""
    if isinstance(part, Mapping):
        marked = part.get("writeOnly") is True or part.get("format") == "password"
        return marked or any(is_secret_schema(inner) for inner in part.values())
    return isinstance(part, list) and any(is_secret_schema(inner) for inner in part)


def is_encrypted(value: Any) -> bool:
    return (
        isinstance(value, Mapping) and value.keys() == {SEALED} and isinstance(value[SEALED], str)
    )


def encrypt_config(config: Mapping[str, Any], schema: Any) -> dict[str, Any]:
    """``config`` as a row may keep it: what ``schema`` calls secret is sealed, unless it is
    already."""
    secret = {name for name, part in config_properties(schema).items() if is_secret_schema(part)}
    return {
        name: {SEALED: encrypt(json.dumps(value))}
        if name in secret and not is_encrypted(value)
        else value
        for name, value in config.items()
    }


def decrypt_config(config: Any, schema: Any) -> dict[str, Any]:
    """The configuration as the plugin gets it: the fields of ``schema``, with defaults for missing
    values.

    Raises :class:`tools.secrets.encryption.DecryptionError` when a secret has to be entered again.
    """
    parts = config_properties(schema)
    defaults = {
        name: part["default"]
        for name, part in parts.items()
        if isinstance(part, Mapping) and "default" in part
    }
    return defaults | {name: decrypt_value(value) for name, value in _known(config, parts)}


def undecryptable_names(config: Any, schema: Any) -> list[str]:
    """The names of the secrets that have to be entered again."""
    return [
        name
        for name, value in _known(config, config_properties(schema))
        if is_encrypted(value) and not _opens(value)
    ]


def decrypt_value(value: Any) -> Any:
    """A kept value in clear. Raises :class:`tools.secrets.encryption.DecryptionError`."""
    return json.loads(decrypt(value[SEALED])) if is_encrypted(value) else value


def _opens(value: Any) -> bool:
    try:
        decrypt_value(value)
    except DecryptionError:
        return False
    return True


def _known(config: Any, parts: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    kept = config if isinstance(config, Mapping) else {}
    return ((name, kept[name]) for name in parts if name in kept)
