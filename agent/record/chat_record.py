"""What was said in one chat, read again for its tools, and what was taken back. A tool is led to no
other chat from here."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q
from django.utils import timezone

from agent.domain.types import ChatAddress
from agent.models import ChatSession, Message

Direction, State = Message.Direction, Message.State
#: Rows that nobody in the chat has said or heard.
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
    """Whether it was taken back; its words stay on record and are for nobody in the chat."""


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


def load_message_pages(wishes: Sequence[PageRequest]) -> list[MessagePage | None]:
    """A page for each wish; None where its ``before`` is no message of the chat."""
    return [_page(wish) for wish in wishes]


def find_messages(wanted: Sequence[tuple[ChatAddress, str]]) -> list[FoundMessage | None]:
    """The newest message of a chat with a client's id; None where it is not on record there."""
    return [_found(chat, message_id) for chat, message_id in wanted]


def find_targets(wanted: Sequence[tuple[int, str]]) -> list[ReplyTarget | None]:
    """For each (session, message id): the newest message of that chat with this id."""
    return [_find(session_pk, message_id) for session_pk, message_id in wanted]


def _find(session_pk: int, message_id: str) -> ReplyTarget | None:
    if not message_id:
        return None
    known = Message.objects.filter(session_id=session_pk, message_id=message_id).exclude(
        reason=Message.Reason.LATER_RESULT
    )
    row = known.only("text", "sender_id", "sender_name", "recalled_at").order_by("-pk").first()
    return (
        ReplyTarget(row.pk, row.text, row.sender_id, row.sender_name, row.recalled_at is not None)
        if row
        else None
    )


def record_recalls(recalls: Sequence[MessageRecall]) -> list[None]:
    """Keep that messages were taken back; they stay on record."""
    for one in recalls:
        gone = Message.objects.filter(
            message_id=one.message_id, session__account=one.account, recalled_at=None
        )
        gone.update(recalled_at=timezone.now())
    return [None] * len(recalls)


def find_session(chat: ChatAddress) -> int | None:
    """The key of the chat's session, None for a chat in which nothing was said yet."""
    rows = ChatSession.objects.filter(
        platform=chat.platform, account=chat.account, kind=chat.kind, peer_id=chat.peer_id
    )
    return rows.values_list("pk", flat=True).first()


def _page(wish: PageRequest) -> MessagePage | None:
    session_pk = find_session(wish.chat)
    rows = Message.objects.filter(session_id=session_pk)
    before = _place(rows, wish.before) if wish.before else _current(rows)
    if wish.before and before is None:
        return None
    if before is not None:
        rows = rows.filter(pk__lt=before)
    newest = list(rows.exclude(_UNSAID).defer("segments", "raw").order_by("-pk")[: wish.limit + 1])
    return MessagePage(
        [_said(row) for row in reversed(newest[: wish.limit])], len(newest) > wish.limit
    )


def _place(rows: Any, before: str) -> int | None:
    """The key that ``before`` stands for."""
    digits = before.removeprefix("#")
    if before.startswith("#") and digits.isascii() and digits.isdigit() and len(digits) <= 18:
        return int(digits)
    found: int | None = (
        rows.filter(message_id=before).order_by("-pk").values_list("pk", flat=True).first()
    )
    return found


def _current(rows: Any) -> int | None:
    """The message that is being answered: there is never more than one in a chat."""
    running = rows.filter(direction=Direction.IN, state=State.RUNNING)
    found: int | None = running.order_by("-pk").values_list("pk", flat=True).first()
    return found


def _found(chat: ChatAddress, message_id: str) -> FoundMessage | None:
    session_pk = find_session(chat)
    rows = (
        Message.objects.filter(session_id=session_pk, message_id=message_id)
        if session_pk and message_id
        else None
    )
    row = rows.exclude(_UNSAID).defer("raw").order_by("-pk").first() if rows is not None else None
    return FoundMessage(row.pk, row.session_id, _said(row), row.segments) if row else None


def _said(row: Message) -> RecordedMessage:
    from_bot = row.direction == Direction.OUT or row.reason == Message.Reason.OWN_MESSAGE
    text = f"{row.text}{row.media_text}".strip()
    at = row.happened_at or row.created_at
    return RecordedMessage(
        row.pk,
        from_bot,
        row.sender_id,
        row.sender_name,
        row.message_id,
        text,
        at,
        row.recalled_at is not None,
    )
