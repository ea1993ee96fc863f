"""The agent's own words for what comes in and goes out: frozen, without I/O.

The layer above (``onebot``) turns wire events into :class:`IncomingMessage` and
implements :class:`Outbox`; nothing here knows frames, segments or sockets.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Protocol

from agent.domain.errors import AgentError
from agent.domain.manners import ChatManners
from agent.domain.states import MessageState, Pause, PauseReason

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
    index: int = 0
    """Its position among those of its kind in the message it is in."""
    message_id: str = ""
    """The client's id of the message it is in, "" when it has none."""
    origin: MediaOrigin = "message"
    """Whether it is in the message itself, in the one that is quoted, or in a forwarded one."""


class MediaUnavailable(AgentError):  # noqa: N818 - the word says what happened
    """Something a message holds cannot be had; the text says why, in words that can be
    translated."""


ChatKind = Literal["group", "private"]
MediaAudience = Literal["off", "on", "owners"]
PartType = Literal[
    "plain", "image", "record", "video", "file", "mention_user", "quote", "face", "music"
]


@dataclass(frozen=True, slots=True)
class ChatAddress:
    """Where a chat is: one group or one private peer of one account on one platform."""

    account: str
    kind: ChatKind
    peer_id: str
    platform: str = "onebot"
    key: str = field(init=False, repr=False, compare=False)
    """``kind:peer``."""
    address: str = field(init=False, repr=False, compare=False)
    """``platform_id:message_type:session_id``."""
    place: str = field(init=False, repr=False, compare=False)
    """What no other chat has, of no other account: ``platform:account:kind:peer``."""

    def __post_init__(self) -> None:
        key = f"{self.kind}:{self.peer_id}"
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "address", f"{self.platform}:{key}")
        object.__setattr__(self, "place", f"{self.platform}:{self.account}:{key}")


@dataclass(frozen=True, slots=True)
class Mention:
    """Somebody a message mentions, under the ``name`` that the client or the record gives him, ""
    where neither does."""

    user_id: str
    name: str = ""


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
    """The joined text segments alone: the text in which wake words are searched."""
    mentions_bot: bool = False
    mentions: tuple[Mention, ...] = ()
    """The people it mentions, each once; neither the bot's own account nor everybody."""
    quoted_id: str = ""
    sender_role: str = ""
    """``owner``, ``admin`` or ``member`` of the group, "" where the client does not say."""
    media: tuple[MediaRef, ...] = ()
    """The pictures, voice, videos and files in the message itself, as the client names them."""
    media_text: str = ""
    """What was read in them, as it follows the words; "" before that."""
    context_text: str = ""
    """The fenced words of what it quotes and forwards; "" before they were looked for."""
    from_own_account: bool = False
    from_other_bot: bool = False
    is_notice: bool = False
    is_plain: bool = False
    """Whether it is known to hold nothing but words and mentions."""
    is_friend: bool = False
    """Of a private message: whether the client does not say that the sender is none."""
    temp_group_id: str = ""
    chat_title: str = ""
    happened_at: datetime | None = None
    """The client's time, None where it gave none that can be meant."""
    raw: dict[str, Any] | None = None
    header: dict[str, Any] | None = None
    """As ``Message.header``: what the frame before the words says of a group's message that is on
    record. None for a private one, before it is on record, and for one of an earlier version."""


@dataclass(frozen=True, slots=True)
class MediaPolicy:
    """Which media an account reads: whose voice messages are transcribed and whose files are read
    (nobody, everybody, owners)."""

    voice: MediaAudience = "on"
    files: MediaAudience = "on"
    timing_gate: bool = False
    """Whether a small model call decides first if and when to answer, in chats that do not say
    otherwise."""


@dataclass(frozen=True, slots=True)
class AccountSettings:
    """What the operator decided of one account."""

    owners: frozenset[str] = frozenset()
    """Ids of the people that it belongs to."""
    media: MediaPolicy = field(default_factory=MediaPolicy)
    sends_per_minute: int | None = None
    """Messages sent a minute in all chats, 0 without a limit; None: as CHAT_ANSWERS_PER_MINUTE
    says."""
    media_by_url: bool = False
    """Whether its client is given the addresses of media, and loads them itself."""
    believes_senders: bool = True
    """Whether ids and roles give rights; not in a playground, where they are made up, unless its
    user has those rights himself."""
    all_for_me: bool = False
    """Whether every message that arrives from a group counts as addressed to it."""
    is_voiceless: bool = False
    """Whether it hears and cannot speak, as far as is known."""

    def without_rights(self) -> "AccountSettings":
        """The same for senders who may be nobody special."""
        return replace(self, owners=frozenset(), believes_senders=False)

    def includes(self, audience: MediaAudience, sender_id: str) -> bool:
        """Whether what is done for ``audience`` is done for this sender."""
        return audience == "on" or (audience == "owners" and sender_id in self.owners)


