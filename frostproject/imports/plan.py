"""What a file or folder of another program holds, as rows that this one could make. Pure.

A plan goes through JSON, so that a page can carry it from the preview to the making.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from django.utils.translation import gettext as _

from tools.text.readable import shorten_text

#: Characters of the names of what stays behind of one part.
MOST_NAMES = 1_000


class ImportRefused(ValueError):  # noqa: N818 - it says what is wrong
    """Nothing is taken from this file or folder; ``str`` of it is a translated sentence."""

    def __init__(self, words: object, **values: object) -> None:
        super().__init__(str(words) % values if values else str(words))


#: What a row would be, in the order of making: its model.
Kind = StrEnum(
    "Kind",
    {
        "ENDPOINT": "agent.modelendpoint",
        "PERSONA": "agent.persona",
        "MANNERS": "agent.manners",
        "NOTE": "agent.note",
        "SERVER": "tools.mcpserver",
        "TOOLS": "tools.httptool",
    },
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """One row, or all the tools of one document. ``values`` are fields of the row, but for a server
    its object in ``mcpServers``, and for tools the OpenAPI document. ``by_account`` makes one for
    each account that is known here."""

    kind: Kind
    name: str
    values: Mapping[str, Any]
    by_account: bool = False


@dataclass(slots=True)
class Found:
    """Everything that can come along, and ``left``: sentences about what cannot."""

    rows: list[Wanted] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def add(self, kind: Kind, name: str, /, *, by_account: bool = False, **values: Any) -> None:
        self.rows.append(Wanted(kind, name, values, by_account))

    def leave(self, what: str, why: object, *values: str) -> None:
        """``what`` stays behind, and ``why``, with ``values`` in it."""
        self.left.append(f"{what}: {str(why) % values if values else why}")

    def leave_rest(self, where: str, given: Mapping[str, Any], read: Container[str]) -> None:
        """Names what ``given`` says beside what is ``read``, and none of its values."""
        names = sorted(name for name, value in given.items() if value and name not in read)
        if names:
            what = shorten_text(", ".join(names), MOST_NAMES)
            words = _("settings that have no counterpart here")
            self.leave(f"{where}: {what}" if where else what, words)

    def allow_chats(self, program: str, chats: list[str]) -> None:
        """Of each account, nobody is answered but in ``chats``."""
        for name, who, where in (("others", "nobody", []), ("allowed", "everybody", chats)):
            own = {"answered": who} | ({"chats": "\n".join(where)} if where else {})
            self.add(Kind.MANNERS, f"{program}: {name}", by_account=True, **own)
