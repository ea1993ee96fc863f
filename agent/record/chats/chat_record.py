"""What was said in one chat, read again for its tools, and what was taken back. A tool is led to no
other chat from here."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone

from agent.domain.states import UNSAID
from agent.domain.types import ChatAddress, ChatKind
from agent.models import ChatSession, Digest, Message, MessageMedia
from agent.record.chats import early_recalls
from agent.record.chats.quoted_words import blank_quoted, quoted_mark

Direction, State = Message.Direction, Message.State
#: Clients use message ids again: one met again later than this is of another message.
ID_REUSE_AFTER = timedelta(days=1)
#: Newest messages of a chat that may quote one which is not on record.
MOST_QUOTING = 2_000
#: Rows whose text was never seen in the chat.
_UNSAID = Q(reason__in=(*UNSAID, Message.Reason.OWNER_NOTE)) | Q(
    direction=Direction.OUT, state__in=(State.PENDING, State.FAILED)
)


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
    """Whether it was recalled, or undone; its text stays on record and is not shown in the chat."""


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
    quoted_id: str = ""


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
    chat: ChatAddress | None = None
    """Where it stood: None where the client does not say, without a peer where it names only the
    kind of chat."""


@dataclass(frozen=True, slots=True)
class RecalledMessage:
    """A message that was just taken back, as it was on record at that moment."""

    pk: int
    session_pk: int
    chat: ChatAddress
    direction: Message.Direction
    state: Message.State
    run_pk: int | None = None
    merged_into: int | None = None
    """The key of the message that it is answered together with."""


def load_message_page(chat: ChatAddress, limit: int, before: str = "") -> MessagePage | None:
    """``limit`` messages of ``chat`` before the one called ``before``: a row as ``#12``, or a
    client's message id; None if that is no message of the chat. What was undone is left out.

    With "" for ``before``: those before the message that is being answered.
    """
    rows = Message.objects.filter(session_id=find_session(chat))
    if before:
        end = _find_pk(rows, before)
        if end is None:
            return None
    else:  # the message that is being answered: there is one at most, beside commands
        running = rows.filter(direction=Direction.IN, state=State.RUNNING)
        running = running.exclude(reason=Message.Reason.COMMAND)
        end = running.order_by("-pk").values_list("pk", flat=True).first()
    if end is not None:
        rows = rows.filter(pk__lt=end)
    for undone in ("undo_steps", "runs__undo_steps", "merged_into__runs__undo_steps"):
        rows = rows.exclude(**{f"{undone}__isnull": False})
    newest = list(rows.exclude(_UNSAID).defer("segments", "raw").order_by("-pk")[: limit + 1])
    return MessagePage([_said(row) for row in reversed(newest[:limit])], len(newest) > limit)


def find_messages(chat: ChatAddress, message_id: str) -> FoundMessage | None:
    """The newest message of a chat with a client's id; None where it is not on record there."""
    session_pk = find_session(chat) if message_id else None
    return _find(session_pk, message_id, with_media=True) if session_pk else None


def find_quoted(session_pk: int, message_id: str) -> FoundMessage | None:
    """For (a session, a message id): the newest message of that chat with this id, with its words
    alone."""
    return _find(session_pk, message_id, with_media=False)


def _find(session_pk: int, message_id: str, *, with_media: bool) -> FoundMessage | None:
    rows = Message.objects.filter(session_id=session_pk, message_id=message_id)
    row = rows.exclude(_UNSAID).defer("raw").order_by("-pk").first()
    if row is None:
        return None
    said = _said(row)
    text = said.text if with_media else row.text.strip()
    said = replace(said, text=text, is_recalled=said.is_recalled or is_undone(row))
    return FoundMessage(row.pk, session_pk, said, row.segments, row.quoted_id or "")


def is_undone(row: Message) -> bool:
    """Whether it was taken back by ``/undo``, which is no recall where the client does not say."""
    return not row.in_history and row.undo_steps.exists()


def find_targets(session_pk: int, message_id: str) -> ReplyTarget | None:
    """For (a session, a message id): the newest message of that chat with this id."""
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


