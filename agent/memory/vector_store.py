"""The meaning of notes on record: what has none yet, and which notes are near to a text."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import QuerySet
from django.utils import timezone

from agent.domain.errors import LLMError
from agent.domain.notes import NoteViewer
from agent.llm.endpoints.embeddings import TextEmbedder, cosine_similarity, find_nearest, sign_bits
from agent.memory.note_visibility import find_notes_by_words, to_recalled_notes, visible_notes
from agent.memory.relevance import RecalledNote
from agent.models import Note
from agent.record.record import Record
from tools.error_boundary import log_errors

#: Newest notes of a viewer that are searched, and those of them that are compared in full.
LOOKED_THROUGH, COMPARED = 500, 12
#: From which likeness on a note is thought of. What counts as alike differs between models; this
#: keeps out most chance.
LEAST_SIMILARITY = 0.4


@dataclass(frozen=True, slots=True)
class TextVector:
    """The vector of a text, and the model that gave it; b"" for none."""

    model: str = ""
    vector: bytes = b""


NO_VECTOR = TextVector()


def find_notes_without_vector(limit: int) -> list[tuple[int, str, str]]:
    """Key, fingerprint and text of notes that have no vector, the oldest first."""
    notes = Note.objects.filter(embedding_model="").order_by("pk")
    return list(notes.values_list("pk", "fingerprint", "text")[:limit])


def save_note_vectors(pk: int, fingerprint: str, meaning: TextVector) -> None:
    """Store the vector of a note, unless it says something else by now."""
    values = {
        "embedding_model": meaning.model,
        "embedding": meaning.vector,
        "signs": sign_bits(meaning.vector),
    }
    Note.objects.filter(pk=pk, fingerprint=fingerprint).update(**values)


def drop_incomparable_vectors(name: str) -> int:
    """Take the vectors of other models away: they cannot be compared; how many there were."""
    stale = Note.objects.exclude(embedding_model__in=("", name))
    return stale.update(embedding_model="", embedding=None, signs=b"")


def has_visible_vectors(viewer: NoteViewer, model: str) -> bool:
    """Whether a viewer may see a note that has a vector of the named model."""
    return visible_notes(viewer, timezone.now()).filter(embedding_model=model).exists()


def find_note_candidates(
    viewer: NoteViewer, words: str, meaning: TextVector, now: datetime, people: Sequence[str] = ()
) -> list[RecalledNote]:
    """Visible notes that may matter to ``words``, by what they say and by what they mean."""
    near = {note.pk: note for note in find_notes_by_vector(viewer, meaning, now)}
    return [
        *near.values(),
        *(note for note in find_notes_by_words(viewer, words, now, people) if note.pk not in near),
    ]


def find_notes_by_vector(
    viewer: NoteViewer, meaning: TextVector, now: datetime
) -> list[RecalledNote]:
    """Visible notes of a like meaning, with how like it is; none without a vector."""
    if not meaning.vector:
        return []
    notes = visible_notes(viewer, now).filter(embedding_model=meaning.model)
    pks = find_nearest(meaning.vector, _newest_signs(viewer, notes), COMPARED)
    vectors = dict(notes.filter(pk__in=pks).values_list("pk", "embedding"))
    alike = {
        pk: cosine_similarity(meaning.vector, bytes(vector))
        for pk, vector in vectors.items()
        if vector
    }
    close = [pk for pk, value in alike.items() if value >= LEAST_SIMILARITY]
    return (
        [
            replace(note, similarity=alike[note.pk])
            for note in to_recalled_notes(notes.filter(pk__in=close))
        ]
        if close
        else []
    )


def _newest_signs(viewer: NoteViewer, notes: "QuerySet[Note]") -> list[tuple[int, bytes]]:
    """Key and signs of the newest notes: one walk down an index for each audience, where one for
    all would sort them all."""
    found: list[tuple[int, bytes]] = []
    for audience in viewer.audiences:
        rows = (
            notes.filter(audience=audience)
            .order_by("-pk")
            .values_list("pk", "signs")[:LOOKED_THROUGH]
        )
        found += [(pk, bytes(bits)) for pk, bits in rows]
    return sorted(found, reverse=True)[:LOOKED_THROUGH]


logger = logging.getLogger(__name__)

#: Notes that one call is made for.
BATCH = 64
#: Seconds between looks for notes without a vector, and after a failure.
EVERY_SECONDS, AFTER_FAILURE = 30.0, 300.0
#: Seconds that a message waits for the meaning of its words; then it is answered without.
PATIENCE = 3.0


#: What compares meanings at this moment; None where nothing does.
FindEmbedder = Callable[[], TextEmbedder | None]


async def run_note_embedding(record: Record, find_embedder: FindEmbedder) -> None:
    """Give every note its vector for as long as this process lives."""
    while True:
        pause = AFTER_FAILURE
        with log_errors(logger, "The meaning of notes could not be had"):
            if (embedder := find_embedder()) is not None:
                await record.submit(drop_incomparable_vectors, embedder.name)
                while await record.has_tokens_left() and await embed_note_batch(record, embedder):
                    pass
            pause = EVERY_SECONDS
        await asyncio.sleep(pause)


async def embed_note_batch(record: Record, embedder: TextEmbedder) -> int:
    """Give at most ``BATCH`` notes their vectors; how many had none. Raises
    :class:`agent.domain.errors.LLMError`."""
    notes = await record.submit(find_notes_without_vector, BATCH)
    if notes:
        vectors = await _vectors([text for _, _, text in notes], embedder)
        for (pk, fingerprint, _), vector in zip(notes, vectors, strict=True):
            await record.submit(
                save_note_vectors, pk, fingerprint, TextVector(embedder.name, vector)
            )
    return len(notes)


async def _vectors(texts: list[str], embedder: TextEmbedder) -> list[bytes]:
    """A vector for each text; b"" for one that the endpoint refuses while it takes others."""
    try:
        return await embedder.embed(texts)
    except LLMError:
        if len(texts) == 1:
            raise
    found = []
    for text in texts:
        try:
            found += await embedder.embed([text])
        except LLMError as error:
            logger.warning("A note has no meaning to the endpoint: %s", error)
            found.append(b"")
    if not any(found):
        raise LLMError("the endpoint gives no text a meaning")
    return found


async def embed_message(text: str, embedder: TextEmbedder) -> TextVector:
    """The meaning of a message, none when it cannot be had in time: words are found without it."""
    try:
        async with asyncio.timeout(PATIENCE):
            (vector,) = await embedder.embed([text])
    except (TimeoutError, LLMError) as error:
        logger.warning(
            "A message is read without the meaning of its words: %s", error or "no answer in time"
        )
        return TextVector()
    return TextVector(embedder.name, vector)