DEFAULT_ACCOUNT = AccountSettings()
"""Of an account without a row."""


@dataclass(frozen=True, slots=True)
class MessagePart:
    """One piece of an outgoing message, in the words of the ``send_message`` tool."""

    type: PartType
    text: str = ""
    path: str = ""
    url: str = ""
    mention_user_id: str = ""
    message_id: str = ""
    details: tuple[tuple[str, str], ...] = ()
    """What else there is to say of a face or of music, by the names of the platform."""


class AnswerMessage(NamedTuple):
    """One of the messages of an answer, and its words for the record."""

    parts: list[MessagePart]
    text: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """The outcome of a message that was handed to a client."""

    state: MessageState
    """``delivered``, ``failed`` (the client said no), ``unknown`` (no answer came) or ``pending``
    (certainly not written: the account is not connected)."""
    message_id: str = ""
    error: str = ""
    pause: PauseReason | None = None
    """Why the account cannot speak in the chat, where that is why it failed."""
    fallback: Callable[[], Awaitable[list[dict[str, Any]]]] | None = field(
        default=None, compare=False, repr=False
    )
    """For a message that was certainly not sent: rebuilds its segments in a form that may be
    accepted.

    They are not for the record. Raises :class:`agent.domain.errors.MediaError`.
    """
    fallback_form: str = "as Base64"
    """What that form is, for the record."""


class Outbox(Protocol):
    """The way out to the chats, implemented by the layer that owns the sockets."""

    takes_any_length: bool
    """Whether one message may be of any length: then no answer is sent in parts or as a forward."""

    def compose(self, parts: Sequence[MessagePart]) -> list[dict[str, Any]]:
        """``parts`` as the platform's message segments. Pure."""
        ...

    def compose_forward(
        self, chat: ChatAddress, messages: Sequence[Sequence[MessagePart]]
    ) -> list[dict[str, Any]]:
        """``messages`` of the bot's own as the segments of one merged forward. Pure."""
        ...

    def load_accounts(self) -> Mapping[str, AccountSettings]:
        """What the operator decided of each account, as its row says now. Runs in the database
        thread, inside a transaction."""
        ...

    def replace_accounts(self, accounts: Mapping[str, AccountSettings]) -> None:
        """Obey what was decided of the accounts, which is committed. Runs in the database
        thread."""
        ...

    def replace_pauses(self, pauses: Mapping[ChatAddress, Pause]) -> None:
        """Know in which chats an account cannot speak. Runs in the database thread."""
        ...

    def is_connected(self, chat: ChatAddress) -> bool:
        """Whether a message for ``chat`` could be written to a socket now."""
        ...

    async def wait_connected(self, chat: ChatAddress, seconds: float) -> bool:
        """Wait at most ``seconds`` for the account of ``chat``; True once it is connected."""
        ...

    def show_working(
        self, chat: ChatAddress, message_id: str, manners: ChatManners, *, is_on: bool
    ) -> None:
        """Begin to show in ``chat`` that the message is worked on, as ``manners`` say, or no more.
        Returns at once; a client may show nothing."""
        ...

    def next_turn(self, chat: ChatAddress, sends_per_minute: int | None = None) -> float:
        """Reserve the next turn to write a message to ``chat``; the seconds until it, 0.0 for now.

        ``sends_per_minute`` is that of the chat's manners. A turn that is not used is lost, no
        more.
        """
        ...

    async def deliver(
        self,
        chat: ChatAddress,
        segments: list[dict[str, Any]],
        *,
        echo: str,
        temp_group_id: str = "",
    ) -> Delivery:
        """Write the message and wait for the client's answer. Never raises for what a client does.

        After cancellation the message may have been written: its outcome is unknown.
        """
        ...


