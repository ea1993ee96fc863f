"""What a note may hold, and who may see it: the one place that decides it. Pure.

A note has exactly one audience and a viewer has a few. A note is shown where the two
meet, which every query asks for by equality.
"""

import json
from dataclasses import dataclass
from typing import Literal

#: Characters of a note, tags of a note, characters of a tag.
TEXT_LIMIT, TAG_COUNT, TAG_LIMIT = 2_000, 8, 32

AudienceKind = Literal["chat", "person", "everyone"]


@dataclass(frozen=True, slots=True)
class NoteViewer:
    """One chat of one account, and the person whose message is being answered there."""

    platform: str
    account: str
    chat: str
    """``group:<id>`` or ``private:<id>``."""
    person: str

    @property
    def is_private(self) -> bool:
        return self.chat.startswith("private:")

    @property
    def peer(self) -> str:
        """The id of the group, or of the one person of a private chat."""
        return self.chat.partition(":")[2]

    @property
    def audiences(self) -> tuple[str, ...]:
        """Every audience this viewer belongs to: the notes it may see are those of one of them.

        Notes for a person alone are seen in the private chat with that person, and a private chat
        has one peer, whatever sender it claims.
        """
        own = (
            build_audience("chat", self.platform, self.account, self.chat),
            build_audience("everyone", self.platform, self.account),
            build_audience("everyone"),
        )
        return (
            (*own, build_audience("person", self.platform, self.account, self.peer))
            if self.is_private
            else own
        )


def build_audience(
    kind: AudienceKind, platform: str = "", account: str = "", name: str = ""
) -> str:
    """The audience as one text: of a chat (``name``: its key), of a person (an id), of an account's
    chats, or of all.

    JSON, so that no id, whatever signs it holds, makes one audience look like another.
    """
    return json.dumps([kind, platform, account, name], ensure_ascii=True, separators=(",", ":"))


def note_audience(visibility: str, *, platform: str, account: str, chat: str, owner_id: str) -> str:
    """The audience of a note with these fields."""
    match visibility:
        case "everyone":
            return (
                build_audience("everyone", platform, account)
                if account
                else build_audience("everyone")
            )
        case "person":
            return build_audience("person", platform, account, owner_id)
        case _:
            return build_audience("chat", platform, account, chat)
