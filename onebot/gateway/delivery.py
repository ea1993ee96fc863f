"""Delivering messages to chats, and reporting the outcome."""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.utils import timezone

from agent.domain.errors import MediaError
from agent.domain.manners import ChatManners
from agent.domain.states import NOT_WRITTEN, MessageState, Pause, PauseReason
from agent.domain.types import DEFAULT_ACCOUNT, AccountSettings, ChatAddress, Delivery, MessagePart
from onebot.connections.client import OneBotClient
from onebot.gateway import bots, media as media
from onebot.gateway.media import (
    INLINE_ROOM_BYTES,
    MAX_FRAME_BYTES,
    fill_segment,
    media_url,
)
from onebot.gateway.signs import WorkSigns
from onebot.gateway.voice import VoiceWatch
from onebot.protocol import segments
from onebot.protocol.actions import (
    ActionResponse,
    FrameTooLarge,
    NotConnected,
    OneBotError,
    download_action,
    encode_action,
    forward_action,
    forward_nodes,
    is_forward,
    send_action,
    upload_action,
)
from onebot.protocol.events import find_pause, is_about_quote
from onebot.protocol.segments import Base64File, Segment, segments_from_parts
from tools.fetch.allow_list import AllowList
from tools.fetch.fetcher import Fetcher
from tools.fetch.request import FetchError, FetchRequest, FetchResponse, TooLarge, parse_url
from tools.processes import crash_points
from tools.time_limits import TIME_LIMITS

# When the next message of an account may be written, so that QQ's risk control has no reason to
# stop it. In the memory of one process: that which holds the account's socket runs its chats.
#
# Folk numbers, none documented by Tencent: about one message a second and account, with small
# bursts, and twenty a minute and group.

#: Messages that may be sent at once after a rest, however low the rate is.
LEAST_BURST = 5
#: Random seconds at most by which a message waits longer that has to wait at all.
JITTER_SECONDS = 0.3
#: Accounts and chats from which on those are forgotten that have rested long enough.
SWEEP_FROM = 1_000


