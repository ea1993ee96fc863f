"""Hearing: the voice messages of a message, in the words of a transcription model.

A voice is asked of the client in a format that the endpoint takes, for what QQ itself
keeps, SILK and AMR, no endpoint does; where the client converts nothing, its own link
may still lead to something that is taken. The words are kept under the hash of the
sound and the model's name: what was sent twice is heard once.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from django.utils.translation import gettext_noop

from agent.domain.endpoint import ModelRole
from agent.domain.errors import LLMError
from agent.domain.types import ChatAddress, IncomingMessage, MediaKind, MediaRef, MediaUnavailable
from agent.llm.endpoints.transcription import SoundTranscriber
from agent.media.downloads import WRONG_KIND, DownloadAllowance, MediaDownloader
from agent.media.file_store import StoredFile
from agent.media.media_store import DescriptionCache, DescriptionKey
from agent.media.pipeline import FetchedMedia, MediaText, note_missing_media
from agent.record.waiting.recovery import PendingMessage
from tools.text import fences

#: File endings that endpoints know a format by, for each type that they take:
#: https://platform.openai.com/docs/guides/speech-to-text
ENDINGS = {
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "audio/ogg": "ogg",
    "audio/flac": "flac",
    "audio/mp4": "m4a",
    "video/mp4": "mp4",
    "video/webm": "webm",
}
#: What clients are asked for, the smaller first.
FORMATS = ("mp3", "wav")
#: Time for having a voice converted, in seconds; then the client's link is tried.
CONVERT_SECONDS = 15.0
#: The largest sound that is sent; OpenAI takes no larger one. The endpoint checks the duration: QQ
#: ends a voice message after a few minutes, and the duration is unknown before decoding.
MOST_BYTES = 25 * 2**20
PROMPT_KIND = "voice"

NO_MODEL = gettext_noop(
    "The voice was not transcribed: TRANSCRIBE_MODEL_NAME is empty, and no endpoint transcribes."
)
NOT_ALLOWED = gettext_noop(
    "The voice was not transcribed: the bot's settings do not allow it for this sender."
)
NOT_TAKEN = gettext_noop("the client offers the voice only in a format that cannot be transcribed")
TOO_LARGE = gettext_noop("the voice is too large to be transcribed")
SOME_MISSING = gettext_noop(
    "Some voice messages could not be had; their placeholders stay, and the page of the message "
    "says why."
)
NO_ANSWER = gettext_noop("The voice was not transcribed: the model could not be asked.")
NO_WORDS = gettext_noop("The voice was not transcribed: the model heard no words in it.")


class VoiceReader:
    """The reader of voice messages; where ``find_transcriber`` finds none at a moment, it only says
    why it reads none."""

    kinds: frozenset[MediaKind] = frozenset({"record"})

    def __init__(
        self,
        answers: DescriptionCache,
        downloads: MediaDownloader,
        find_transcriber: Callable[[Sequence[int]], SoundTranscriber | None],
    ) -> None:
        self._answers = answers
        self._downloads = downloads
        self._find_transcriber = find_transcriber

    def wants(self, pending: PendingMessage) -> bool:
        account, sender_id = pending.account, pending.message.sender_id
        return self._transcriber(pending) is not None and account.includes(
            account.media.voice, sender_id
        )

    async def fetch(
        self, message: IncomingMessage, ref: MediaRef, allowance: DownloadAllowance
    ) -> StoredFile:
        """The sound in a format that endpoints take: at once, as the client converts it, or else
        behind its link."""
        chat = message.chat
        if not ref.data and (kept := await self._converted(chat, ref, allowance)):
            return kept
        try:
            return _fit(await self._downloads.get(chat, ref, allowance, ENDINGS.__contains__))
        except MediaUnavailable as error:
            if str(error) != WRONG_KIND:
                raise
        if kept := await self._converted(chat, ref, allowance):
            return kept
        raise MediaUnavailable(NOT_TAKEN)

    async def read(self, pending: PendingMessage, found: Sequence[FetchedMedia]) -> MediaText:
        transcriber = self._transcriber(pending)
        if transcriber is None or not found:
            return MediaText(notes=self._why_not(pending))
        notes = note_missing_media(SOME_MISSING, found)
        sounds = [one.kept for one in found if one.kept]
        heard = await asyncio.gather(
            *(self._heard(pending.pk, sound, transcriber, notes) for sound in sounds)
        )
        return MediaText(
            "".join(
                fences.label_medium(fences.MediaLabel.VOICE, words) for words in heard if words
            ),
            tuple(dict.fromkeys(notes)),
        )

    def _transcriber(self, pending: PendingMessage) -> SoundTranscriber | None:
        return self._find_transcriber(pending.persona.endpoints.get(ModelRole.TRANSCRIPTION, ()))

    async def _converted(
        self, chat: ChatAddress, ref: MediaRef, allowance: DownloadAllowance
    ) -> StoredFile | None:
        """The sound in the first format that the client offers; None when it offers none that can
        be had in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CONVERT_SECONDS):
                for out_format in FORMATS:
                    offered = await self._downloads.source.fetch_converted_voice(
                        chat, ref, out_format
                    )
                    with suppress(MediaUnavailable):
                        if offered is not None:  # and if that leads to nothing, no other link will
                            alone = replace(offered, message_id="")
                            return _fit(
                                await self._downloads.get(
                                    chat, alone, allowance, ENDINGS.__contains__
                                )
                            )
        return None

    async def _heard(
        self, message_pk: int, sound: StoredFile, transcriber: SoundTranscriber, notes: list[str]
    ) -> str:
        """The words in ``sound``, "" when there are none; ``notes`` get to know why."""

        async def ask() -> str:
            content = await asyncio.to_thread(sound.path.read_bytes)
            return await transcriber.transcribe(content, ENDINGS[sound.mime], sound.mime)

        question = DescriptionKey(sound.sha256, PROMPT_KIND, transcriber.name)
        try:
            words = await self._answers.get(message_pk, question, ask)
        except LLMError as error:
            notes += [NO_ANSWER, str(error)]
            return ""
        if not words:
            notes.append(NO_WORDS)
        return words

    def _why_not(self, pending: PendingMessage) -> tuple[str, ...]:
        has_voice = any(ref.kind in self.kinds for ref in pending.message.media)
        if self.wants(pending) or not has_voice:
            return ()
        return (NO_MODEL,) if self._transcriber(pending) is None else (NOT_ALLOWED,)


def _fit(sound: StoredFile) -> StoredFile:
    if sound.size > MOST_BYTES:
        raise MediaUnavailable(TOO_LARGE)
    return sound
