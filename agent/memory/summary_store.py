"""Digests on record: the messages of a chat that are not read yet, and the results of reading."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby

from django.db.models import QuerySet
from django.utils import timezone

from agent.memory.note_visibility import to_recalled_notes
from agent.memory.notes_store import NewNote, NoteResult, write_notes
from agent.memory.relevance import RecalledNote, are_similar_texts
from agent.models import ChatSession, Digest, Message, Note

Kind = Digest.DigestKind

#: Messages and characters that one reading takes; the rest is for the next one.
BATCH_MESSAGES, BATCH_CHARS = 200, 24_000
#: Characters of one message that a reading takes.
MESSAGE_CHARS = 1_000
#: Characters that stand around the words of a message in a request, about.
FRAME_CHARS = 120
#: Notes that an extraction gets to see, so that it does not repeat them.
KNOWN_SHOWN = 50


@dataclass(frozen=True, slots=True)
class HistoryWindow:
    """What the model is shown of a chat: at most so many messages and characters, from the newest
    back."""

    messages: int
    chars: int


@dataclass(frozen=True, slots=True)
class DigestMessage:
    """A message of the conversation. ``sender_id`` is "" for what the bot said."""

    pk: int
    run_pk: int
    text: str
    sender_id: str = ""
    sender_name: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ConversationBatch:
    """Whole exchanges of one chat that are to be read, oldest first; never empty.

    ``before`` is the summary of what came before them, and ``known`` what is noted already.
    """

    session_pk: int
    kind: Digest.DigestKind
    said: tuple[DigestMessage, ...]
    before: str = ""
    known: tuple[RecalledNote, ...] = ()


@dataclass(frozen=True, slots=True)
class NewDigest:
    """What came of a reading."""

    batch: ConversationBatch
    model: str
    text: str = ""
    notes: tuple[NewNote, ...] = ()
    input_tokens: int = 0
    output_tokens: int = 0


def find_unsummarized(
    session_pk: int, window: HistoryWindow, least: int
) -> ConversationBatch | None:
    """What of a session is no longer in its window and in no summary; None for fewer messages than
    given.

    The first summary of a chat begins one batch back, however long its past is.
    """
    hidden = find_last_hidden_run(session_pk)
    covered, before = _find_summary(session_pk, hidden)
    past = _history(session_pk).filter(
        run_id__gt=max(covered, hidden), run_id__lt=_first_shown_run(session_pk, window)
    )
    if not _has(past, least):
        return None
    said = _read(past.order_by("run_id", "pk")) if covered else _newest(past)
    return ConversationBatch(session_pk, Kind.SUMMARY, said, before)


def find_last_hidden_run(session_pk: int) -> int:
    """The newest run of which the model is shown nothing since the chat was reset; 0 where it never
    was. Summaries that begin with it, or before, are not shown either."""
    chat = ChatSession.objects.filter(pk=session_pk)
    after = chat.values_list("context_after", flat=True).first()
    if after is None:
        return 0
    hidden = _history(session_pk).filter(pk__lte=after).order_by("-run_id", "-pk")
    return hidden.values_list("run_id", flat=True).first() or 0


def _find_summary(session_pk: int, hidden: int) -> tuple[int, str]:
    """The last run in the newest summary that may be shown, and its text; 0 and "" without one."""
    newest = Digest.objects.filter(
        kind=Kind.SUMMARY, session_id=session_pk, first_run__gt=hidden
    ).order_by("-last_run")
    return newest.values_list("last_run", "text").first() or (0, "")


def _has(messages: "QuerySet[Message]", least: int) -> bool:
    """Whether there are at least so many, and one in any case."""
    least = max(1, least)
    return messages.values("pk")[:least].count() >= least


def _first_shown_run(session_pk: int, window: HistoryWindow) -> int:
    """The run with which what the model is shown begins: the oldest one that fits as a whole."""
    newest = _history(session_pk).order_by("-run_id", "-pk").values_list("run_id", "text")
    left, room, first = window.messages, window.chars, 2**62
    for run_pk, exchange in groupby(newest[: left + 1], lambda row: row[0]):
        texts = [text for _, text in exchange]
        left, room = (
            left - len(texts),
            room - sum(FRAME_CHARS + len(text) for text in texts),
        )
        if left < 0 or room < 0:
            break
        first = run_pk
    return int(first)


def find_unread(session_pk: int, turns: int) -> ConversationBatch | None:
    """What was said in a session since notes were last taken; None for fewer turns than given.

    A backlog longer than one batch, as a chat has on the day this is switched on, is left out.
    """
    read = Digest.objects.filter(kind=Kind.EXTRACTION, session_id=session_pk)
    covered = read.order_by("-last_run").values_list("last_run", flat=True).first() or 0
    rest = _history(session_pk).filter(run_id__gt=covered)
    if not _has(rest.filter(direction=Message.Direction.IN), turns):
        return None
    said = _newest(rest)
    people = {one.sender_id for one in said}
    session = ChatSession.objects.get(pk=session_pk)
    about = Note.objects.filter(
        platform=session.platform, account=session.account, chat=session.key, owner_id__in=people
    )
    return ConversationBatch(
        session_pk,
        Kind.EXTRACTION,
        said,
        known=tuple(to_recalled_notes(about.order_by("-pk")[:KNOWN_SHOWN])),
    )


def _newest(messages: "QuerySet[Message]") -> tuple[DigestMessage, ...]:
    """The last of ``messages``, as many as one reading takes, oldest first."""
    return _read(messages.order_by("-run_id", "-pk"))[::-1]


def _read(messages: "QuerySet[Message]") -> tuple[DigestMessage, ...]:
    """The first of ``messages``, in their order, as many as one reading takes."""
    fields = ("pk", "run_id", "text", "sender_id", "sender_name", "happened_at")
    said = []
    rows = messages.values_list(*fields, "direction", "reason")[: BATCH_MESSAGES + 1]
    for *values, direction, reason in rows:
        message = DigestMessage(*values)
        if direction == Message.Direction.OUT or reason == Message.Reason.OWN_MESSAGE:
            message = replace(message, sender_id="", sender_name="")
        said.append(message)
    return whole_exchanges(said)


def whole_exchanges(said: Sequence[DigestMessage]) -> tuple[DigestMessage, ...]:
    """The beginning of ``said`` that one reading takes, cut between two runs; the first run goes in
    whatever its size."""
    taken: list[DigestMessage] = []
    room = BATCH_CHARS
    for _, exchange in groupby(said, lambda one: one.run_pk):
        messages = [replace(one, text=one.text[:MESSAGE_CHARS]) for one in exchange]
        room -= sum(len(one.text) for one in messages)
        if taken and (room < 0 or len(taken) + len(messages) > BATCH_MESSAGES):
            break
        taken += messages
    return tuple(taken)


def save_digests(digest: NewDigest) -> int:
    """Store a digest with its notes; how many notes were new. One that another process made before
    stays as it is. Nothing is stored where a message was recalled, or the chat reset, meanwhile:
    what was read is not to be read any more."""
    batch, now = digest.batch, timezone.now()
    if _is_outdated(batch):
        return 0
    row, is_new = Digest.objects.get_or_create(
        session_id=batch.session_pk,
        kind=batch.kind,
        last_run=batch.said[-1].run_pk,
        defaults={
            "first_run": batch.said[0].run_pk,
            "message_count": len(batch.said),
            "model": digest.model,
            "input_tokens": digest.input_tokens,
            "output_tokens": digest.output_tokens,
            "created_at": now,
            "text": digest.text,
        },
    )
    if not is_new:
        return 0
    fresh = _without_doubles(digest.notes, batch.known)
    count = sum(write_notes(note).fate is NoteResult.DONE for note in fresh)
    Digest.objects.filter(pk=row.pk).update(note_count=count)
    return count


def _is_outdated(batch: ConversationBatch) -> bool:
    read = Message.objects.filter(pk__in=[one.pk for one in batch.said])
    if read.exclude(recalled_at=None, in_history=True).exists():
        return True
    if batch.kind is not Kind.SUMMARY:
        return False
    hidden = find_last_hidden_run(batch.session_pk)
    is_hidden = batch.said[0].run_pk <= hidden
    covered, before = _find_summary(batch.session_pk, hidden)
    return is_hidden or (covered < batch.said[0].run_pk and before != batch.before)


def _without_doubles(wishes: Sequence[NewNote], known: Sequence[RecalledNote]) -> list[NewNote]:
    """Those of ``wishes`` that repeat neither a known note nor an earlier one about the same
    person."""
    said = [(note.owner_id, note.text) for note in known]
    fresh = []
    for wish in wishes:
        if not any(
            owner == wish.person and are_similar_texts(text, wish.text) for owner, text in said
        ):
            fresh.append(wish)
            said.append((wish.person, wish.text))
    return fresh


def _history(session_pk: int) -> "QuerySet[Message]":
    return Message.objects.filter(
        session_id=session_pk, in_history=True, run_id__isnull=False, recalled_at__isnull=True
    )
