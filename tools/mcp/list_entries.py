"""Entries of a server's list of tools, each judged for itself: the library refuses a whole list for
one of them."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from django.utils.translation import gettext as _
from mcp_types.methods import SERVER_RESULTS
from pydantic import TypeAdapter, ValidationError

from tools.mcp.listing import ENTRY_ERROR_KEY
from tools.text.untrusted import clean_line

WORDS_LIMIT = 200
_ANY = {"type": "object"}


class ToolListSanitizer:
    """Makes lists of tools sound before the library reads them. ``version`` is the protocol's,
    known once there is a session."""

    version = ""

    def mend(self, answer: Any) -> None:
        """Change ``answer``, the result of a request, where it is a list of tools with entries that
        are none.

        A schema that is missing is one that takes anything. Any other fault is put in
        the place of its entry, for :func:`tools.mcp.specs.build_catalogue` to leave out.
        """
        kind = SERVER_RESULTS.get(("tools/list", self.version))
        if (
            kind is None
            or not isinstance(answer, dict)
            or not isinstance(answer.get("tools"), list)
        ):
            return
        entries = [_with_schema(entry) for entry in answer["tools"]]
        for place, problem in _problems(kind, entries).items():
            entries[place] = _marked(entries[place], problem)
        answer["tools"] = entries


def _with_schema(entry: Any) -> Any:
    if not isinstance(entry, dict):
        return entry
    schema = entry.get("inputSchema") or _ANY
    return {**entry, "inputSchema": {**_ANY, **schema} if isinstance(schema, dict) else schema}


def _problems(kind: Any, entries: list[Any]) -> dict[int, str]:
    """What is wrong with each entry that the library would refuse, by its place."""
    try:
        _list_of(kind).validate_python(entries, by_name=False)
    except ValidationError as error:
        found: dict[int, str] = {}
        for one in error.errors(include_url=False, include_context=False, include_input=False):
            place, *path = one["loc"]
            found.setdefault(
                int(place), ": ".join(filter(None, [".".join(map(str, path)), one["msg"]]))
            )
        return found
    return {}


@cache
def _list_of(kind: Any) -> TypeAdapter[list[Any]]:
    entries: Any = kind.model_fields["tools"].annotation
    return TypeAdapter(entries)


def _marked(entry: Any, problem: str) -> dict[str, Any]:
    name = entry.get("name") if isinstance(entry, Mapping) else None
    reason = _("Its entry is not what the protocol says: %s") % clean_line(problem, WORDS_LIMIT)
    return {
        "name": name if isinstance(name, str) else "",
        "inputSchema": _ANY,
        "_meta": {ENTRY_ERROR_KEY: reason},
    }