class MediaSource(Protocol):
    """What the layer that owns the sockets knows of the media in messages, and can ask the client
    for."""

    def parse_refs(
        self,
        segments: Sequence[dict[str, Any]],
        message_id: str = "",
        origin: MediaOrigin = "message",
    ) -> list[MediaRef]:
        """The media in recorded ``segments``, in order. Pure."""
        ...

    def restore_media(self, message: IncomingMessage) -> IncomingMessage:
        """``message``, read from the record, with what its segments say: its media, what was typed,
        what it quotes. Pure."""
        ...

    def has_forward(self, segments: Sequence[dict[str, Any]]) -> bool:
        """Whether other messages are forwarded in recorded ``segments``. Pure."""
        ...

    async def fetch_quoted_media(self, chat: ChatAddress, message_id: str) -> list[MediaRef]:
        """The media of a message that the client is asked for; none where it does not know it.
        Never raises."""
        ...

    async def fetch_forwarded_media(
        self, chat: ChatAddress, segments: Sequence[dict[str, Any]]
    ) -> list[MediaRef]:
        """The media of the messages that are forwarded in ``segments``, as far as the client gives
        them. Never raises."""
        ...

    def renew_address(self, chat: ChatAddress, ref: MediaRef) -> AsyncIterator[MediaRef]:
        """``ref`` as the client gives it now, in one way after another, for links expire. Never
        raises."""
        ...

    async def fetch_converted_voice(
        self, chat: ChatAddress, ref: MediaRef, out_format: str
    ) -> MediaRef | None:
        """A voice in another format (``mp3``, ``wav`` …), as the client made it; None when it
        cannot."""
        ...

    async def fetch_member_name(self, chat: ChatAddress, user_id: str) -> str:
        """What somebody is called in a group, by the client; "" where it does not say. Never
        raises."""
        ...

    async def fetch_message(self, chat: ChatAddress, message_id: str) -> "ForwardedMessage | None":
        """A message that the client still knows and says to be of ``chat``; None otherwise. Never
        raises."""
        ...

    async def fetch_quoted_message(
        self, chat: ChatAddress, message_id: str
    ) -> "ForwardedMessage | None":
        """The same for one that a message heard in ``chat`` quotes: since the client gave its id
        there, it is of ``chat`` unless the client says otherwise. Never raises."""
        ...

    async def fetch_forwarded_messages(
        self, chat: ChatAddress, segments: Sequence[dict[str, Any]]
    ) -> "ForwardContent":
        """The messages that are forwarded in ``segments``, one level of them, as far as the client
        gives them. Never raises."""
        ...


@dataclass(frozen=True, slots=True)
class ForwardedMessage:
    """One of the messages in a forwarded one. Nothing in it is to be believed, its sender least of
    all. Also a message of a chat itself, as a client gives it."""

    text: str
    segments: list[dict[str, Any]]
    sender_id: str = ""
    sender_name: str = ""
    happened_at: datetime | None = None
    quoted_id: str = ""


@dataclass(frozen=True, slots=True)
class ForwardContent:
    """What a client gives of a forward: the first of its messages, and how many it has in all."""

    messages: list[ForwardedMessage] = field(default_factory=list)
    total: int = 0


# Accounts of playgrounds: the page of the admin where an operator tries the bot out.
#
# Their numbers are of a range that QQ gives to nobody, and a browser counts in them exactly: 16
# digits, up to 2**53 - 1.

FIRST, LAST = 9_000_000_000_000_000, 2**53 - 1
#: The same as a regular expression for rows. Every database knows its words.
ACCOUNT_PATTERN = "^900[0-7][0-9]{12}$"


def playground_account(user_pk: int) -> str:
    """The account of a user's own playground. Raises ValueError for a key that no user has."""
    number = FIRST + user_pk
    if not FIRST < number <= LAST:
        raise ValueError(f"no user has the key {user_pk}")
    return str(number)


@lru_cache(maxsize=1_000)  # asked several times of each message
def is_playground(account: str) -> bool:
    """Whether ``account`` is of a playground, and no account of QQ."""
    return (
        len(account) == len(str(FIRST))
        and account.isascii()
        and account.isdigit()
        and FIRST < int(account) <= LAST
    )


def playground_owner(account: str) -> int:
    """The key of the user whose playground ``account`` is; 0 for another account."""
    return int(account) - FIRST if is_playground(account) else 0
