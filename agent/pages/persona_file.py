"""A persona as a file, out and in, its picture as a data URL. Which endpoints it asks and where it
answers are matters of the installation and stay there. Pure, but for the row that is written."""

import base64
import json
from typing import Any

from agent.models import Persona, PersonaPicture

MARK, VERSION = "frostagent_persona", 1
PICTURE, PNG_URL = "picture", "data:image/png;base64,"
FIELDS = tuple(name for name in Persona.tracked.fields if name not in ("name", "enabled"))


def write_persona(row: Persona) -> str:
    """``row`` as JSON, with what it says itself alone."""
    said = {name: getattr(row, name) for name in ("name", *FIELDS)}
    content = load_picture(row)
    said |= {PICTURE: write_picture(content) if content else ""}
    kept = {name: value for name, value in said.items() if value not in (None, "", [])}
    return json.dumps({MARK: VERSION, **kept}, ensure_ascii=False, indent=2)


def read_persona(document: dict[str, Any]) -> dict[str, Any]:
    """The fields in such a ``document``; ValueError where one cannot be what it says."""
    values = {name: document[name] for name in FIELDS if name in document}
    for name, value in values.items():
        if not (_are_examples(value) if name == "examples" else not isinstance(value, dict | list)):
            raise ValueError(name)
    return values


def load_picture(row: Persona) -> bytes:
    """The picture of the stored ``row``; b"" where it has none."""
    found = PersonaPicture.objects.filter(persona=row).values_list("content", flat=True).first()
    return bytes(found or b"")


def write_picture(content: bytes) -> str:
    """A PNG as text."""
    return PNG_URL + base64.b64encode(content).decode()


def read_picture(value: object) -> bytes:
    """What a data URL holds, of whatever type it says that it is; ValueError for anything else."""
    head, _comma, text = value.partition(",") if isinstance(value, str) else ("", "", "")
    if not (head.startswith("data:image/") and head.endswith(";base64")):
        raise ValueError(PICTURE)
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise ValueError(PICTURE) from error


def _are_examples(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(one, str) for one in pair)
        for pair in value
    )
