"""Which messages of a group follow one of the same person that is to be answered."""

from datetime import datetime, timedelta
from typing import NamedTuple

from agent.domain.types import IncomingMessage

#: Chats in which further words are awaited; beyond that, those that are over are forgotten.
REMEMBERED = 1_000


class AwaitedWords(NamedTuple):
    """Until when further words of a person are awaited."""

    sender_id: str
    until: datetime


class FollowUps:
    """Whose further words are awaited in which chat, as far as this process has heard. Used by the
    database thread only.

    Nothing in it comes from rows. What a transaction noted that was not committed is forgotten.
    """

    def __init__(self) -> None:
        self.awaited: dict[int, AwaitedWords] = {}
        """By chat."""

    def is_one(self, session_pk: int, sender_id: str, now: datetime) -> bool:
        """Whether further words of this person are awaited in the chat at ``now``."""
        awaited = self.awaited.get(session_pk)
        return awaited is not None and awaited.sender_id == sender_id and now <= awaited.until

    def await_more(
        self, session_pk: int, message: IncomingMessage, window: float, now: datetime
    ) -> None:
        """``message``, received at ``now``, is to be answered: it ends what others began, and
        further words are awaited for ``window`` seconds, if any."""
        if window and message.chat.kind == "group":
            if len(self.awaited) >= REMEMBERED:
                self.awaited = {pk: one for pk, one in self.awaited.items() if one.until >= now}
            until = now + timedelta(seconds=window)
            self.awaited[session_pk] = AwaitedWords(message.sender_id, until)
        elif self.awaited:
            self.awaited.pop(session_pk, None)

    def forget(self) -> None:
        """Await nothing any more: a transaction was not committed."""
        self.awaited.clear()
