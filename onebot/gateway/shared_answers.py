"""Questions to clients that are asked once for all who want the answer at about the same time."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any

#: Answers that are kept, and for how long, in seconds: as long as one message is read.
MOST, KEPT_SECONDS = 200, 10.0
#: The same of the names of members.
MOST_MEMBERS, MEMBER_SECONDS = 1_000, 600.0


class SharedAnswers:
    """Keeps the tasks that ask, and what they were answered, for some seconds."""

    def __init__(self, most: int = MOST, kept_seconds: float = KEPT_SECONDS) -> None:
        self._most = most
        self._kept_seconds = kept_seconds
        self._tasks: dict[Hashable, asyncio.Task[Any]] = {}

    async def get(self, key: Hashable, ask: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """What ``ask`` returns, now or for whoever wanted the same just before.

        After cancellation it is asked on, for the others. Where too many are kept, it is asked
        alone.
        """
        task = self._tasks.get(key)
        if task is None:
            if len(self._tasks) >= self._most:
                return await ask()
            loop = asyncio.get_running_loop()
            task = self._tasks[key] = loop.create_task(ask(), name="question to a client")
            task.add_done_callback(lambda _: loop.call_later(self._kept_seconds, self._forget, key))
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Stop what is still being asked."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.clear()

    def _forget(self, key: Hashable) -> None:
        self._tasks.pop(key, None)
