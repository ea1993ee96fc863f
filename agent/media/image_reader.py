"""Seeing: the pictures of a message, in the words of a vision model or as they are.

One call describes all pictures of a message: a text block with what the sender typed
(or :data:`DEFAULT_PROMPT` where that is nothing), then the pictures.

**What is described once.** An answer depends on the pictures and on what was asked, so
both are the key under which it is kept, with the model that gave it:

* the content: of one picture its hash, of several the hash of their hashes in order,
  for they were described together and their description makes sense only for all;
* the kind of prompt: ``default``, or the hash of the sender's words. A picture without text, such
  as a sticker, is described once for all. A picture with a question is described again when it
  comes with another question.

When another model is asked for them, pictures are described again. While a question is being
asked, other tasks with the same question wait for its answer
(:class:`agent.media.description_cache.DescriptionCache`).
"""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext_noop

from agent.domain.errors import LLMError
from agent.domain.file_types import PICTURES
from agent.domain.media_refs import MediaKind, MediaRef
from agent.domain.model_roles import ModelRole
from agent.domain.persona import Persona
from agent.domain.types import IncomingMessage
from agent.llm.requests.base import LLMClient, LLMRequest
from agent.llm.requests.images import picture_part
from agent.llm.requests.messages import ChatMessage, system_message
from agent.media.description_cache import DescriptionCache
from agent.media.downloads import DownloadAllowance, MediaDownloader
from agent.media.file_store import StoredFile
from agent.media.image_worker import ImageJob, ImageWorker
from agent.media.media_store import DescriptionKey, NewDescription
from agent.media.pipeline import FetchedMedia, MediaText, note_missing_media
from agent.record.waiting.recovery import PendingMessage
from tools.processes.disk import run_on_disk_thread
from tools.text import fences

DEFAULT_PROMPT = "请详细描述这张图片的内容"
INSTRUCTION = "请用中文描述图片："
DEFAULT = "default"

NO_MODEL = gettext_noop(
    "The pictures were not described: VISUAL_MODEL_NAME is empty, and no endpoint sees pictures."
)
SOME_MISSING = gettext_noop(
    "Some pictures could not be had; their placeholders stay, and the page of the message says why."
)
NO_ANSWER = gettext_noop("The pictures were not described: the vision model could not be asked.")
NO_WORDS = gettext_noop("The pictures were not described: the vision model had nothing to say.")


class ImageReader:
    """The reader of pictures."""

    kinds: frozenset[MediaKind] = frozenset({"image"})

    def __init__(
        self,
        answers: DescriptionCache,
        downloads: MediaDownloader,
        image_worker: ImageWorker,
        find_model: Callable[[Sequence[int]], LLMClient | None],
    ) -> None:
        """``find_model`` tells what describes pictures at this moment, for the endpoints that a
        persona names; None where nothing does."""
        self._answers = answers
        self._downloads = downloads
        self._image_worker = image_worker
        self._find_model = find_model

    def wants(self, pending: PendingMessage) -> bool:
        persona = pending.persona
        return persona.vision_mode != "describe" or self._model(persona) is not None

    async def fetch(
        self, message: IncomingMessage, ref: MediaRef, allowance: DownloadAllowance
    ) -> StoredFile:
        self._image_worker.warm_up()
        kept = await self._downloads.get(message.chat, ref, allowance, PICTURES.__contains__)
        shown = self._downloads.files.shown_path(kept.sha256)
        if not await run_on_disk_thread(shown.is_file):
            await self._image_worker.process(build_model_image_job(kept.path, shown))
        return kept

    async def read(self, pending: PendingMessage, found: Sequence[FetchedMedia]) -> MediaText:
        pictures = tuple(one.kept.sha256 for one in found if one.kept)
        notes = note_missing_media(SOME_MISSING, found)
        has_pictures = any(ref.kind == "image" for ref in pending.message.media)
        text, mode = "", pending.persona.vision_mode
        model = self._model(pending.persona) if mode != "native" else None
        if mode != "native" and model is None and has_pictures:
            notes.append(NO_MODEL)
        elif model is not None and pictures:
            text = await self._described(model, pending, pictures, notes)
        shown = pictures if mode != "describe" else ()
        return MediaText(
            fences.label_medium(fences.MediaLabel.PICTURE, text) if text else "",
            tuple(dict.fromkeys(notes)),
            shown,
        )

    def _model(self, persona: Persona) -> LLMClient | None:
        return self._find_model(persona.endpoints.get(ModelRole.VISION, ()))

    async def _described(
        self, model: LLMClient, pending: PendingMessage, pictures: Sequence[str], notes: list[str]
    ) -> str:
        """The description of ``pictures``, "" where there is none; ``notes`` get to know why."""
        words = pending.message.spoken_text
        question = DescriptionKey(
            content_key(pictures), prompt_kind(words), model.name[:200], tuple(pictures)
        )

        async def ask() -> NewDescription:
            response = await model.complete(LLMRequest(vision_messages(words, pictures)))
            return NewDescription(
                question, response.text.strip(), response.input_tokens, response.output_tokens
            )

        try:
            text = await self._answers.get(pending.pk, question, ask)
        except LLMError as error:
            notes += [NO_ANSWER, str(error)]
            return ""
        if not text:
            notes.append(NO_WORDS)
        return text


def vision_messages(words: str, pictures: Sequence[str]) -> list[ChatMessage]:
    """The request for one description of ``pictures``, by content hash, with what the sender typed.
    Pure."""
    text = fences.neutralize_marks(words) if words.strip() else DEFAULT_PROMPT
    content = [{"type": "text", "text": text}, *map(picture_part, pictures)]
    return [system_message(INSTRUCTION), {"role": "user", "content": content}]


def content_key(pictures: Sequence[str]) -> str:
    """What stands for the content of ``pictures`` together."""
    return (
        pictures[0]
        if len(pictures) == 1
        else hashlib.sha256("".join(pictures).encode()).hexdigest()
    )


def prompt_kind(words: str) -> str:
    """What stands for the question that the sender's words are."""
    return hashlib.sha256(words.encode()).hexdigest() if words.strip() else DEFAULT


def build_model_image_job(source: Path, target: Path) -> ImageJob:
    """Making ``source`` fit for a model, within the limits of the settings."""
    return ImageJob(
        source,
        target,
        settings.PICTURE_MAX_SIDE,
        settings.PICTURE_MAX_KIB * 2**10,
        settings.PICTURE_MAX_MEGAPIXELS * 10**6,
    )
