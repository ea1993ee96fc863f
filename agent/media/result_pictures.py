"""Keeping the pictures of tools' results, so that a later call can send them."""

import asyncio
import logging
from collections.abc import Iterator, Sequence

from django.utils import timezone

from agent.domain.file_types import PICTURES
from agent.domain.types import ChatAddress, MediaUnavailable
from agent.media.downloads import decode_base64
from agent.media.file_store import FileStore, StoredFile
from agent.media.media_store import keep_copies
from agent.models import KeptFile, ResultPicture, ToolCall
from agent.record.chats.chat_record import find_session
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
from tools.fetch.request import TooLarge


def add_pictures(call_pk: int, call_id: str, pictures: Sequence[tuple[int, StoredFile]]) -> None:
    """Put on record the copies of the pictures of one call's result, each with its place among the
    result's items, from 1. Those of a call without a chat cannot be asked for, and are left out."""
    call = ToolCall.objects.filter(pk=call_pk)
    if (session_pk := call.values_list("run__session", flat=True).first()) is None:
        return
    now = timezone.now()
    pks = keep_copies([kept for _, kept in pictures], now)
    ResultPicture.objects.bulk_create(
        ResultPicture(
            session_id=session_pk,
            call_id=call_pk,
            name=call_id[:128],
            position=position,
            kept_id=pks[kept.sha256],
            created_at=now,
        )
        for position, kept in pictures
    )


def find_pictures(chat: ChatAddress, call_id: str, number: int) -> str | None:
    """The content hash of the picture at a place of the newest call with that id in a chat; None
    where there is none."""
    rows = ResultPicture.objects.filter(
        session_id=find_session(chat), name=call_id, position=number
    )
    return rows.order_by("-pk").values_list("kept__sha256", flat=True).first()


def touch_copies(sha256: str) -> None:
    """Note that a copy was used just now: what is not used is forgotten in time."""
    KeptFile.objects.filter(sha256=sha256).update(last_used_at=timezone.now())


logger = logging.getLogger(__name__)

#: Pictures of one result that are kept, and the bytes of each.
MOST, LARGEST = 20, 20 * 2**20


class ResultPictureHook:
    """A hook of the registry (:mod:`tools.registry.execution`) that keeps what comes back, and
    changes nothing."""

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
            (number, item)
            for number, item in enumerate(result.content_items, 1)
            if is_picture(item)
        ][:MOST]
        if pictures and invocation.call_pk:
            with log_errors(
                logger, "The pictures of a result of %s could not be kept", invocation.tool_name
            ):
                kept = await asyncio.to_thread(lambda: tuple(self._put(pictures)))
                await self._record.submit(
                    add_pictures, invocation.call_pk, invocation.call_id, kept
                )
        return None

    def _put(
        self, pictures: Sequence[tuple[int, ToolContentItem]]
    ) -> Iterator[tuple[int, StoredFile]]:
        for number, item in pictures:
            try:
                kept = self._files.put(decode_base64(item.data, LARGEST))
            except (TooLarge, MediaUnavailable) as error:
                logger.info("A picture of a tool's result was not kept: %s", error)
            else:
                if kept.mime in PICTURES:
                    yield number, kept
