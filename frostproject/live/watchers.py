"""Who watches what in one process: for each topic one task, as long as anybody follows it."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sized

from django.db import DatabaseError, InterfaceError

from frostproject.live.topics import Topic
from tools.log_limit import LogLimit

logger = logging.getLogger(__name__)
limit = LogLimit(logger)

#: The longest time between two looks at a topic, in seconds.
LOOK_SECONDS = 1.0
#: A look that takes longer, in seconds, is given up until the next one.
LONGEST_LOOK = 5.0
#: Pauses are at least so many times as long as the look before took.
RESTING_SHARE = 10
#: Looks of one process in a second, at most: where more is followed, each is looked at less often.
MOST_LOOKS = 40

Look = Callable[[Topic], Awaitable[object]]
Follower = Callable[[Topic], None]


class Watchers:
    """Looks at the topics that are followed, and tells their followers what has changed.

    It lives on one event loop. While nobody follows anything it has no task, and ``listen`` was
    last called with False; otherwise :meth:`nudge` is to be called when something may have
    changed. A look that fails is repeated with the next one.
    """

    def __init__(self, look: Look, listen: Callable[[bool], None] = lambda on: None) -> None:
        self._look = look
        self._listen = listen
        self._watchers: dict[Topic, _Watcher] = {}
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def topics(self) -> frozenset[Topic]:
        """What is followed now."""
        return frozenset(self._watchers)

    def follow(self, topic: Topic, follower: Follower) -> None:
        """Have ``follower`` called, on the loop, whenever ``topic`` has changed."""
        if topic not in self._watchers:
            if not self._watchers:
                self._listen(True)
            self._watchers[topic] = _Watcher(topic, self._look, self._watchers)
        self._watchers[topic].followers.add(follower)

    def unfollow(self, topic: Topic, follower: Follower) -> None:
        """The opposite; nothing happens where it did not follow."""
        watcher = self._watchers.get(topic)
        if watcher is None:
            return
        watcher.followers.discard(follower)
        if not watcher.followers:
            del self._watchers[topic]
            watcher.task.cancel()
            self._ending.add(watcher.task)
            watcher.task.add_done_callback(self._ending.discard)
            if not self._watchers:
                self._listen(False)

    def nudge(self) -> None:
        """Something was committed: look soon. Returns at once."""
        for watcher in self._watchers.values():
            watcher.nudged.set()


def shortest_rest(topic: Topic, took: float, watched: int) -> float:
    """Seconds until ``topic`` is looked at again at the earliest, after a look that took so many,
    where so many topics are ``watched``."""
    return max(topic.seconds, RESTING_SHARE * took, watched / MOST_LOOKS)


class _Watcher:
    def __init__(self, topic: Topic, look: Look, all_watched: Sized) -> None:
        self.topic, self._look, self._all_watched = topic, look, all_watched
        self.followers: set[Follower] = set()
        self.nudged = asyncio.Event()
        self.task = asyncio.create_task(self._watch(), name=f"live-{topic}")

    async def _watch(self) -> None:
        seen: object = None
        is_first = True
        while True:
            began = time.monotonic()
            self.nudged.clear()
            try:
                async with asyncio.timeout(LONGEST_LOOK):
                    found = await self._look(self.topic)
            except (DatabaseError, InterfaceError, TimeoutError) as error:
                limit.warn("look", "What pages follow could not be read: %s", error or "time-out")
            else:
                if not is_first and found != seen:
                    for follower in tuple(self.followers):
                        follower(self.topic)
                seen, is_first = found, False
            await self._rest(time.monotonic() - began)

    async def _rest(self, took: float) -> None:
        """Until something may have changed, but not too short."""
        shortest = shortest_rest(self.topic, took, len(self._all_watched))
        await asyncio.sleep(shortest)
        if (rest := LOOK_SECONDS - shortest) > 0:
            try:
                async with asyncio.timeout(rest):
                    await self.nudged.wait()
            except TimeoutError:
                pass
