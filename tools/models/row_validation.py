"""What is wrong with a value of a tool's row: translated lines for the person who wrote it.
Pure."""

import re
from collections.abc import Collection
from typing import Any

from django.utils.translation import gettext

_SEPARATORS = re.compile(r"[\s,;，；、]+")
_ID = re.compile(r"[\w.@-]{1,64}(:[\w.@-]{1,64})*", re.ASCII)


def parse_ids(text: str) -> list[str]:
    """The ids of a list that is written with spaces, line breaks or commas of any kind, each once,
    in order."""
    return list(dict.fromkeys(part for part in _SEPARATORS.split(text) if part))


def check_ids(text: str) -> list[str]:
    """A line for each entry that cannot be an id; ``platform:id`` is one as well."""
    return [
        gettext("“%(id)s” is not an id.") % {"id": entry[:64]}
        for entry in parse_ids(text)
        if not _ID.fullmatch(entry)
    ]


def check_descriptions(value: Any, parameter_names: Collection[str] | None) -> list[str]:
    """What keeps ``value`` from describing these parameters: it must be an object of texts. None:
    any name is known."""
    if not isinstance(value, dict):
        return [gettext("A JSON object is wanted: the name of each argument and its description.")]
    problems = []
    for name, text in value.items():
        if parameter_names is not None and name not in parameter_names:
            known = ", ".join(parameter_names) or gettext("none")
            problems.append(
                gettext("“%(name)s” is not an argument of this tool. Known: %(names)s.")
                % {"name": name, "names": known}
            )
        elif not isinstance(text, str):
            problems.append(gettext("The description of “%(name)s” is not text.") % {"name": name})
    return problems
