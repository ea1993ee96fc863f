"""Something that is done once a day, in a task that there is only meanwhile."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

from tools.time_limits import TIME_LIMITS

#: Between two tries, also of one that failed.
AGAIN_SECONDS = TIME_LIMITS.next_expiry


class DailyWork:
    """Has it done where ``is_due`` says so. There is no task while it is not."""

    def __init__(
        self, name: str, is_due: Callable[[], bool], do: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        self._name, self._is_due, self._do = name, is_due, do
        self._task: asyncio.Task[None] | None = None
        self._again_at = time.monotonic() + TIME_LIMITS.first_expiry

    def look(self) -> None:
        """Begin where it is time. To be called on the loop, now and then."""
        is_under_way = self._task is not None and not self._task.done()
        if not is_under_way and time.monotonic() >= self._again_at:
            self._again_at = time.monotonic() + AGAIN_SECONDS
            if self._is_due():
                self._task = asyncio.get_running_loop().create_task(self._do(), name=self._name)

    async def close(self) -> None:
        """End it where it is under way."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
