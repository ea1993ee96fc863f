"""What the chats' own pages say of the timing gate, and whether a continuation is active."""

from collections.abc import Sequence
from dataclasses import dataclass

from agent.models import ChatSession


@dataclass(frozen=True, slots=True)
class ChatGateSetting:
    """``is_on``: the chat's own word, None where it leaves that to the bot's row."""

    is_on: bool | None = None
    is_continuing: bool = False
    """Whether the planner was at work when the last run ended: then the next one needs no gate."""


def set_continuing(chats: Sequence[tuple[int, bool]]) -> list[None]:
    """For each (session, whether): keep that a continuation is active, or that it is not."""
    for session_pk, is_continuing in chats:
        ChatSession.objects.filter(pk=session_pk).update(is_continuing=is_continuing)
    return [None] * len(chats)
