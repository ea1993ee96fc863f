"""What waits in the chats of one process. The queues only point at rows."""

from collections import deque

from agent.chat.merging import QueuedMessage
from agent.domain.types import ChatAddress


class ChatQueues:
    """The messages that wait in each chat, in the order of their rows."""

    def __init__(self) -> None:
        self._queues: dict[ChatAddress, deque[QueuedMessage]] = {}
        self.total = 0
        """How many wait in all chats."""

    def put(self, job: QueuedMessage) -> None:
        """Put ``job`` where it belongs by the order of the chat, which is that of the rows."""
        queue = self._queues.setdefault(job.pending.message.chat, deque())
        place = len(queue)
        while place and queue[place - 1].pk > job.pk:
            place -= 1
        queue.insert(place, job)
        self.total += 1

    def first(self, chat: ChatAddress) -> QueuedMessage | None:
        """What is to be answered next in ``chat``."""
        queue = self._queues.get(chat)
        return queue[0] if queue else None

    def take(self, chat: ChatAddress) -> QueuedMessage:
        """The same, which waits no more."""
        self.total -= 1
        return self._queues[chat].popleft()

    def count(self, chat: ChatAddress) -> int:
        return len(self._queues.get(chat, ()))

    def drop(self, chat: ChatAddress, pk: int) -> None:
        """The message with this key waits no more, if it did."""
        for job in list(self._queues.get(chat, ())):
            if job.pk == pk:
                self._queues[chat].remove(job)
                self.total -= 1

    def forget(self, chat: ChatAddress) -> None:
        """Nothing waits in ``chat`` any more."""
        self.total -= len(self._queues.pop(chat, ()))

    def clear(self) -> None:
        """Nothing waits anywhere."""
        self._queues, self.total = {}, 0

    @property
    def keys(self) -> set[int]:
        """Those of all that wait."""
        return {job.pk for queue in self._queues.values() for job in queue}
