"""The media of a message, as the client names them, before anything is fetched. Pure."""

from dataclasses import dataclass
from typing import Literal

from agent.domain.errors import AgentError

MediaKind = Literal["image", "record", "video", "file"]
MediaOrigin = Literal["message", "quoted", "forwarded"]


@dataclass(frozen=True, slots=True)
class MediaRef:
    """One picture, voice, video or file of a message.

    Nothing in it is to be believed: the client may name any address, type and size.
    Paths on the client's machine are left out, for nothing here may be opened as one.
    """

    kind: MediaKind
    url: str = ""
    """An ``http`` or ``https`` address, "" where the client gave none."""
    data: str = ""
    """The content itself as Base64, "" in most messages."""
    sha256: str = ""
    """The hash of our own copy, where the content came inside a frame and was kept at once."""
    file: str = ""
    """The client's name for it, which ``get_image`` and ``get_record`` take."""
    file_id: str = ""
    busid: str = ""
    """The storage area of a group file, which go-cqhttp requires."""
    file_hash: str = ""
    """What Lagrange requires for a file in a private chat."""
    name: str = ""
    """What people call it: the name of a file."""
    size: int = 0
    """Bytes, as the client claims; 0 where it does not say."""
    place: int = 0
    """Its position among those of its kind in the message it is in."""
    message_id: str = ""
    """The client's id of the message it is in, "" when it has none."""
    origin: MediaOrigin = "message"
    """Whether it is in the message itself, in the one that is quoted, or in a forwarded one."""


class MediaUnavailable(AgentError):  # noqa: N818 - the word says what happened
    """Something a message holds cannot be had; the text says why, in words that can be
    translated."""
