"""What a client can be told to do besides sending messages, and what is known of a group's ranks;
implemented by the layer that owns the sockets (``onebot/gateway/client_actions.py``).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from agent.domain.types import ChatAddress

GroupRole = Literal["owner", "admin", "member"]
RANKS: Mapping[str, int] = {"": 0, "member": 1, "admin": 2, "owner": 3}

#: Time for a client to carry out an act, and to say what it knows, in seconds.
ACT_SECONDS, ASK_SECONDS = 20.0, 3.0


@dataclass(frozen=True, slots=True)
class ActionOutcome:
    """What came of one action. ``is_unknown``: it may have been carried out, and is not repeated.
    ``is_unsupported``: the client does not know it. ``words`` are the client's own, of a failure.
    """

    is_success: bool = False
    is_unknown: bool = False
    is_unsupported: bool = False
    retcode: int = 0
    data: object = None
    words: str = ""


@dataclass(frozen=True, slots=True)
class GroupMember:
    """Somebody in a group, as its client knows him. Names, cards and titles are anyone's words."""

    user_id: str
    role: GroupRole
    name: str = ""
    card: str = ""
    title: str = ""

    @property
    def rank(self) -> int:
        return RANKS[self.role]


class ClientActions(Protocol):
    """Acts of the accounts. Ids are strings everywhere; ``group_id``, ``user_id`` and
    ``message_id`` of parameters go out in the form that clients read."""

    async def perform(
        self,
        chat: ChatAddress,
        action: str,
        params: Mapping[str, object],
        seconds: float = ACT_SECONDS,
        instead: tuple[str, Mapping[str, object]] | None = None,
    ) -> ActionOutcome:
        """Have the account of ``chat`` carry out ``action``, or ``instead`` of one that its client
        does not know. Such an action is not tried again on that connection. Never raises for what a
        client does; after cancellation it may have been carried out."""
        ...

    async def find_member(self, chat: ChatAddress, user_id: str) -> GroupMember | None:
        """A member of the group ``chat``, remembered or asked of the client; None where the client
        knows none, or does not answer in time. Never raises."""
        ...
