"""What carries out the commands of chats, as the room of chats sees it."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from agent.chat.message_run import MessageRun
from agent.domain.commands import Command
from agent.domain.types import ChatAddress

StopAnswer = Callable[[ChatAddress, str | None], Awaitable[bool]]
"""Stops the answer under way in a chat, if this person asked for it, None for whoever did; whether
there was one (:meth:`agent.chat.inbox.Inbox.stop`)."""


class CommandAnswers(Protocol):
    """Carries out what is ordered in a chat; implemented by
    :class:`agent.commands.desk.CommandDesk`."""

    async def answer(self, run: MessageRun, command: Command, stop: StopAnswer) -> None:
        """Carry ``command`` out and bring its message to a recorded end."""
        ...


async def stop_nothing(chat: ChatAddress, asker: str | None) -> bool:
    """The :data:`StopAnswer` of a program that answers one message after the other."""
    return False
