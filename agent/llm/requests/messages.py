"""What the model is shown of a message: a frame of one line, then the words as they were said.

The frame is always the first line and always one line of JSON, made here. Names are escaped by
JSON, so no name can end it; everything after it, to the end of the message, came from the user. Its
mark occurs in no text from outside (:mod:`tools.text.fences`), and one message has the same form in
every request.
"""

import asyncio
import base64
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils import timezone

from agent.domain.endpoint import Endpoint
from tools.local_time import find_zone
from tools.processes.disk import run_on_disk_thread
from tools.text import fences

KEPT = "kept:"
#: What the model is shown in the place of a picture whose copy is gone.
GONE = {"type": "text", "text": "[图片]"}
#: Bytes of a picture that are encoded at a time; a multiple of three, so that Base64 has no padding
#: between.
CHUNK = 3 * 2**15


@dataclass(frozen=True, slots=True)
class ModelPicture:
    """A file as a model is shown it."""

    mime: str
    size: int
    path: Path


#: From a content hash to its picture; None for one that is gone. Blocks.
PictureLoader = Callable[[str], ModelPicture | None]
ChatMessage = dict[str, Any]
Messages = Sequence[ChatMessage]


def picture_part(sha256: str) -> dict[str, Any]:
    """The part of a message's content that shows the kept picture of that hash."""
    return {"type": "image_url", "image_url": {"url": f"{KEPT}{sha256}"}}


def kept_hash(part: object) -> str:
    """The hash of the kept picture that ``part`` shows, "" for any other part."""
    image = (
        part.get("image_url")
        if isinstance(part, dict) and part.get("type") == "image_url"
        else None
    )
    url = image.get("url") if isinstance(image, dict) else None
    return url.removeprefix(KEPT) if isinstance(url, str) and url.startswith(KEPT) else ""


def has_kept_pictures(messages: Messages) -> bool:
    lists = [parts for one in messages if isinstance(parts := one.get("content"), list)]
    return any(kept_hash(part) for parts in lists for part in parts)


