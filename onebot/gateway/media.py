"""The media of messages that have to be requested from the client.

Rules: https://github.com/botuniverse/onebot-11/blob/master/api/public.md (get_image,
get_record, get_msg, get_forward_msg); get_file and the addresses of files are NapCat's
and go-cqhttp's. Every answer is optional: clients forget messages, and some know none
of these actions.

Pictures, voice, videos and files to be sent: from the form on record to the form on the wire.

On record stands a URL, or ``file://`` and a path in the media folder. A client on another machine,
or in another container, cannot read that path, so files go out as Base64 up to a size, and larger
ones as the path. If a client refuses a message, it is rebuilt once with everything as Base64. URLs
are handled by :mod:`onebot.gateway.delivery`.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from agent.domain.errors import MediaError
from agent.domain.types import (
    ChatAddress,
    ForwardContent,
    ForwardedMessage,
    IncomingMessage,
    MediaOrigin,
    MediaRef,
)
from agent.media import media_folder
from agent.run.message_sender import new_echo
from onebot.connections.client import OneBotClient
from onebot.protocol import segments
from onebot.protocol.actions import OneBotError
from onebot.protocol.media_refs import (
    NAME_LIMIT,
    NODES,
    belongs_to_chat,
    find_forward_ids,
    find_forwards,
    find_inner_segments,
    has_forward,
    is_of_another_chat,
    parse_forward,
    parse_forwarded_messages,
    parse_media_answer,
    parse_media_refs,
    parse_told_message,
)
from onebot.protocol.segments import (
    BASE64,
    Base64File,
    Segment,
    id_number,
    parse_told,
    quoted_id,
    spoken_text,
    value_text,
)
from tools.error_boundary import LogLimit
from tools.text.storable import make_storable

MEDIA_TYPES = frozenset({"image", "record", "video", "file"})
#: The largest frame that is sent: NapCat closes the connection on more than 50 MiB.
MAX_FRAME_BYTES = 48 * 2**20
#: Bytes of files that one message takes along as Base64 at the first try.
INLINE_BYTES = 10 * 2**20
#: Bytes of files and of what is named by URL that fit into a frame as Base64, with 1 MiB left for
#: words.
INLINE_ROOM_BYTES = 35 * 2**20

_LOCAL = "file://"


def to_first_attempt(segments: Sequence[Segment], room: int) -> list[Segment]:
    """``segments`` as they are tried first: files as Base64 while they fit into ``room`` bytes, or
    by path.

    Reads files: blocks. Raises :class:`MediaError` for a file that is not there any more.
    """
    return _formed(segments, room, _read)


def to_base64_attempt(segments: Sequence[Segment], room: int) -> list[Segment]:
    """``segments`` with all files as Base64.

    Reads files: blocks. Raises :class:`MediaError` for what is not there, or does not fit into
    ``room`` bytes.
    """
    return _formed(segments, room, _whole)


def single_file(segments: Sequence[Segment]) -> Segment | None:
    """The file that a message consists of: files travel alone, by an action of their own."""
    return segments[0] if len(segments) == 1 and segments[0]["type"] == "file" else None


def local_path(segment: Segment) -> Path | None:
    """The path of a media segment on this machine."""
    file = _file(segment)
    return Path(file.removeprefix(_LOCAL)) if file.startswith(_LOCAL) else None


def media_url(segment: Segment) -> str:
    """What a media segment names that is no file of this machine, however it is spelled; "" for
    another segment.

    Clients read more spellings than begin with ``http://``, so all of them are judged.
    """
    file = _file(segment)
    return "" if file.startswith((_LOCAL, BASE64)) else file


def loaded_bytes(segments: Sequence[Segment]) -> int:
    """Bytes of the media that are Base64 already, counted before encoding."""
    files = (segment["data"].get("file") for segment in segments)
    return sum(file.size for file in files if isinstance(file, Base64File))


def sent_file_name(segment: Segment) -> str:
    """The name of a file in the chat."""
    if name := segment["data"].get("name"):
        return str(name)
    path = local_path(segment)
    return (
        path.name
        if path
        else unquote(urlsplit(media_url(segment)).path).rstrip("/").rpartition("/")[2] or "file"
    )


def fill_segment(segment: Segment, file: Base64File) -> Segment:
    """``segment`` with its content; a file keeps the name that its path or address had."""
    name = {"name": sent_file_name(segment)} if segment["type"] == "file" else {}
    return {"type": segment["type"], "data": {**segment["data"], "file": file, **name}}


def _file(segment: Segment) -> str:
    file = segment["data"].get("file") if segment["type"] in MEDIA_TYPES else None
    return file if isinstance(file, str) else ""


def _formed(
    segments: Sequence[Segment], room: int, read: Callable[[Path, int], Base64File | None]
) -> list[Segment]:
    formed = []
    for segment in segments:
        path = local_path(segment)
        file = read(path, room) if path else None
        room -= file.size if file else 0
        formed.append(fill_segment(segment, file) if file else segment)
    return formed


def _whole(path: Path, room: int) -> Base64File:
    file = _read(path, room)
    if file is None:
        raise MediaError(
            f"{path.name} is too large to be sent as Base64: {room >> 20} MiB are left in a message"
        )
    return file


def _read(path: Path, room: int) -> Base64File | None:
    with media_folder.open_media_file(path) as file:
        content = segments.read_base64(file, room)
    if content is not None and not content.size:
        raise MediaError(f"{path.name} is empty")
    return content


logger = logging.getLogger(__name__)
LogLimit(logger)


# Questions to clients that are asked once for all who want the answer at about the same time.

#: Answers that are kept, and for how long, in seconds: as long as one message is read.
MOST, KEPT_SECONDS = 200, 10.0
#: The same of the names of members.
MOST_MEMBERS, MEMBER_SECONDS = 1_000, 600.0


class SharedAnswers:
    """Keeps the tasks that ask, and what they were answered, for some seconds."""

    def __init__(self, most: int = MOST, kept_seconds: float = KEPT_SECONDS) -> None:
        self._most = most
        self._kept_seconds = kept_seconds
        self._tasks: dict[Hashable, asyncio.Task[object]] = {}

    async def get(self, key: Hashable, ask: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """What ``ask`` returns, now or for whoever wanted the same just before.

        After cancellation it is asked on, for the others. Where too many are kept, it is asked
        alone.
        """
        task = self._tasks.get(key)
        if task is None:
            if len(self._tasks) >= self._most:
                return await ask()
            loop = asyncio.get_running_loop()
            task = self._tasks[key] = loop.create_task(ask(), name="question to a client")
            task.add_done_callback(
                lambda _: loop.call_later(self._kept_seconds, self._tasks.pop, key, None)
            )
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Stop what is still being asked."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.clear()


#: Time for a client to answer a question about media, in seconds; forwards take some.
ASK_SECONDS = 10.0
#: Forwards of one message that are requested, nested ones included.
MAX_ASKED_FORWARDS = 4
#: Media of forwarded messages that are looked at; those who read them take fewer.
MOST_FORWARDED_MEDIA = 200


class OneBotMedia:
    """The :class:`agent.domain.types.MediaSource` of OneBot 11."""

    def __init__(self, client: OneBotClient) -> None:
        self._client = client
        self._shared = SharedAnswers()
        self._members = SharedAnswers(MOST_MEMBERS, MEMBER_SECONDS)

    async def close(self) -> None:
        """Stop what is still being asked."""
        await self._shared.close()
        await self._members.close()

    def parse_refs(
        self, segments: Sequence[Segment], message_id: str = "", origin: MediaOrigin = "message"
    ) -> list[MediaRef]:
        return parse_media_refs(segments, message_id, origin)

    def restore_media(self, message: IncomingMessage) -> IncomingMessage:
        segments = message.segments
        return replace(
            message,
            media=tuple(parse_media_refs(segments, message.message_id)),
            spoken_text=spoken_text(segments),
            quoted_id=quoted_id(segments),
        )

    def has_forward(self, segments: Sequence[Segment]) -> bool:
        return has_forward(segments)

    async def fetch_quoted_media(self, chat: ChatAddress, message_id: str) -> list[MediaRef]:
        segments = _told_segments(chat, await self._ask_message(chat, message_id))
        return parse_media_refs(segments, message_id, "quoted")

    async def fetch_forwarded_media(
        self, chat: ChatAddress, segments: Sequence[Segment]
    ) -> list[MediaRef]:
        messages, waiting, asked = (
            find_inner_segments(segments),
            find_forward_ids(segments),
            set[str](),
        )
        waiting += [one for message in messages for one in find_forward_ids(message)]
        while waiting and len(asked) < MAX_ASKED_FORWARDS:
            one = waiting.pop(0)
            if one not in asked:
                asked.add(one)
                inner = parse_forward(await self._ask_forward(chat, one))
                messages += inner
                waiting += [found for message in inner for found in find_forward_ids(message)]
        refs = (parse_media_refs(message, origin="forwarded") for message in messages[:NODES])
        return list(islice(chain.from_iterable(refs), MOST_FORWARDED_MEDIA))

    async def renew_address(self, chat: ChatAddress, ref: MediaRef) -> AsyncIterator[MediaRef]:
        for action, params in _address_actions(chat, ref):
            if isinstance(answer := await self._ask(chat, action, **params), dict):
                yield parse_media_answer(ref.kind, _without_path(answer), ref)
        if ref.message_id:
            answer = await self._ask(
                chat, "get_msg", message_id=id_number(ref.message_id, is_message=True)
            )
            found = parse_media_refs(_told_segments(chat, answer))
            fresh = [one for one in found if one.kind == ref.kind]
            same = [one for one in fresh if one.file == ref.file] or [
                one for one in fresh if one.index == ref.index
            ]
            for one in same[:1]:
                yield replace(one, message_id=ref.message_id, origin=ref.origin)

    async def fetch_converted_voice(
        self, chat: ChatAddress, ref: MediaRef, out_format: str
    ) -> MediaRef | None:
        answer = (
            await self._ask(chat, "get_record", file=ref.file, out_format=out_format)
            if ref.file
            else None
        )
        converted = (
            parse_media_answer(ref.kind, _without_path(answer), ref)
            if isinstance(answer, dict)
            else None
        )
        return converted if converted and (converted.url or converted.data) else None

    async def fetch_member_name(self, chat: ChatAddress, user_id: str) -> str:
        ask = partial(self._ask_member, chat, user_id)
        member = await self._members.get((chat.account, chat.peer_id, user_id), ask)
        names = (value_text(member.get(name)).strip() for name in ("card", "nickname"))
        return next(filter(None, names), "")[:NAME_LIMIT]

    async def fetch_message(self, chat: ChatAddress, message_id: str) -> ForwardedMessage | None:
        answer = await self._ask_message(chat, message_id)
        is_here = isinstance(answer, dict) and belongs_to_chat(chat, answer)
        return parse_told_message(answer, chat.account) if is_here else None

    async def fetch_quoted_message(
        self, chat: ChatAddress, message_id: str
    ) -> ForwardedMessage | None:
        answer = await self._ask_message(chat, message_id)
        is_here = isinstance(answer, dict) and not is_of_another_chat(chat, answer)
        return parse_told_message(answer, chat.account) if is_here else None

    async def fetch_forwarded_messages(
        self, chat: ChatAddress, segments: Sequence[Segment]
    ) -> ForwardContent:
        found, total, asked = list[ForwardedMessage](), 0, set[str]()
        for content, one in find_forwards(segments):
            if not content and one and (one in asked or len(asked) < MAX_ASKED_FORWARDS):
                asked.add(one)
                content = await self._ask_forward(chat, one)
            given = parse_forwarded_messages(content, chat.account)
            found += given.messages[: NODES - len(found)]
            total += given.total
        return ForwardContent(found, total)

    async def _ask_message(self, chat: ChatAddress, message_id: str) -> Any:
        """The answer to ``get_msg``, asked once for the media of a message and for its words."""
        ask = partial(self._ask, chat, "get_msg", message_id=id_number(message_id, is_message=True))
        return await self._shared.get((chat.account, "get_msg", message_id), ask)

    async def _ask_member(self, chat: ChatAddress, user_id: str) -> dict[str, Any]:
        params = {"group_id": id_number(chat.peer_id), "user_id": id_number(user_id)}
        response = await self._client.call_optional(
            chat.account, "get_group_member_info", params, ASK_SECONDS
        )
        data = response.data if response is not None and response.is_success else None
        return make_storable(data) if isinstance(data, dict) else {}

    async def _ask_forward(self, chat: ChatAddress, forward_id: str) -> object:
        """The answer to ``get_forward_msg``, asked once likewise. Clients differ in the name of the
        parameter; all leave alone what they do not know."""
        ask = partial(self._ask, chat, "get_forward_msg", id=forward_id, message_id=forward_id)
        return await self._shared.get((chat.account, "get_forward_msg", forward_id), ask)

    async def _ask(self, chat: ChatAddress, action: str, **params: object) -> Any:
        """What the client answers, None when it does not or cannot."""
        try:
            response = await self._client.call(
                chat.account, action, params, new_echo(), ASK_SECONDS
            )
        except OneBotError as error:
            logger.info("%s was not answered by %s: %s", action, chat.account, error)
            return None
        return response.data if response.is_success else None


def _told_segments(chat: ChatAddress, answer: Any) -> list[Segment]:
    """What a message holds, by the answer to ``get_msg``; nothing of one that is said to be of
    another chat."""
    is_here = isinstance(answer, dict) and not is_of_another_chat(chat, answer)
    return parse_told(answer.get("message")) if is_here else []


def _address_actions(chat: ChatAddress, ref: MediaRef) -> list[tuple[str, dict[str, object]]]:
    """The actions that may give a new address of ``ref`` itself."""
    if ref.kind == "image":
        return [("get_image", {"file": ref.file})] if ref.file else []
    if ref.kind == "file" and ref.file_id:
        return [_file_question(chat, ref), ("get_file", {"file_id": ref.file_id})]
    return []


def _file_question(chat: ChatAddress, ref: MediaRef) -> tuple[str, dict[str, object]]:
    """What is asked for the address of a file. What a client did not say of it, it does not need to
    hear."""
    if chat.kind == "group":
        shelf = {"busid": id_number(ref.busid)} if ref.busid else {}
        return "get_group_file_url", {
            "group_id": id_number(chat.peer_id),
            "file_id": ref.file_id,
            **shelf,
        }
    proof = {"file_hash": ref.file_hash} if ref.file_hash else {}
    return "get_private_file_url", {
        "user_id": id_number(chat.peer_id),
        "file_id": ref.file_id,
        **proof,
    }


def _without_path(answer: dict[str, object]) -> dict[str, object]:
    """``answer`` without the path on the client's machine that it names as the file; addresses are
    left."""
    file = answer.get("file")
    is_address = isinstance(file, str) and file.startswith(("http://", "https://", "base64://"))
    return answer if is_address else {**answer, "file": ""}