def record_recall(recall: MessageRecall) -> list[RecalledMessage]:
    """Keep that a message was taken back: it stays on record, and is shown to no model again.

    Those that were not known to be taken back before; none for one that is not on record, which is
    remembered for when it comes. Summaries that cover it are deleted, to be made anew.
    """
    known = Message.objects.filter(message_id=recall.message_id, session__account=recall.account)
    if recall.chat is not None:
        known = known.filter(session__kind=recall.chat.kind)
        if recall.chat.peer_id:
            known = known.filter(session__peer_id=recall.chat.peer_id)
    rows = list(known.select_related("session").defer("raw", "segments").order_by("-pk"))
    now = timezone.now()
    # Clients use ids again: what is older is another message.
    rows = [row for row in rows if rows[0].created_at - row.created_at < ID_REUSE_AFTER]
    if not rows:
        early_recalls.remember(recall.account, recall.message_id, recall.chat, now)
        if recall.chat is not None and (session_pk := find_session(recall.chat)):
            newest = Message.objects.filter(session_id=session_pk).order_by("-pk").values_list("pk")
            floor = newest[MOST_QUOTING : MOST_QUOTING + 1].first()
            _blank_quotes(session_pk, floor[0] if floor else 0, recall.message_id)
    fresh = [row for row in rows if row.recalled_at is None]
    Message.objects.filter(pk__in=[row.pk for row in fresh]).update(recalled_at=now)
    for row in fresh:
        forget_words(row)
    return [_recalled(row) for row in fresh]


def forget_words(row: Message) -> None:
    """Take what a message said out of quotes and summaries of its chat."""
    if row.message_id:
        _blank_quotes(row.session_id, row.pk, row.message_id)
    if row.in_history and row.run_id is not None:
        _drop_summaries(row.session_id, row.run_id)


def _recalled(row: Message) -> RecalledMessage:
    session = row.session
    return RecalledMessage(
        row.pk,
        row.session_id,
        find_address(session),
        Direction(row.direction),
        State(row.state),
        row.run_id,
        row.merged_into_id,
    )


def _blank_quotes(session_pk: int, after: int, message_id: str) -> None:
    """Take what a recalled message said out of those of the chat, with a key above ``after``, that
    quote it. What was read in its media cannot be told from what was read in theirs: it goes
    too."""
    later = Message.objects.filter(session_id=session_pk, pk__gt=after).order_by()
    with_context = later.filter(context_text__isnull=False)  # these have an index of their own
    quoting = with_context.filter(context_text__contains=quoted_mark(message_id))
    for pk, text in quoting.values_list("pk", "context_text"):
        Message.objects.filter(pk=pk).update(context_text=blank_quoted(text or "", message_id))
    for pk in (
        later.filter(quoted_id=message_id).exclude(media_text="").values_list("pk", flat=True)
    ):
        if has_quoted_media(pk):
            Message.objects.filter(pk=pk).update(media_text="")


def has_quoted_media(message_pk: int) -> bool:
    """Whether the media of a message that it quotes were looked for with its own."""
    origins = (MessageMedia.Origin.QUOTED, MessageMedia.Origin.FORWARDED)
    return MessageMedia.objects.filter(message_id=message_pk, origin__in=origins).exists()


def _drop_summaries(session_pk: int, run_pk: int) -> None:
    """Delete the summary that a run's words went into, and all that were made from it."""
    summaries = Digest.objects.filter(kind=Digest.DigestKind.SUMMARY, session_id=session_pk)
    if summaries.filter(first_run__lte=run_pk, last_run__gte=run_pk).exists():
        summaries.filter(last_run__gte=run_pk).delete()


def find_session(chat: ChatAddress) -> int | None:
    """The key of the chat's session, None for a chat in which nothing was said yet."""
    rows = ChatSession.objects.filter(
        platform=chat.platform, account=chat.account, kind=chat.kind, peer_id=chat.peer_id
    )
    return rows.values_list("pk", flat=True).first()


def find_address(session: ChatSession) -> ChatAddress:
    """The chat of a session."""
    kind: ChatKind = "group" if session.kind == ChatSession.Kind.GROUP else "private"
    return ChatAddress(session.account, kind, session.peer_id, session.platform)


def _find_pk(rows: "QuerySet[Message]", before: str) -> int | None:
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
