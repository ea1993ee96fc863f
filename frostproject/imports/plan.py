"""What a file or folder of another program holds, as rows that this one could make. Pure.

A plan goes through JSON, so that a page can carry it from the preview to the making.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class ImportRefused(ValueError):  # noqa: N818 - it says what is wrong
    """Nothing is taken from this file or folder; ``str`` of it is a translated sentence."""


class Kind(StrEnum):
    """What a row would be."""

    ENDPOINT = "endpoint"
    PERSONA = "persona"
    MANNERS = "manners"
    NOTE = "note"
    SERVER = "server"
    TOOLS = "tools"


@dataclass(frozen=True, slots=True)
class Wanted:
    """One row, or all the tools of one document. ``values`` are fields of the row, but for a server
    its object in ``mcpServers``, and for tools the OpenAPI document."""

    kind: Kind
    name: str
    values: Mapping[str, Any]
    by_account: bool = False
    """Whether one is made for each account that is known here."""


@dataclass(slots=True)
class Found:
    """Everything that can come along, and ``left``: sentences about what cannot."""

    rows: list[Wanted] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def add(self, kind: Kind, name: str, /, *, by_account: bool = False, **values: Any) -> None:
        self.rows.append(Wanted(kind, name, values, by_account))

    def leave(self, what: str, why: str) -> None:
        """``what`` stays behind, and ``why``."""
        self.left.append(f"{what}: {why}")

    def take(self, other: "Found") -> None:
        self.rows += other.rows
        self.left += other.left


def as_object(value: object) -> dict[str, Any]:
    """``value`` where it is an object; an empty one for anything else."""
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
