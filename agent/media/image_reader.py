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
(:class:`agent.media.media_store.DescriptionCache`).
"""

import asyncio
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from django.conf import settings
from django.utils.translation import gettext_noop

from agent.domain.endpoint import ModelRole
from agent.domain.errors import LLMError
from agent.domain.file_types import PICTURES
from agent.domain.persona import PersonaSettings
from agent.domain.types import IncomingMessage, MediaKind, MediaRef, MediaUnavailable
from agent.llm.requests.base import LLMClient, LLMRequest
from agent.llm.requests.messages import ChatMessage, picture_part, system_message
from agent.media.downloads import DownloadAllowance, MediaDownloader
from agent.media.file_store import StoredFile
from agent.media.media_store import DescriptionCache, DescriptionKey, NewDescription
from agent.media.pipeline import FetchedMedia, MediaText, note_missing_media
from agent.record.waiting.recovery import PendingMessage
from tools.processes.disk import run_on_disk_thread
from tools.text import fences

#: A picture that takes longer is given up, and its process ended; in seconds.
JOB_SECONDS = 20.0
#: How long the process is kept without work, in seconds.
IDLE_SECONDS = 600.0
#: Longest side and bytes of the picture that a persona keeps.
PORTRAIT_SIDE, PORTRAIT_BYTES = 512, 2**18
Pipe = TypeVar("Pipe", asyncio.StreamReader, asyncio.StreamWriter)
COMMAND = (sys.executable, "-m", "agent.media.image_decoder")
ROOT = Path(__file__).resolve().parents[2]

BROKEN = gettext_noop("the picture cannot be decoded")
TOO_LARGE = gettext_noop("the picture has too many pixels")
NO_PROCESS = gettext_noop("the program that decodes pictures cannot be started")
TOO_SLOW = gettext_noop("the picture takes too long to decode")


@dataclass(frozen=True, slots=True)
class ImageJob:
    """How to convert the picture ``source``, by the rules of :mod:`agent.media.image_decoder`."""

    source: Path
    target: Path
    side: int
    size: int
    pixels: int
    always: bool = False
    """Whether a picture within the limits is converted too."""
    lossless: bool = False

    def line(self) -> bytes:
        fields = {
            "source": str(self.source),
            "target": str(self.target),
            "side": self.side,
            "bytes": self.size,
            "pixels": self.pixels,
            "always": self.always,
            "lossless": self.lossless,
        }
        return json.dumps(fields).encode() + b"\n"


class ImageWorker:
    """Decodes one picture at a time, in a process of its own that is started when there is work.

    The event loop only waits. A picture that ends the process costs itself alone.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._child: asyncio.Task[Process] | None = None
        self._rest: asyncio.TimerHandle | None = None
        self._ending: asyncio.Task[None] | None = None

    def warm_up(self) -> None:
        """Start the process, for there will be work soon. Returns at once."""
        if self._child is None:
            self._child = asyncio.create_task(_start(), name="decoder")

    async def process(self, job: ImageJob) -> None:
        """Do ``job``; its target is there afterwards unless the source is fit as it is.

        Raises :class:`MediaUnavailable` for what is no picture or too much of one. After
        cancellation the job is stopped.
        """
        async with self._turn:
            answer = await self._ask(job.line())
        _check(answer)

    async def close(self) -> None:
        """End the process; another one starts with the next job."""
        if self._rest is not None:
            self._rest.cancel()
        started, self._child = self._child, None
        if started is not None:
            child = await started
            with suppress(ProcessLookupError):
                child.kill()
            await child.wait()
        if self._ending is not None:
            await self._ending

    async def _ask(self, line: bytes) -> bytes:
        """The answer, b"" when the process ended over the job."""
        child = await self._running()
        answer = b""
        try:
            async with asyncio.timeout(JOB_SECONDS):
                _pipe(child.stdin).write(line)
                await _pipe(child.stdin).drain()
                answer = await _pipe(child.stdout).readline()
        except TimeoutError as error:
            raise MediaUnavailable(TOO_SLOW) from error
        except ConnectionError:
            return b""
        finally:
            if not answer:  # an answer that is not read would be taken for that to the next job
                await asyncio.shield(self.close())
        if self._rest is not None:
            self._rest.cancel()
        self._rest = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._let_go)
        return answer

    async def _running(self) -> Process:
        self.warm_up()
        assert self._child is not None  # noqa: S101 - since the line before
        try:
            return await asyncio.shield(self._child)
        except OSError as error:
            self._child = None
            raise MediaUnavailable(NO_PROCESS) from error

    def _let_go(self) -> None:
        """End the process by the end of its input, if nothing is asked of it just now."""
        if self._child is not None and not self._turn.locked():
            self._ending = asyncio.create_task(_end(self._child.result()))
            self._child = None


async def _start() -> Process:
    # Without this process's environment, which holds the keys; in a group of its own,
    # so that Ctrl-C in a terminal does not end it before the work is done. Not in a
    # session of its own: Linux shares the processor among sessions first (sched(7),
    # autogroup), and that this process is nice would be of no use to the others.
    return await asyncio.create_subprocess_exec(
        *COMMAND, cwd=ROOT, env=_environment(), stdin=PIPE, stdout=PIPE, process_group=0
    )


def process_image_now(job: ImageJob) -> None:
    """Do ``job`` in a process of its own and wait for it: for pages, which are made in threads.

    Raises :class:`MediaUnavailable` as :meth:`ImageWorker.process` does.
    """
    try:
        done = subprocess.run(  # noqa: S603 - the command is this program's own
            COMMAND,
            input=job.line(),
            stdout=PIPE,
            cwd=ROOT,
            env=_environment(),
            timeout=JOB_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise MediaUnavailable(TOO_SLOW) from error
    except OSError as error:
        raise MediaUnavailable(NO_PROCESS) from error
    _check(done.stdout)


def make_portrait(content: bytes) -> bytes:
    """``content`` as a PNG that a persona keeps, without all that a file has beside its picture;
    what this has made stays as it is. For pages and commands, as :func:`process_image_now`.

    Raises :class:`MediaUnavailable` for what is no picture or too much of one.
    """
    with tempfile.TemporaryDirectory(prefix="frost-portrait-") as folder:
        source, target = Path(folder, "source"), Path(folder, "target")
        source.write_bytes(content)
        job = build_model_image_job(source, target)
        small = replace(job, side=PORTRAIT_SIDE, size=PORTRAIT_BYTES)
        process_image_now(replace(small, always=True, lossless=True))
        return target.read_bytes()


def _environment() -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def _check(answer: bytes) -> None:
    """Raise :class:`MediaUnavailable` for an answer that says so, or for none."""
    if not answer:
        raise MediaUnavailable(BROKEN)
    if error := json.loads(answer).get("error"):
        raise MediaUnavailable(TOO_LARGE if "too many pixels" in error else BROKEN)


async def _end(child: Process) -> None:
    _pipe(child.stdin).close()
    await child.wait()


def _pipe(pipe: Pipe | None) -> Pipe:
    assert pipe is not None  # noqa: S101 - both are asked for
    return pipe


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

    def _model(self, persona: PersonaSettings) -> LLMClient | None:
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