class StreamedBody:
    """A request body of texts and pictures, read while it is sent, and from its beginning each
    time.

    A picture that is deleted meanwhile fails the request with OSError.
    """

    def __init__(self, pieces: Sequence[bytes | ModelPicture]) -> None:
        self._pieces = pieces
        self.size = sum(
            len(piece) if isinstance(piece, bytes) else -(-piece.size // 3) * 4 for piece in pieces
        )

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            if isinstance(piece, bytes):
                yield piece
                continue
            content = await run_on_disk_thread(piece.path.read_bytes)
            for start in range(0, len(content), CHUNK):
                yield base64.b64encode(content[start : start + CHUNK])
                await asyncio.sleep(0)  # the transport waits only when its buffer is full


async def encode_with_pictures(
    messages: Messages, album: PictureLoader, write: Callable[[Messages], bytes]
) -> StreamedBody:
    """What ``write`` makes of ``messages``, JSON, in which every kept picture is a data URL."""
    wanted = {kept_hash(part) for message in messages for part in _parts(message)} - {""}
    found = await run_on_disk_thread(lambda: {sha256: album(sha256) for sha256 in wanted})
    markers: dict[str, ModelPicture] = {}
    marked = [_with_markers(message, found, markers) for message in messages]
    return StreamedBody(list(_cut(write(marked), markers)))


def _parts(message: Mapping[str, object]) -> list[object]:
    content = message.get("content")
    return content if isinstance(content, list) else []


def _with_markers(
    message: dict[str, object],
    found: dict[str, ModelPicture | None],
    markers: dict[str, ModelPicture],
) -> dict[str, object]:
    """``message`` with a word that occurs nowhere else in the place of each picture, which is noted
    in ``markers``."""
    parts = _parts(message)
    return (
        {**message, "content": [_with_marker(part, found, markers) for part in parts]}
        if parts
        else message
    )


def _with_marker(
    part: Any, found: dict[str, ModelPicture | None], markers: dict[str, ModelPicture]
) -> Any:
    sha256 = kept_hash(part)
    if not sha256:
        return part
    picture = found[sha256]
    if picture is None:
        return GONE
    marker = uuid.uuid4().hex
    markers[marker] = picture
    return {
        "type": "image_url",
        "image_url": {**part["image_url"], "url": f"data:{picture.mime};base64,{marker}"},
    }


def _cut(text: bytes, markers: dict[str, ModelPicture]) -> Iterator[bytes | ModelPicture]:
    """``text`` cut at the places, which stand in it in their order, with the pictures between."""
    for marker, picture in markers.items():
        before, _, text = text.partition(marker.encode())
        yield before
        yield picture
    yield text


#: Of a sender in a group; what else a client says is not shown.
ROLES = ("owner", "admin", "member")


@dataclass(frozen=True, slots=True)
class SpokenMessage:
    """The text of a message, with who, where and when. ``seen`` is the text read from its media,
    under labels."""

    text: str
    sender_id: str
    sender_name: str
    chat: str
    message_id: str = ""
    happened_at: datetime | None = None
    seen: str = ""
    pictures: tuple[str, ...] = ()
    """Content hashes of kept pictures that the model is shown after the words."""
    sender_role: str = ""
    bot: str = ""
    """The number of the account that it was said to."""
    header: Mapping[str, Any] | None = None
    """``chat_name`` and ``mentions`` of a group's message, and the ``zone`` of its time where that
    was not the machine's, as they were recorded with it. Without a header the frame has no role
    and no bot either: so a message of an earlier version keeps its frame. A private one has neither
    in any case."""
    context: str = ""
    """The fenced words of what it quotes and forwards, as they follow its own."""


def build_speaker_frame(speech: SpokenMessage) -> str:
    """The one-line header that goes before the words."""
    header = speech.header or {}
    mentions = header.get("mentions") or ()
    at, zone = speech.happened_at, find_zone(header.get("zone") or settings.MACHINE_TIME_ZONE)
    is_private = speech.chat.startswith("private:")
    return _frame(
        speech.sender_id,
        speech.sender_name,
        None if speech.header is None or is_private else speech.sender_role,
        speech.chat,
        header.get("chat_name") or "",
        speech.bot,
        speech.message_id,
        "" if at is None else timezone.localtime(at, zone).strftime("%Y-%m-%d %H:%M"),
        tuple((one["user_id"], one.get("name", "")) for one in mentions),
    )


@lru_cache(maxsize=5_000, typed=True)  # each message stands in the history of many requests
def _frame(
    sender_id: str,
    sender_name: str,
    role: str | None,
    chat: str,
    chat_name: str,
    bot: str,
    message_id: str,
    time: str,
    mentions: tuple[tuple[str, str], ...],
) -> str:
    """``role`` is None for a message without a header of its own."""
    sender = _person(sender_id, sender_name)
    header: dict[str, object] = {"sender": sender, "chat": chat}
    if role is not None:
        if role in ROLES:
            sender["role"] = role
        if chat_name:
            header["chat_name"] = chat_name
        header["bot"] = bot
    if message_id:
        header["message_id"] = message_id
    if time:
        header["time"] = time
    if mentions:  # PostgreSQL does not keep the order of keys
        header["mentions"] = [_person(*one) for one in mentions]
    return fences.build_frame(fences.PERSON, header)


def _person(user_id: str, name: str) -> dict[str, str]:
    person = {"user_id": user_id}
    if name := fences.clean_name(name):
        person["name"] = name
    return person


def user_message(speech: SpokenMessage) -> ChatMessage:
    said = fences.neutralize_marks(speech.text)
    if speech.seen:
        said = (said + fences.strip_marks(speech.seen)).strip()
    text = f"{build_speaker_frame(speech)}\n{said}"
    if speech.context:
        text = f"{text}\n{speech.context}"
    if not speech.pictures:
        return {"role": "user", "content": text}
    return {
        "role": "user",
        "content": [{"type": "text", "text": text}, *map(picture_part, speech.pictures)],
    }


def content_text(content: object) -> str:
    """The words of a message's content: text, parts of which some are text, or nothing."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    return "".join(
        part["text"]
        for part in content
        if isinstance(part, dict) and isinstance(part.get("text"), str)
    )


def outcome_message(speech: SpokenMessage, tool_name: str) -> ChatMessage:
    """What introduces the outcome of an earlier call, which follows: a frame like a person's, and
    no person's words."""
    asked = {
        "event": "tool_result",
        "tool": tool_name,
        "requested_by": speech.sender_id,
        "chat": speech.chat,
    }
    if speech.message_id:
        asked["message_id"] = speech.message_id
    header = fences.build_frame(fences.OUTCOME, asked)
    return {
        "role": "user",
        "content": f"{header}\n此前的工具调用有了结果（见下）。请把结果告诉提出请求的人。",
    }


def strip_frame(content: str) -> str:
    """What stands below the frame of a user's message; all of a message without one."""
    header, newline, text = content.partition("\n")
    return text if newline and fences.is_framed(header) else content


def assistant_message(text: str) -> ChatMessage:
    """What the bot said before; it may have been asked to say a frame."""
    return {"role": "assistant", "content": fences.neutralize_marks(text)}


def system_message(text: str) -> ChatMessage:
    return {"role": "system", "content": text}


# What a model said beside its words and calls goes back to that model, and to no other. Pure.
#
# An assistant message with such extras names who said it under :data:`SPEAKER`, which is private:
# no endpoint is sent it. Thoughts, signatures and the like mean something only to who made them;
# DeepSeek's and Gemini's endpoints refuse a request in which their own are missing, others one in
# which they stand.

SPEAKER = "$speaker"
STANDARD = frozenset({"role", "content", "name", "tool_calls", "tool_call_id"})
"""Keys of a message that every endpoint knows."""
CALL_KEYS = frozenset({"id", "type", "function"})
FUNCTION_KEYS = frozenset({"name", "arguments"})


def messages_for(endpoint: Endpoint, messages: list[ChatMessage]) -> list[ChatMessage]:
    """``messages`` as ``endpoint`` may be sent them: the very same list where nobody's extras are
    among them."""
    if not [True for message in messages if SPEAKER in message]:
        return messages
    speaker = endpoint.speaker
    return [
        _for_speaker(message, speaker) if SPEAKER in message else message for message in messages
    ]


def strip_extras(message: ChatMessage) -> ChatMessage:
    """``message`` without what only its speaker understands; the very same without any."""
    if not has_extras(message):
        return message
    plain = _only(message, STANDARD)
    if "tool_calls" in plain:
        plain["tool_calls"] = [
            {**_only(call, CALL_KEYS), "function": _only(call["function"], FUNCTION_KEYS)}
            for call in plain["tool_calls"]
        ]
    return plain


def has_extras(message: ChatMessage) -> bool:
    """Whether ``message`` holds more than every endpoint knows."""
    return not message.keys() <= STANDARD or any(
        not (call.keys() <= CALL_KEYS and call["function"].keys() <= FUNCTION_KEYS)
        for call in message.get("tool_calls") or ()
    )


def _for_speaker(message: ChatMessage, speaker: str) -> ChatMessage:
    if message[SPEAKER] != speaker:
        return strip_extras(message)
    return {key: value for key, value in message.items() if key != SPEAKER}


def _only(fields: Mapping[str, object], keys: frozenset[str]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key in keys}
