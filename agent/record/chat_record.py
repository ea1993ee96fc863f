"""What was said in one chat, read again for its tools, and what was taken back. A tool is led to no
other chat from here."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone

from agent.domain.types import ChatAddress
from agent.models import ChatSession, Message
from agent.record.commit import for_each

Direction, State = Message.Direction, Message.State
#: Rows whose text was never seen in the chat.
_UNSAID = Q(reason__in=(Message.Reason.LATER_RESULT, Message.Reason.OWNER_NOTE)) | Q(
    direction=Direction.OUT, state__in=(State.PENDING, State.FAILED)
)


@dataclass(frozen=True, slots=True)
class PageRequest:
    """``limit`` messages of ``chat`` before the one called ``before``: a row as ``#12``, or a
    client's message id.

    With "" for ``before``: those before the message that is being answered.
    """

    chat: ChatAddress
    limit: int
    before: str = ""


@dataclass(frozen=True, slots=True)
class RecordedMessage:
    """One message as it is on record."""

    pk: int
    from_bot: bool
    sender_id: str
    sender_name: str
    message_id: str
    text: str
    at: datetime
    is_recalled: bool = False
    """Whether it was recalled; its text stays on record and is not shown in the chat."""


@dataclass(frozen=True, slots=True)
class MessagePage:
    """Messages from the oldest to the newest, and whether there are older ones."""

    messages: list[RecordedMessage]
    has_older: bool


@dataclass(frozen=True, slots=True)
class FoundMessage:
    """One message of the chat: its words and segments."""

    pk: int
    session_pk: int
    said: RecordedMessage
    segments: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class ReplyTarget:
    """A message of one's own chat."""

    pk: int
    text: str
    sender_id: str
    sender_name: str
    is_recalled: bool


@dataclass(frozen=True, slots=True)
class MessageRecall:
    """That a message was taken back, as the client reported it."""

    account: str
    message_id: str


@for_each
def load_message_pages(wish: PageRequest) -> MessagePage | None:
    """The requested page; None if its ``before`` is no message of the chat."""
    rows = Message.objects.filter(session_id=find_session(wish.chat))
    if wish.before:
        before = _place(rows, wish.before)
        if before is None:
            return None
    else:  # the message that is being answered: there is never more than one in a chat
        running = rows.filter(direction=Direction.IN, state=State.RUNNING)
        before = running.order_by("-pk").values_list("pk", flat=True).first()
    if before is not None:
        rows = rows.filter(pk__lt=before)
    newest = list(rows.exclude(_UNSAID).defer("segments", "raw").order_by("-pk")[: wish.limit + 1])
    return MessagePage(
        [_said(row) for row in reversed(newest[: wish.limit])], len(newest) > wish.limit
    )


@for_each
def find_messages(wanted: tuple[ChatAddress, str]) -> FoundMessage | None:
    """The newest message of a chat with a client's id; None where it is not on record there."""
    chat, message_id = wanted
    session_pk = find_session(chat) if message_id else None
    if session_pk is None:
        return None
    rows = Message.objects.filter(session_id=session_pk, message_id=message_id)
    row = rows.exclude(_UNSAID).defer("raw").order_by("-pk").first()
    return FoundMessage(row.pk, row.session_id, _said(row), row.segments) if row else None


@for_each
def find_targets(wanted: tuple[int, str]) -> ReplyTarget | None:
    """For (a session, a message id): the newest message of that chat with this id."""
    session_pk, message_id = wanted
    if not message_id:
        return None
    known = Message.objects.filter(session_id=session_pk, message_id=message_id)
    known = known.exclude(reason=Message.Reason.LATER_RESULT)
    row = known.only("text", "sender_id", "sender_name", "recalled_at").order_by("-pk").first()
    if row is None:
        return None
    return ReplyTarget(
        row.pk, row.text, row.sender_id, row.sender_name, row.recalled_at is not None
    )


@for_each
def record_recalls(recall: MessageRecall) -> None:
    """Keep that a message was taken back; it stays on record."""
    recalled = Message.objects.filter(
        message_id=recall.message_id, session__account=recall.account, recalled_at=None
    )
    recalled.update(recalled_at=timezone.now())


def find_session(chat: ChatAddress) -> int | None:
    """The key of the chat's session, None for a chat in which nothing was said yet."""
    rows = ChatSession.objects.filter(
        platform=chat.platform, account=chat.account, kind=chat.kind, peer_id=chat.peer_id
    )
    return rows.values_list("pk", flat=True).first()


def _place(rows: "QuerySet[Message]", before: str) -> int | None:
    """The key that ``before`` stands for."""
    digits = before.removeprefix("#")
    if before.startswith("#") and digits.isascii() and digits.isdigit() and len(digits) <= 18:
        return int(digits)
    return rows.filter(message_id=before).order_by("-pk").values_list("pk", flat=True).first()


def _said(row: Message) -> RecordedMessage:
    return RecordedMessage(
        row.pk,
        row.direction == Direction.OUT or row.reason == Message.Reason.OWN_MESSAGE,
        row.sender_id,
        row.sender_name,
        row.message_id,
        f"{row.text}{row.media_text}".strip(),
        row.happened_at or row.created_at,
        row.recalled_at is not None,
    )
