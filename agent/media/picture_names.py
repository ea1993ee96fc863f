"""How pictures of a chat are called by tools and models. Pure.

``tool_result:<call_id>:<n>`` is a picture of a tool's result, ``message:<message_id>:<n>``
one of a message, and ``message:<message_id>:<2.1>:<n>`` one of a message forwarded in
it, by the numbers that lead there. Numbers begin at 1.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

OF_RESULT, OF_MESSAGE = "tool_result", "message"
_PATH = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})*")


@dataclass(frozen=True, slots=True)
class PictureName:
    """A name, taken apart. ``owner`` is the id of a call or of a message."""

    kind: str
    owner: str
    path: tuple[int, ...]
    place: int


def build_picture_name(message_id: str, path: Sequence[int], place: int) -> str:
    """The name of the picture at ``place``, from 1, in a message or in one that ``path`` leads to
    from there."""
    middle = [".".join(map(str, path))] if path else []
    return ":".join([OF_MESSAGE, message_id, *middle, str(place)])


def parse_picture_name(name: str) -> PictureName | None:
    """``name`` taken apart; None for what is no name."""
    kind, _, rest = name.strip().partition(":")
    owner, _, place = rest.rpartition(":")
    if (
        kind not in (OF_RESULT, OF_MESSAGE)
        or not owner
        or not re.fullmatch(r"[0-9]{1,6}", place)
        or int(place) < 1
    ):
        return None
    message_id, _, path = owner.rpartition(":")
    if kind == OF_MESSAGE and message_id and _PATH.fullmatch(path):
        return PictureName(kind, message_id, tuple(map(int, path.split("."))), int(place))
    return PictureName(kind, owner, (), int(place))
