"""What tests of hearing and reading have in common: a client that offers media, and a message that
is perceived."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agent.domain.types import (
    AccountSettings,
    ChatAddress,
    ForwardContent,
    ForwardedMessage,
    IncomingMessage,
    MediaOrigin,
    MediaRef,
)
from agent.media.file_store import FileStore
from agent.media.pipeline import MediaPipeline, MediaReader, MediaText
from agent.record.record import Record
from tests.agent.talk import arrival


@dataclass
class Client:
    """The :class:`agent.domain.types.MediaSource` of a client that gives what it was told to
    give."""

    in_quoted: list[MediaRef] = field(default_factory=list)
    fresh: list[MediaRef] = field(default_factory=list)
    conversions: dict[str, MediaRef] = field(default_factory=dict)
    asked_formats: list[str] = field(default_factory=list)

    def parse_refs(
        self,
        segments: Sequence[dict[str, Any]],
        message_id: str = "",
        origin: MediaOrigin = "message",
    ) -> list[MediaRef]:
        return []

    def restore_media(self, message: IncomingMessage) -> IncomingMessage:
        return message

    def has_forward(self, segments: Sequence[dict[str, Any]]) -> bool:
        return False

    async def fetch_quoted_media(self, chat: ChatAddress, message_id: str) -> list[MediaRef]:
        return self.in_quoted

    async def fetch_forwarded_media(
        self, chat: ChatAddress, segments: Sequence[dict[str, Any]]
    ) -> list[MediaRef]:
        return []

    async def fetch_member_name(self, chat: ChatAddress, user_id: str) -> str:
        return ""

    async def fetch_message(self, chat: ChatAddress, message_id: str) -> ForwardedMessage | None:
        return None

    async def fetch_quoted_message(
        self, chat: ChatAddress, message_id: str
    ) -> ForwardedMessage | None:
        return await self.fetch_message(chat, message_id)

    async def fetch_forwarded_messages(
        self, chat: ChatAddress, segments: Sequence[dict[str, Any]]
    ) -> ForwardContent:
        return ForwardContent()

    async def renew_address(self, chat: ChatAddress, ref: MediaRef) -> AsyncIterator[MediaRef]:
        for one in self.fresh:
            yield one

    async def fetch_converted_voice(
        self, chat: ChatAddress, ref: MediaRef, out_format: str
    ) -> MediaRef | None:
        self.asked_formats.append(out_format)
        return self.conversions.get(out_format)


async def perceive(
    record: Record,
    client: Client,
    files: FileStore,
    reader: MediaReader,
    said: IncomingMessage,
    account: AccountSettings,
) -> MediaText:
    """Put ``said`` on record, fetch its media and read them, as is done for a message that is
    answered."""
    accepted = await record.submit_batched(record.arrivals.accept_messages, arrival(said))
    pending = replace(accepted.to_pending(said), account=account)
    media = MediaPipeline(record, client, files, [reader])
    try:
        return await media.describe(pending, media.prefetch(pending))
    finally:
        await media.close()
