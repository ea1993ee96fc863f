"""``$ref`` in an OpenAPI document: only to places in the document itself. Pure."""

from typing import Any
from urllib.parse import unquote

from django.utils.translation import gettext

MAX_STEPS = 20


class BrokenReferenceError(Exception):
    """What a reference names is not there, or not in the document. ``str(error)`` is for the
    operator."""


class ReferenceResolver:
    """The places of one document."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    def followed(self, part: Any) -> Any:
        """``part``, or what it refers to at the end of all references. Raises
        :class:`BrokenReferenceError`."""
        for _ in range(MAX_STEPS):
            if not (isinstance(part, dict) and "$ref" in part):
                return part
            part = self.at(part["$ref"])
        raise BrokenReferenceError(gettext("A reference leads back to itself."))

    def at(self, reference: Any) -> Any:
        """What stands where ``reference`` points. Raises :class:`BrokenReferenceError`."""
        shown = {"reference": str(reference)[:200]}
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise BrokenReferenceError(
                gettext("“%(reference)s” lies outside of the document.") % shown
            )
        part: Any = self._document
        for step in unquote(reference).removeprefix("#").split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if (
                isinstance(part, list)
                and name.isdecimal()
                and len(name) < 9
                and int(name) < len(part)
            ):
                part = part[int(name)]
            elif isinstance(part, dict) and name in part:
                part = part[name]
            else:
                raise BrokenReferenceError(
                    gettext("“%(reference)s” is not in the document.") % shown
                )
        return part
