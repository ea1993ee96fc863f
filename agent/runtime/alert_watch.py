"""Looks at alerts while a route is enabled, and has them told. There is no task while none is."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Any

from django.utils import timezone

from agent.domain.alerts import AlertLook, RouteOutcome
from agent.record.record import Record
from agent.record.waiting import alert_notices
from agent.record.waiting.alert_notices import AlertPost, OutageNotices
from agent.runtime.alert_posts import post_message
from tools.error_boundary import log_errors
from tools.live_rows import LiveKind
from tools.processes.crash_points import hit_crash_point
from tools.processes.threads import run_in_thread
from tools.secrets.encryption import DecryptionError
from tools.tasks import end_tasks
from tools.time_limits import TIME_LIMITS

logger = logging.getLogger(__name__)
#: How long a look may take, and how many messages are sent at once; in seconds.
LOOK_SECONDS, AT_ONCE = 20.0, 4


class AlertWatch:
    """Of one process. Of several that serve, the oldest looks."""

    def __init__(self, record: Record, process_id: str, find: Callable[[], AlertLook]) -> None:
        """``find`` is called in a thread of its own."""
        self._record, self._process_id, self._find = record, process_id, find
        self._task: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        """Of the look under way, and of what is being sent."""
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._idle_at = 0
        """The version of the routes as of which none is enabled."""
        self._since: datetime | None = None
        """Since when this process is the one that looks."""
        self._outages = OutageNotices()

    def begin(self) -> None:
        """Watch, where there may be a route. To be called on the loop, every few seconds."""
        if self._version() != self._idle_at and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self._watch(), name="alerts")

    async def close(self) -> None:
        """End a look under way, and what is being sent: it may have arrived, as is on record."""
        await end_tasks([*([self._task] if self._task else []), *self._tasks])

    def _version(self) -> int:
        return self._record.live.current.versions.get(LiveKind.ALERT_ROUTES, 0)

    async def _watch(self) -> None:
        """Until no route is enabled. A look waits for a database that is away; this does not."""
        look: asyncio.Task[None] | None = None
        while look is None or not look.done() or self._version() != self._idle_at:
            if look is None or look.done():
                look = self._keep(self._look(self._version()))
            for post in self._outages.find_posts(self._record.outage):
                self._keep(self._post(post))
            await asyncio.sleep(TIME_LIMITS.alert_look)

    def _keep(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work, name="alert")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _look(self, version: int) -> None:
        with log_errors(logger, "Alerts could not be looked at"):
            routes, watcher = await self._record.submit(alert_notices.find_watcher)
            self._idle_at = 0 if routes else version
            is_watcher = watcher == self._process_id
            self._outages.routes = routes if is_watcher else ()
            self._since = (self._since or timezone.now()) if is_watcher else None
            if self._since is None:
                return
            async with asyncio.timeout(LOOK_SECONDS):
                found = await run_in_thread(self._find)
            for post in await self._record.submit(alert_notices.claim_posts, found, self._since):
                self._keep(self._post(post))

    async def _post(self, post: AlertPost) -> None:
        with log_errors(logger, "An alert could not be told"):
            hit_crash_point("alert_claimed")
            try:
                address = post.route.address
            except DecryptionError:
                outcome = RouteOutcome.UNREADABLE
            else:
                async with self._turns:
                    outcome = await post_message(post.route.kind, address, post.message)
            if outcome != RouteOutcome.TOLD:
                logger.warning("Alert route %d: %s", post.route.pk, outcome.value)
            post.settle(outcome)
            await self._record.submit(alert_notices.note_post, post, outcome)
