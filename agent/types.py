"""The agent's own words for what comes in and goes out: frozen, without I/O.

The layer above (``onebot``) turns wire events into :class:`IncomingMessage` and
implements :class:`Outbox`; nothing here knows frames, segments or sockets.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

from agent.models import Message

Kind = Literal["group", "private"]
PartType = Literal["plain", "image", "record", "video", "file", "mention_user", "quote"]


@dataclass(frozen=True, slots=True)
class ChatAddress:
    """Where a chat is: one group or one private peer of one account on one platform."""

    account: str
    kind: Kind
    peer_id: str
    platform: str = "onebot"

    @property
    def key(self) -> str:
        return f"{self.kind}:{self.peer_id}"

    @property
    def address(self) -> str:
        """``platform_id:message_type:session_id``."""
        return f"{self.platform}:{self.key}"


@dataclass(frozen=True, slots=True)
class IncomingMessage:
    """One message as the client reported it, every id kept as exact text."""

    chat: ChatAddress
    sender_id: str
    sender_name: str
    text: str
    """The words as the model will read them, the bot's own mention dropped."""
    segments: list[dict[str, Any]]
    message_id: str = ""
    """The client's id, "" where it is missing or stands for nothing (0, -1)."""
    spoken_text: str = ""
    """The joined text segments alone: what wake words are looked for in."""
    mentions_bot: bool = False
    quoted_id: str = ""
    sender_role: str = ""
    """``owner``, ``admin`` or ``member`` of the group, "" where the client does not say."""
    has_pictures: bool = False
    from_own_account: bool = False
    from_other_bot: bool = False
    is_notice: bool = False
    temp_group_id: str = ""
    chat_title: str = ""
    happened_at: datetime | None = None
    """The client's time, None where it gave none that can be meant."""
    raw: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of an outgoing message, in the words of the ``send_message`` tool."""

    type: PartType
    text: str = ""
    path: str = ""
    url: str = ""
    mention_user_id: str = ""
    message_id: str = ""


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of a message that was handed to a client."""

    state: Message.State
    """``delivered``, ``failed`` (the client said no) or ``unknown`` (no answer came)."""
    message_id: str = ""
    error: str = ""


class Outbox(Protocol):
    """The way out to the chats, implemented by the layer that owns the sockets."""

    def compose(self, parts: Sequence[Part]) -> list[dict[str, Any]]:
        """``parts`` as the platform's message segments. Pure."""
        ...

    def owners(self, chat: ChatAddress) -> frozenset[str]:
        """Ids of the people that the account of ``chat`` belongs to, as of the last :meth:`reload`."""
        ...

    def reload(self) -> None:
        """Read again what the operator decided of the accounts. Runs in the database thread."""
        ...

    def is_connected(self, chat: ChatAddress) -> bool:
        """Whether a message for ``chat`` could be written to a socket now."""
        ...

    async def wait_connected(self, chat: ChatAddress, seconds: float) -> bool:
        """Wait at most ``seconds`` for the account of ``chat``; True once it is connected."""
        ...

    async def deliver(self, chat: ChatAddress, segments: list[dict[str, Any]], *, echo: str, temp_group_id: str = "") -> Delivery:
        """Write the message and wait for the client's answer. Never raises for what a client does.

        After cancellation the message may have been written: its outcome is unknown.
        """
        ...


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The bounds of one run."""

    model_calls: int
    seconds: float
    context_messages: int
    context_chars: int


@dataclass(slots=True)
class RunResult:
    """How a run ended: its final text, "" when the model had nothing to say."""

    final_text: str
    error: str = ""
    notes: list[str] = field(default_factory=list)
