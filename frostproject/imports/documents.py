"""JSON and text of other programs, read so that every value can be stored. Pure."""

import json
from typing import Any, NoReturn

from django.utils.translation import gettext as _

from frostproject.imports.plan import ImportRefused
from tools.text.storable import make_storable


def load_text(data: bytes, name: str) -> str:
    """``data`` as UTF-8. Raises :class:`ImportRefused`."""
    try:
        return str(make_storable(data.decode("utf-8-sig")))
    except UnicodeDecodeError as error:
        raise ImportRefused(_("%s is not UTF-8 text.") % name) from error


def load_json(data: bytes, name: str) -> Any:
    """The document in ``data``. Raises :class:`ImportRefused`, and RecursionError."""
    text = load_text(data, name)
    try:
        return make_storable(json.loads(text, parse_constant=_refuse_constant))
    except ValueError as error:
        raise ImportRefused(
            _("%(file)s is not JSON: %(reason)s."), file=name, reason=error
        ) from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(_("it holds %s, which is no number") % name)


def load_column(row: dict[str, Any], column: str) -> Any:
    """The JSON that a column of a database holds as text; None where it is empty."""
    value = row.get(column)
    return load_json(value.encode(), column) if isinstance(value, str) and value.strip() else None


def as_object(value: object, *path: str) -> dict[str, Any]:
    """``value``, or what is in it at ``path``, where it is an object; an empty one for anything
    else."""
    for name in path:
        value = as_object(value).get(name)
    return value if isinstance(value, dict) else {}


def as_objects(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def as_text(value: object) -> str:
    """``value`` where it is a text or a whole number; "" for anything else."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return str(value).strip() if isinstance(value, str) or is_number else ""


def as_texts(value: object) -> list[str]:
    """The texts in a list that say something, or the one text that stands in its place."""
    parts = value if isinstance(value, list) else [value]
    return [text for part in parts if (text := as_text(part))]
