"""The WebSocket of the admin's pages, ``/ws/admin/live``.

A page sends ``{"watch": ["session:12", "overview"]}``: all that it follows from now on. It is
answered with ``{"watching": [...]}``, what of that it may follow, and then with
``{"changed": "session:12"}`` whenever something has. Frames that are no such thing are answered
with ``{"error": "..."}``.
"""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from channels.db import database_sync_to_async
from django.db import DatabaseError, InterfaceError

from agent.record.ground.commit import GroupCommit
from frostproject.live.topics import Topic, digest_topic, parse_topic, reach_topic
from frostproject.live.viewer import find_viewer, origin_problem
from frostproject.live.watchers import Watchers
from tools.log_limit import LogLimit

logger = logging.getLogger(__name__)
limit = LogLimit(logger)

#: Topics of one socket; sockets of one user, and of all.
TOPICS, SOCKETS, ALL_SOCKETS = 20, 12, 200
#: Characters of a frame that are read; bad frames of one socket before it is closed.
LONGEST_FRAME, MOST_BAD_FRAMES = 4_096, 50
#: Whether a user may still follow what he follows is asked again after so many seconds.
CHECK_SECONDS = 30.0
#: A query that a socket waits for takes at most so many seconds.
QUERY_SECONDS = 5.0
#: Close codes: the session has ended; something is not to be seen any more; nonsense.
SIGNED_OUT, OUT_OF_REACH, NONSENSE = 4401, 4403, 4400

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class LiveFeed:
    """The ASGI application. ``record`` rings after its commits while anybody follows anything."""

    def __init__(self, record: GroupCommit) -> None:
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="live")
        self._record = record
        self.watchers = Watchers(lambda topic: self.ask(digest_topic, topic), self._listen)
        self._sockets: Counter[int] = Counter()

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        user = None
        if problem := origin_problem(scope):
            limit.warn("refused", "Refused a page's live connection: %s", problem)
        else:
            user = await self._find_viewer(scope)
        if user is None or not self._has_room(user.pk):
            await send({"type": "websocket.close"})
            return
        self._sockets[user.pk] += 1
        try:
            await send({"type": "websocket.accept"})
            await LiveSocket(self, scope, receive, send).serve()
        finally:
            self._sockets[user.pk] -= 1
            self._sockets += Counter()  # forgets those that have none

    async def ask(self, question: Callable[..., Any], *values: Any) -> Any:
        """What ``question`` answers, asked in a thread of the feed's own. Raises TimeoutError and
        database errors."""
        asked = database_sync_to_async(question, thread_sensitive=False, executor=self._threads)
        async with asyncio.timeout(QUERY_SECONDS):
            return await asked(*values)

    async def _find_viewer(self, scope: dict[str, Any]) -> Any:
        try:
            return await self.ask(find_viewer, scope)
        except (DatabaseError, InterfaceError, TimeoutError):
            return None  # the page tries again

    def _has_room(self, user_pk: int) -> bool:
        return self._sockets[user_pk] < SOCKETS and self._sockets.total() < ALL_SOCKETS

    def _listen(self, is_watching: bool) -> None:
        self._record.on_written = self.watchers.nudge if is_watching else None


class LiveSocket:
    """One page's connection, from its acceptance to its end."""

    def __init__(self, feed: LiveFeed, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        self._feed, self._scope = feed, scope
        self._receive, self._send = receive, send
        self._topics: set[Topic] = set()
        self._changed: dict[Topic, None] = {}
        self._has_changed = asyncio.Event()
        self._bad_frames = 0

    async def serve(self) -> None:
        """Until the socket ends. Cancelled, it follows nothing any more."""
        helpers = [asyncio.create_task(self._tell()), asyncio.create_task(self._check())]
        try:
            while (message := await self._receive())["type"] == "websocket.receive":
                await self._on_frame(message.get("text") or message.get("bytes") or "")
        finally:
            self._follow(set())
            for helper in helpers:
                helper.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)

    async def _on_frame(self, frame: str | bytes) -> None:
        wanted = _parse_frame(frame)
        if wanted is None:
            self._bad_frames += 1
            if self._bad_frames > MOST_BAD_FRAMES:
                await self._close(NONSENSE)
            else:
                await self._say(error="this is no list of topics")
            return
        try:
            allowed = await self._feed.ask(self._allowed, wanted)
        except (DatabaseError, InterfaceError, TimeoutError):
            await self._say(error="the database does not answer; try again")
            return
        if allowed is None:
            await self._close(SIGNED_OUT)
            return
        self._follow(allowed)
        names = set(map(str, allowed))
        await self._say(watching=[name for name in map(str, wanted) if name in names])

    def _allowed(self, wanted: list[Topic]) -> set[Topic] | None:
        """Those of ``wanted`` that may be followed now; None for who is not signed in any
        more."""
        user = find_viewer(self._scope)
        if not user:
            return None
        return {found for topic in wanted if (found := reach_topic(user, topic))}

    async def _tell(self) -> None:
        while True:
            await self._has_changed.wait()
            self._has_changed.clear()
            changed, self._changed = self._changed, {}
            for topic in changed:
                await self._say(changed=str(topic))

    async def _check(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            topics = set(self._topics)
            try:
                allowed = await self._feed.ask(self._allowed, list(topics))
            except (DatabaseError, InterfaceError, TimeoutError):
                continue  # nothing can be read by anybody
            if allowed is None:
                await self._close(SIGNED_OUT)
            elif topics - allowed:
                await self._close(OUT_OF_REACH)

    def _follow(self, topics: set[Topic]) -> None:
        for topic in self._topics - topics:
            self._feed.watchers.unfollow(topic, self._on_change)
        for topic in topics - self._topics:
            self._feed.watchers.follow(topic, self._on_change)
        self._topics = topics

    def _on_change(self, topic: Topic) -> None:
        self._changed[topic] = None
        self._has_changed.set()

    async def _say(self, **values: object) -> None:
        await self._send({"type": "websocket.send", "text": json.dumps(values)})

    async def _close(self, code: int) -> None:
        self._follow(set())
        await self._send({"type": "websocket.close", "code": code})


def _parse_frame(frame: str | bytes) -> list[Topic] | None:
    """The topics of a frame, each once; None where it is none that a page sends."""
    if len(frame) > LONGEST_FRAME:
        return None
    try:
        content = json.loads(frame)
    except (ValueError, RecursionError):
        return None
    wanted = content.get("watch") if isinstance(content, dict) else None
    if not isinstance(wanted, list) or len(wanted) > TOPICS:
        return None
    topics = [topic for text in wanted if (topic := parse_topic(text)) is not None]
    return list(dict.fromkeys(topics)) if len(topics) == len(wanted) else None
