"""Media that a message names by URL, loaded here: a client that loads a URL could be made to reach
its own network."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack

from agent.domain.errors import MediaError
from onebot.gateway.outgoing_media import INLINE_ROOM_BYTES, fill_segment, media_url
from onebot.protocol import base64_file
from onebot.protocol.base64_file import Base64File
from onebot.protocol.segments import Segment
from tools.fetch.errors import FetchError, TooLarge
from tools.fetch.fetcher import Fetcher
from tools.fetch.request import FetchRequest, FetchResponse
from tools.fetch.urls import parse_url

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
        return await asyncio.to_thread(base64_file.encode_base64, body)

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
