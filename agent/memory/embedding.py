"""Computes the embeddings of notes in the background, for notes from all sources."""

import asyncio
import logging
from collections.abc import Callable

from agent.domain.errors import LLMError
from agent.llm.endpoints.embeddings import TextEmbedder
from agent.memory import vector_store
from agent.memory.vector_store import TextVector
from agent.record.record import Record
from tools.error_boundary import log_errors

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
                await record.submit(vector_store.drop_incomparable_vectors, embedder.name)
                while await record.has_tokens_left() and await embed_note_batch(record, embedder):
                    pass
            pause = EVERY_SECONDS
        await asyncio.sleep(pause)


async def embed_note_batch(record: Record, embedder: TextEmbedder) -> int:
    """Give at most ``BATCH`` notes their vectors; how many had none. Raises
    :class:`agent.domain.errors.LLMError`."""
    notes = await record.submit(vector_store.find_notes_without_vector, BATCH)
    if notes:
        vectors = await _vectors([text for _, _, text in notes], embedder)
        for (pk, fingerprint, _), vector in zip(notes, vectors, strict=True):
            await record.submit(
                vector_store.save_note_vectors, pk, fingerprint, TextVector(embedder.name, vector)
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
