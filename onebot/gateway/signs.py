"""Signs that the bot is at work: "is typing" in private chats, a reaction on the message in groups.

NapCat and LLBot know ``set_input_status`` and ``set_msg_emoji_like``, Lagrange
``set_group_reaction``. No run waits for a sign, and nothing depends on one.
"""

import asyncio
import logging
from collections.abc import Mapping

from agent.domain.manners import ChatManners
from agent.domain.types import ChatAddress
from onebot.connections.client import OneBotClient
from onebot.protocol.segments import id_number
from tools.error_boundary import KeptTasks

logger = logging.getLogger(__name__)

#: Time for a client to show a sign, in seconds.
SHOW_SECONDS = 2.0
#: Messages that may have a sign at a time; more have none.
MOST_SIGNS = 200
#: The event of ``set_input_status`` for somebody who types.
TYPING = 1


class WorkSigns:
    """Shows signs, and takes them off again."""

    def __init__(self, client: OneBotClient) -> None:
        self._client = client
        self._ends: dict[tuple[ChatAddress, str], asyncio.Event] = {}
        """Of the messages with a reaction: that it is to be taken off."""
        self._tasks = KeptTasks()

    def show(
        self, chat: ChatAddress, message_id: str, manners: ChatManners, *, is_on: bool
    ) -> None:
        """Begin to show that a message is worked on, or no more. Returns at once."""
        key = (chat, message_id)
        if not is_on:
            if ended := self._ends.get(key):
                ended.set()
        elif len(self._tasks) >= MOST_SIGNS:
            return
        elif chat.kind == "private" and manners.typing:
            params = {"user_id": id_number(chat.peer_id), "event_type": TYPING}
            self._tasks.begin(self._call(chat.account, "set_input_status", params), "sign")
        elif chat.kind == "group" and manners.reaction and message_id and key not in self._ends:
            ended = self._ends[key] = asyncio.Event()
            work = self._react(chat, message_id, manners.reaction, ended)
            self._tasks.begin(work, "sign")

    async def close(self) -> None:
        """Show nothing more."""
        await self._tasks.close()

    async def _react(
        self, chat: ChatAddress, message_id: str, emoji: str, ended: asyncio.Event
    ) -> None:
        """React to a message until ``ended`` is set."""
        is_lagrange = self._client.user_agent(chat.account).startswith("Lagrange")
        message = {"message_id": id_number(message_id, is_message=True)}
        if is_lagrange:
            action, switch = "set_group_reaction", "is_add"
            params = {"group_id": id_number(chat.peer_id), **message, "code": emoji}
        else:
            action, switch = "set_msg_emoji_like", "set"
            params = {**message, "emoji_id": emoji}
        try:
            if await self._call(chat.account, action, {**params, switch: True}):
                await ended.wait()
                await self._call(chat.account, action, {**params, switch: False})
        finally:
            del self._ends[chat, message_id]

    async def _call(self, account: str, action: str, params: Mapping[str, object]) -> bool:
        response = await self._client.call_optional(account, action, params, SHOW_SECONDS)
        if response is not None and not response.is_success:
            logger.debug("%s was refused by %s: %s", action, account, response.error_text)
        return response is not None and response.is_success
