"""Keeping the pictures of tools' results, so that a later call can send them."""

import asyncio
import logging
from collections.abc import Iterator, Sequence

from agent.domain.file_types import PICTURES
from agent.domain.media_refs import MediaUnavailable
from agent.media.downloads import decode_base64
from agent.media.file_store import FileStore, StoredFile
from agent.media.result_picture_store import NewPictures, add_pictures
from agent.record.record import Record
from tools.contract import (
    ToolContentItem,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolInvocation,
    ToolSpec,
    is_picture,
)
from tools.error_boundary import log_errors
from tools.fetch.errors import TooLarge

logger = logging.getLogger(__name__)

#: Pictures of one result that are kept, and the bytes of each.
MOST, LARGEST = 20, 20 * 2**20


class ResultPictureHook:
    """A hook of the registry (:mod:`tools.registry.hooks`) that keeps what comes back, and changes
    nothing."""

    def __init__(self, record: Record, files: FileStore) -> None:
        self._record = record
        self._files = files

    async def keep(
        self,
        spec: ToolSpec,
        invocation: ToolInvocation,
        context: ToolExecutionContext | None,
        result: ToolExecutionResult,
    ) -> ToolExecutionResult | None:
        """Keep the pictures of ``result``, if the call is on record. Never raises."""
        pictures = [
            (place, item) for place, item in enumerate(result.content_items, 1) if is_picture(item)
        ][:MOST]
        if pictures and invocation.call_pk:
            with log_errors(
                logger, "The pictures of a result of %s could not be kept", invocation.tool_name
            ):
                kept = await asyncio.to_thread(lambda: tuple(self._put(pictures)))
                await self._record.submit(
                    add_pictures, NewPictures(invocation.call_pk, invocation.call_id, kept)
                )
        return None

    def _put(
        self, pictures: Sequence[tuple[int, ToolContentItem]]
    ) -> Iterator[tuple[int, StoredFile]]:
        for place, item in pictures:
            try:
                kept = self._files.put(decode_base64(item.data, LARGEST))
            except (TooLarge, MediaUnavailable) as error:
                logger.info("A picture of a tool's result was not kept: %s", error)
            else:
                if kept.mime in PICTURES:
                    yield place, kept
