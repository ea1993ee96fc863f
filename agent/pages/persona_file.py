"""A persona as a file, out and in. Which endpoints it asks and where it answers are matters of the
installation and stay there. Pure, but for the row that is written."""

import json
from typing import Any

from agent.models import Persona

MARK, VERSION = "frostagent_persona", 1
FIELDS = tuple(name for name in Persona.tracked.fields if name not in ("name", "enabled"))


def write_persona(row: Persona) -> str:
    """``row`` as JSON, with what it says itself alone."""
    said = {name: getattr(row, name) for name in ("name", *FIELDS)}
    kept = {name: value for name, value in said.items() if value not in (None, "", [])}
    return json.dumps({MARK: VERSION, **kept}, ensure_ascii=False, indent=2)


def read_persona(document: dict[str, Any]) -> dict[str, Any]:
    """The fields in such a ``document``; ValueError where one cannot be what it says."""
    values = {name: document[name] for name in FIELDS if name in document}
    for name, value in values.items():
        if not (_are_examples(value) if name == "examples" else not isinstance(value, dict | list)):
            raise ValueError(name)
    return values


def _are_examples(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(one, str) for one in pair)
        for pair in value
    )
