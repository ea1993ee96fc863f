"""Who has the floor: between the messages of one answer nothing else is said in a chat."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agent.domain.types import ChatAddress


class ChatFloors:
    """The chats in which an answer of several messages is being sent by this process. Used from
    one event loop."""

    def __init__(self) -> None:
        self._held: dict[ChatAddress, asyncio.Event] = {}

    def is_held(self, chat: ChatAddress) -> bool:
        return chat in self._held

    async def wait_free(self, chat: ChatAddress) -> None:
        """Return at a moment when nobody has the floor in ``chat``."""
        while (end := self._held.get(chat)) is not None:
            await end.wait()

    @asynccontextmanager
    async def hold(self, chat: ChatAddress) -> AsyncIterator[None]:
        """Have the floor in ``chat``, after whoever has it."""
        await self.wait_free(chat)
        end = self._held[chat] = asyncio.Event()
        try:
            yield
        finally:
            del self._held[chat]
            end.set()