@dataclass(slots=True)
class _Lane:
    """What one account or chat has reserved."""

    due: float = 0.0
    """When its bucket is full again; in the past it is as good as forgotten."""
    last: float = 0.0
    """When the message that was asked for last is to be written."""

    per_minute: int = 0

    def next_free(self, now: float, per_minute: int) -> float:
        if per_minute and self.per_minute and self.due > now:  # as many messages, at the new rate
            self.due = now + (self.due - now) * self.per_minute / per_minute
        self.per_minute = per_minute
        burst = max(LEAST_BURST, per_minute // 2)
        return max(now, self.due - (burst - 1) * 60 / per_minute) if per_minute else now

    def reserve(self, at: float, per_minute: int) -> None:
        if per_minute:
            self.due = max(self.due, at) + 60 / per_minute


@dataclass(slots=True)
class Pacer:
    """Two token buckets for each message: its account's, and its chat's. ``clock`` counts monotonic
    seconds."""

    clock: Callable[[], float] = time.monotonic
    jitter: Callable[[], float] = lambda: random.random() * JITTER_SECONDS  # noqa: S311
    _lanes: dict[str | ChatAddress, _Lane] = field(default_factory=dict)
    _sweep_from: int = SWEEP_FROM

    def next_turn(self, chat: ChatAddress, account_rate: int, chat_rate: int) -> float:
        """Reserve the next turn of ``chat``; the seconds until it, 0.0 for now. Rates are messages
        a minute, 0 for no limit.

        Turns come in the order in which they were asked for. One that is not used is lost, no more.
        """
        if not (account_rate or chat_rate):
            return 0.0
        now = self.clock()
        if len(self._lanes) >= self._sweep_from:
            self._lanes = {
                key: lane for key, lane in self._lanes.items() if max(lane.due, lane.last) > now
            }
            self._sweep_from = max(SWEEP_FROM, 2 * len(self._lanes))
        whole = self._lanes.setdefault(chat.account, _Lane())
        own = self._lanes.setdefault(chat, _Lane())
        # The account counts what a slow chat holds back when it is asked for: other chats do not
        # wait for that chat.
        turn = whole.next_free(now, account_rate)
        whole.reserve(turn, account_rate)
        turn = max(own.next_free(turn, chat_rate), own.last)
        own.reserve(turn, chat_rate)
        own.last = turn if turn <= now else turn + self.jitter()
        return max(0.0, own.last - now)


# Media that a message names by URL, loaded here: a client that loads a URL could be made to reach
# its own network.

logger = logging.getLogger(__name__)

#: Up to so many bytes, a message's media are loaded in parallel with many others; larger ones have
#: few slots.
SMALL_BYTES = 4 * 2**20
#: Messages with media of the web at a time, and how many of them may be large: each takes about
#: four times its bytes.
AT_ONCE, LARGE_AT_ONCE = 32, 2
#: For all media of one message, turns included: it leaves most of a tool's time to the client.
LOAD_SECONDS = 60.0
TOO_SLOW = "网址中的媒体未能及时加载，没有发送，可以稍后再试。"


class WebMedia:
    """Loads and judges URLs for all accounts of a process; belongs to the event loop that first
    uses it."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._large_turns = asyncio.Semaphore(LARGE_AT_ONCE)

    async def load(self, segments: Sequence[Segment], turns: AsyncExitStack) -> list[Segment]:
        """``segments`` with the content of their URLs as Base64; what is too large stays a URL,
        once that was judged.

        The turns that the content takes are left in ``turns``, to be given back together
        with it. Raises :class:`MediaError` for what cannot be had.
        """
        try:
            async with asyncio.timeout(LOAD_SECONDS):
                await turns.enter_async_context(self._turns)
                try:
                    return await self._loaded(segments, SMALL_BYTES)
                except TooLarge:
                    await turns.enter_async_context(self._large_turns)
                return await self._loaded(segments, INLINE_ROOM_BYTES, may_stay=True)
        except (TimeoutError, FetchError) as error:
            raise _said(segments, error) from error

    async def judge(self, segments: Sequence[Segment]) -> list[Segment]:
        """``segments`` with their URLs, as they are read here. Raises :class:`MediaError` for one
        that is not public."""
        try:
            async with asyncio.timeout(LOAD_SECONDS):
                return [
                    await self._judged(segment) if media_url(segment) else segment
                    for segment in segments
                ]
        except (TimeoutError, FetchError) as error:
            raise _said(segments, error) from error

    async def found(self, segment: Segment) -> str:
        """The URL of ``segment`` behind all redirects, once its content was seen, for a client that
        takes nothing else.

        Raises :class:`MediaError`.
        """
        try:
            async with asyncio.timeout(LOAD_SECONDS), self._large_turns:
                try:
                    address = (await self._download(segment, INLINE_ROOM_BYTES)).url
                except TooLarge:
                    address = media_url(segment)
                return await self._public(address)
        except (TimeoutError, FetchError) as error:
            raise _said([segment], error) from error

    async def close(self) -> None:
        """Close what is open; a later message opens it again."""
        await self._fetcher.close()

    async def _loaded(
        self, segments: Sequence[Segment], room: int, *, may_stay: bool = False
    ) -> list[Segment]:
        """With at most ``room`` bytes in all. ``may_stay``: what does not fit stays a URL;
        otherwise raises :class:`TooLarge`."""
        formed = []
        for segment in segments:
            if not media_url(segment):
                formed.append(segment)
                continue
            try:
                content = await self._content(segment, room)
            except TooLarge:
                if not may_stay:
                    raise
                formed.append(await self._judged(segment))
            else:
                room -= content.size
                formed.append(fill_segment(segment, content))
        return formed

    async def _content(self, segment: Segment, room: int) -> Base64File:
        body = (await self._download(segment, room)).body
        if not body:
            raise MediaError("该网址的内容是空的，没有发送。")
        return await asyncio.to_thread(segments.encode_base64, body)

    async def _download(self, segment: Segment, room: int) -> FetchResponse:
        return await self._fetcher.download(
            FetchRequest(media_url(segment), max_bytes=room, seconds=LOAD_SECONDS)
        )

    async def _judged(self, segment: Segment) -> Segment:
        return {
            "type": segment["type"],
            "data": {**segment["data"], "file": await self._public(media_url(segment))},
        }

    async def _public(self, address: str) -> str:
        """``address`` as it was parsed. All addresses of its host are checked: a later lookup may
        return any of them."""
        url = parse_url(address)
        await self._fetcher.destinations.require_all(url.raw_host or "")
        return str(url)


def _said(segments: Sequence[Segment], error: FetchError | TimeoutError) -> MediaError:
    logger.info(
        "Media of %s were not sent: %s",
        ", ".join(filter(None, map(media_url, segments))),
        error or "out of time",
    )
    return MediaError(error.text if isinstance(error, FetchError) else TOO_SLOW)


State = MessageState

#: Time for a client to answer a send, in seconds; NapCat itself waits 10 s and more for QQ.
SEND_TIMEOUT = TIME_LIMITS.send
#: The same with media that the client has to load first, and beyond that for each MiB in the frame.
MEDIA_TIMEOUT = 120.0
SECONDS_PER_MIB = 5.0
#: The same for files, which groups keep for themselves and people are asked to take.
UPLOAD_TIMEOUT = 180.0
#: Beginnings of the User-Agent of clients whose upload actions take nothing but a path on their own
#: machine:
#: go-cqhttp and Lagrange. They load an address by an action of its own.
PATHS_ONLY = ("CQHttp", "Lagrange")
#: How many times the messages to one chat an account may send to all, where no row says it.
CHATS_AT_A_TIME = 3
#: Characters in one value from which a message is encoded in a thread.
LARGE_VALUE = 2**20
#: How long a pause is believed that never came on record, in seconds.
UNRECORDED_SECONDS = 60.0
#: Characters of a client's error text that are kept.
ERROR_LIMIT = 1_000


class OneBotDelivery:
    """The :class:`agent.domain.types.Outbox` of OneBot 11."""

    takes_any_length = False

    def __init__(
        self,
        client: OneBotClient,
        on_paused: Callable[[ChatAddress, PauseReason], None] | None = None,
        explain: Callable[[ChatAddress, str, str], Awaitable[str]] | None = None,
        on_voice: Callable[[str, datetime | None], None] = lambda *_: None,
    ) -> None:
        """``on_paused`` is called when a client refuses a message because the account cannot speak
        in its group; ``explain`` says more of any other refusal, of the message with that
        echo, than the client does; ``on_voice`` is that of :class:`VoiceWatch`."""
        self._client = client
        self.voice = VoiceWatch(on_voice)
        self._on_paused = on_paused
        self._explain = explain
        self._pauses: dict[ChatAddress, Pause] = {}
        self._accounts: Mapping[str, AccountSettings] = {}
        self._signs = WorkSigns(client)
        self._pacer = Pacer()
        self._usual_rate: int = settings.CHAT_ANSWERS_PER_MINUTE
        self._web = WebMedia(Fetcher(AllowList.parse(settings.FETCH_ALLOW, "model")))

    def compose(self, parts: Sequence[MessagePart]) -> list[dict[str, object]]:
        return segments_from_parts(parts)

    def compose_forward(
        self, chat: ChatAddress, messages: Sequence[Sequence[MessagePart]]
    ) -> list[dict[str, object]]:
        name = settings.BOT_NAME or chat.account
        return forward_nodes(chat.account, name, map(segments_from_parts, messages))

    def load_accounts(self) -> Mapping[str, AccountSettings]:
        return bots.load_accounts()

    def replace_accounts(self, accounts: Mapping[str, AccountSettings]) -> None:
        self._accounts = accounts
        self.voice.voiceless = {name for name, one in accounts.items() if one.is_voiceless}

    def replace_pauses(self, pauses: Mapping[ChatAddress, Pause]) -> None:
        self._pauses = dict(pauses)

    def is_connected(self, chat: ChatAddress) -> bool:
        return self._client.is_connected(chat.account)

    async def wait_connected(self, chat: ChatAddress, seconds: float) -> bool:
        return await self._client.wait_connected(chat.account, seconds)

    def show_working(
        self, chat: ChatAddress, message_id: str, manners: ChatManners, *, is_on: bool
    ) -> None:
        self._signs.show(chat, message_id, manners, is_on=is_on)

    def next_turn(self, chat: ChatAddress, sends_per_minute: int | None = None) -> float:
        usual = self._usual_rate
        own = self._settings_of(chat.account).sends_per_minute
        return self._pacer.next_turn(
            chat,
            CHATS_AT_A_TIME * usual if own is None else own,
            usual if sends_per_minute is None else sends_per_minute,
        )

    async def deliver(
        self, chat: ChatAddress, segments: list[Segment], *, echo: str, temp_group_id: str = ""
    ) -> Delivery:
        if (pause := self._pauses.get(chat)) and not pause.is_over(timezone.now()):
            return Delivery(State.FAILED, error=NOT_WRITTEN[pause.reason], pause=pause.reason)
        try:
            async with AsyncExitStack() as turns:
                has_media = any(segment["type"] in media.MEDIA_TYPES for segment in segments)
                name, params = (
                    await self._action(chat, segments, echo, temp_group_id, turns)
                    if has_media or is_forward(segments)
                    else send_action(chat.kind, chat.peer_id, segments, temp_group_id)
                )
                could_be_base64 = has_media and self._could_be_base64(chat.account, params)
                text = (
                    await asyncio.to_thread(_frame, name, params, echo)
                    if _is_large(params)
                    else _frame(name, params, echo)
                )
                del params  # one copy of large media is enough while the client takes its time
                seconds = _timeout_seconds(segments, len(text)) if has_media else SEND_TIMEOUT
                response = await self._client.send(chat.account, text, echo, seconds)
        except MediaError as error:
            return Delivery(State.FAILED, error=str(error))
        except NotConnected as error:
            return Delivery(State.PENDING, error=str(error))
        except OneBotError as error:
            if not error.may_have_arrived:
                return Delivery(State.FAILED, error=str(error))
            self.voice.failed(chat.account)
            return Delivery(State.UNKNOWN, error=str(error))
        crash_points.hit_crash_point("answer_received")
        delivery = to_delivery(response)
        if delivery.state == State.DELIVERED:
            if self.voice.failures or self.voice.voiceless:
                self.voice.arrived(chat.account)
            return delivery
        if delivery.state == State.UNKNOWN:
            self.voice.failed(chat.account)
            return delivery
        if reason := find_pause(response):
            return self._paused(chat, delivery, reason)
        user_agent = self._client.user_agent(chat.account)
        types = {segment["type"] for segment in segments}
        if "reply" in types and len(types) > 1 and is_about_quote(response, user_agent):
            return replace(
                delivery,
                fallback=partial(_without_quote, segments),
                fallback_form="without the quote",
            )
        if could_be_base64:
            return replace(delivery, fallback=partial(self._load_as_base64, segments))
        self.voice.failed(chat.account)
        if self._explain is not None:
            return replace(delivery, error=await self._explain(chat, echo, delivery.error))
        return delivery

    def _paused(self, chat: ChatAddress, delivery: Delivery, reason: PauseReason) -> Delivery:
        """Write nothing more to a group in which the account cannot speak: trying on puts the
        account at risk (NapCatQQ#398)."""
        if chat.kind != "group":
            return delivery
        end = timezone.now() + timedelta(seconds=UNRECORDED_SECONDS)
        self._pauses[chat] = Pause(reason, end)  # until the record says more
        if self._on_paused is not None:
            self._on_paused(chat, reason)
        return replace(delivery, pause=reason)

    async def close(self) -> None:
        """Close what media are loaded with, and show nothing more."""
        await self._signs.close()
        await self._web.close()

    async def _action(
        self,
        chat: ChatAddress,
        segments: list[Segment],
        echo: str,
        temp_group_id: str,
        turns: AsyncExitStack,
    ) -> tuple[str, dict[str, object]]:
        """What is asked of the client, with media read and loaded, whose turns are left in
        ``turns``. Raises :class:`MediaError`."""
        if is_forward(segments):
            return forward_action(chat.kind, chat.peer_id, segments)
        file = media.single_file(segments)
        if file is not None and (not media.media_url(file) or self._takes_paths_only(chat.account)):
            return upload_action(
                chat.kind,
                chat.peer_id,
                await self._upload(chat.account, file, echo),
                media.sent_file_name(file),
            )
        if any(map(media.media_url, segments)):
            by_url = self._settings_of(chat.account).media_by_url
            segments = await (
                self._web.judge(segments) if by_url else self._web.load(segments, turns)
            )
        if any(map(media.local_path, segments)):
            room = min(media.INLINE_BYTES, media.INLINE_ROOM_BYTES - media.loaded_bytes(segments))
            segments = await asyncio.to_thread(media.to_first_attempt, segments, room)
        return send_action(chat.kind, chat.peer_id, segments, temp_group_id)

    async def _upload(self, account: str, file: Segment, echo: str) -> str | Base64File:
        """What an upload action is given as its file."""
        if media.media_url(file):
            return await self._download_by_client(
                account, await self._address(account, file), f"{echo}-download"
            )
        (formed,) = await asyncio.to_thread(
            media.to_first_attempt,
            [file],
            0 if self._takes_paths_only(account) else media.INLINE_BYTES,
        )
        path = media.local_path(formed)
        return str(path) if path else formed["data"]["file"]

    async def _address(self, account: str, file: Segment) -> str:
        """The URL of ``file`` for a client that cannot be given its content."""
        if not self._settings_of(account).media_by_url:
            return await self._web.found(file)
        (judged,) = await self._web.judge([file])
        return media.media_url(judged)

    async def _download_by_client(self, account: str, address: str, echo: str) -> str:
        """Where a client has put a file that it was asked to download. After any failure nothing is
        sent."""
        try:
            action, params = download_action(address)
            response = await self._client.call(account, action, params, echo, MEDIA_TIMEOUT)
        except OneBotError as error:
            raise MediaError(f"the client did not load {address}: {error}") from error
        if not (path := response.file):
            raise MediaError(
                f"the client did not load {address}: {response.error_text[:ERROR_LIMIT]}"
            )
        return path

    def _takes_paths_only(self, account: str) -> bool:
        return self._client.user_agent(account).startswith(PATHS_ONLY)

    def _settings_of(self, account: str) -> AccountSettings:
        return self._accounts.get(account, DEFAULT_ACCOUNT)

    def _could_be_base64(self, account: str, params: dict[str, Any]) -> bool:
        """Whether the client was left to find media by itself that can be made Base64, and would
        take it so."""
        if "file" in params:
            return isinstance(params["file"], str) and not self._takes_paths_only(account)
        by_url = self._settings_of(account).media_by_url
        return any(
            media.local_path(segment) or (by_url and media.media_url(segment))
            for segment in params.get("message", ())
        )

    async def _load_as_base64(self, segments: list[Segment]) -> list[Segment]:
        """The second form of a message. Raises :class:`MediaError`."""
        async with AsyncExitStack() as turns:
            loaded = (
                await self._web.load(segments, turns)
                if any(map(media.media_url, segments))
                else segments
            )
            return await asyncio.to_thread(
                media.to_base64_attempt,
                loaded,
                media.INLINE_ROOM_BYTES - media.loaded_bytes(loaded),
            )


def _frame(name: str, params: Mapping[str, object], echo: str) -> str:
    """The text of a frame. Raises :class:`FrameTooLarge`."""
    text = encode_action(name, params, echo)
    if len(text) > MAX_FRAME_BYTES or len(text.encode()) > MAX_FRAME_BYTES:
        raise FrameTooLarge(f"the message is larger than {MAX_FRAME_BYTES >> 20} MiB")
    return text


def _is_large(params: dict[str, Any]) -> bool:
    """Whether encoding takes long enough to keep other sockets waiting."""
    values = [
        params.get("file"),
        *(value for segment in params.get("message", ()) for value in segment["data"].values()),
    ]
    return any(
        isinstance(value, Base64File) or (isinstance(value, str) and len(value) > LARGE_VALUE)
        for value in values
    )


async def _without_quote(segments: list[Segment]) -> list[Segment]:
    return [segment for segment in segments if segment["type"] != "reply"]


def _timeout_seconds(segments: Sequence[Segment], length: int) -> float:
    """Seconds for the client to answer to media: it loads addresses and converts voice before it
    does."""
    return (
        UPLOAD_TIMEOUT if media.single_file(segments) else MEDIA_TIMEOUT
    ) + length / 2**20 * SECONDS_PER_MIB


def to_delivery(response: ActionResponse) -> Delivery:
    """The outcome of a message, by the client's answer to the send."""
    if response.is_success:
        return Delivery(State.DELIVERED, message_id=response.message_id)
    if response.is_uncertain:
        return Delivery(State.UNKNOWN, error=response.error_text[:ERROR_LIMIT])
    return Delivery(State.FAILED, error=response.error_text[:ERROR_LIMIT])
