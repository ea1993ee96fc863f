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
    """The document in ``data``. Raises :class:`ImportRefused`."""
    try:
        return make_storable(json.loads(load_text(data, name), parse_constant=_refuse_constant))
    except RecursionError as error:
        raise ImportRefused(_("%s is nested too deeply.") % name) from error
    except ImportRefused:
        raise
    except ValueError as error:
        words = _("%(file)s is not JSON: %(reason)s.")
        raise ImportRefused(words % {"file": name, "reason": error}) from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(_("it holds %s, which is no number") % name)


def load_column(value: object, name: str) -> Any:
    """The JSON that a column of a database holds as text; None where it is empty."""
    return load_json(value.encode(), name) if isinstance(value, str) and value.strip() else None
