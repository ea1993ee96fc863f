"""One plugin of this server process: kept running while it is wanted, started again, given up,
replaced, ended."""

import asyncio
import logging
import random
import time
from collections import deque
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from django.utils import timezone
from django.utils.translation import gettext

from tools.error_boundary import log_errors
from tools.models import PluginStatus
from tools.plugin_sdk.calls import RpcError
from tools.plugins.folder import PluginReport
from tools.plugins.link import LinkListener, LoadFailed, PluginLink
from tools.plugins.process import ProcessExit, ProcessLimits, measure_usage
from tools.plugins.rows import PluginSettings, PluginTool, UnusableTools, build_plugin_tools

logger = logging.getLogger(__name__)
State = PluginStatus.PluginState

#: How long a plugin that loads keeps others from starting.
TURN_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """The restart rules of a supervisor; times in seconds.

    ``pause`` follows the first crash and doubles with each one. After ``crashes`` in a row the
    plugin is not restarted; a run of ``stable`` seconds resets the count. ``look`` is the time
    between two checks of its resources, ``health`` between two health checks. ``drain`` is the time
    for running calls when a plugin is replaced or disabled, ``last_drain`` when the server ends. At
    most ``reloads`` file changes within ``stable`` cause a reload.
    """

    pause: float = 1.0
    crashes: int = 3
    stable: float = 60.0
    look: float = 1.0
    health: float = 15.0
    drain: float = 10.0
    last_drain: float = 1.5
    reloads: int = 6


class SupervisorContext(LinkListener, Protocol):
    """What the plugins of one server process share. ``starting`` limits how many start at the same
    time."""

    root: Path
    limits: ProcessLimits
    restart_policy: RestartPolicy
    process_id: str
    starting: asyncio.Semaphore

    def crashed(self, plugin: PluginSettings, ending: ProcessExit) -> None: ...

    def report(self, report: PluginReport) -> None: ...

    def changed(self) -> None:
        """The tools of some plugin are others now."""
        ...


@dataclass(frozen=True, slots=True)
class LoadedVersion:
    """What a plugin was loaded from: the number of the operator's reload request, and the state of
    its files."""

    reloads: int
    stamp: str


@dataclass(slots=True)
class RestartHistory:
    """What happened to the plugin since it was last enabled or reloaded."""

    crashes: int = 0
    error: str = ""
    retry_at: datetime | None = None
    started_at: datetime | None = None
    due: float = 0.0
    """The moment before which it is not started again, in monotonic seconds."""


class Supervisor:
    """Used from the event loop; :meth:`apply` may be called at any time and returns immediately.

    ``tools`` are those of the process that runs, or ran last, the same objects for as long
    as the plugin declares the same.
    """

    def __init__(self, settings: PluginSettings, context: SupervisorContext) -> None:
        self.settings = settings
        self.tools: list[PluginTool] = []
        self.notes: list[str] = []
        self.link: PluginLink | None = None
        self._context = context
        self._restart_policy = context.restart_policy
        self._stamp = ""
        self._version: LoadedVersion | None = None
        self._record = RestartHistory()
        self._config: dict[str, object] = {}
        self._reloaded: deque[float] = deque(maxlen=self._restart_policy.reloads)
        self._checkup: asyncio.Task[bool] | None = None
        self._next_checkup = 0.0
        self._retiring: dict[asyncio.Task[None], PluginLink] = {}
        self._wake = asyncio.Event()
        self._task = asyncio.create_task(
            self._supervise(), name=f"supervisor of {settings.plugin_id}"
        )

    @property
    def state(self) -> str:
        """A :class:`tools.models.PluginStatus.PluginState`, or "" while it is not wanted."""
        if not self.settings.is_wanted:
            return ""
        if self.link is not None:
            return State.RUNNING
        if self._record.crashes >= self._restart_policy.crashes:
            return State.BROKEN
        return State.WAITING if self._record.crashes else State.STARTING

    @property
    def serving(self) -> PluginLink | None:
        """The process to call, if it is wanted and there is one."""
        link = self.link
        return (
            link if link is not None and self.settings.is_wanted and not link.over.done() else None
        )

    def apply(self, settings: PluginSettings, stamp: str) -> None:
        """These are the operator's settings and the state of the files from now on."""
        if (settings, stamp) != (self.settings, self._stamp):
            self.settings, self._stamp = settings, stamp
            self._wake.set()

    def request_health_check(self) -> None:
        """A call took too long: start a health check immediately."""
        self._next_checkup = 0.0
        self._wake.set()

    def report(self) -> None:
        """Record the status of the plugin."""
        record, state = self._record, self.state
        report = PluginReport(
            plugin_pk=self.settings.pk,
            process_id=self._context.process_id,
            state=state,
            runner_pid=self.link.runner_pid if self.link else None,
            started_at=record.started_at if self.link else None,
            retry_at=record.retry_at if state == State.WAITING else None,
            crashes=record.crashes,
            error="\n".join(filter(None, [record.error, *self.notes])),
            tools=tuple(tool.spec.name for tool in self.tools),
        )
        self._context.report(report)

    async def close(self) -> None:
        """End the plugin, with a short time for calls under way."""
        self._task.cancel()
        await asyncio.wait([self._task])
        self._forget_checkup()
        links = [*self._retiring.values()]
        for task in list(self._retiring):
            task.cancel()
        await asyncio.gather(*self._retiring, return_exceptions=True)
        ending = [link.drain_and_close(0) for link in links]
        if self.link is not None:
            ending.append(self.link.drain_and_close(self._restart_policy.last_drain))
        await asyncio.gather(*ending, return_exceptions=True)

    async def _supervise(self) -> None:
        while True:
            self._wake.clear()
            with log_errors(logger, "The supervisor of plugin %s failed", self.settings.plugin_id):
                await self._step()
                self.report()
            try:
                async with asyncio.timeout(
                    self._restart_policy.look if self.settings.is_wanted else None
                ):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _step(self) -> None:
        """Compare the actual state with the wanted one, and take the next step."""
        now = time.monotonic()
        if self.link is not None and self.link.over.done():
            error = self.link.over.exception()
            self._crashed(
                ProcessExit(f"{type(error).__name__}: {error}")
                if error
                else self.link.over.result()
            )
        if not self.settings.is_wanted:
            self._rest()
        elif self._version is None or self._is_outdated(now):
            await self._renew(LoadedVersion(self.settings.reloads, self._stamp))
        elif self.link is None:
            if self._record.crashes < self._restart_policy.crashes and now >= self._record.due:
                await self._renew(self._version)
        elif self._config != self.settings.config:
            await self._configure(self.link)
        else:
            await self._check_health(self.link, now)

    def _is_outdated(self, now: float) -> bool:
        """Whether another version is to be loaded. A plugin that changes its own files all the time
        is not followed."""
        version = self._version
        if version is None or version.reloads != self.settings.reloads:
            return True
        if version.stamp == self._stamp:
            return False
        are_many = (
            len(self._reloaded) == self._restart_policy.reloads
            and now < self._reloaded[0] + self._restart_policy.stable
        )
        return not are_many

    def _rest(self) -> None:
        """The plugin is not wanted: it is as if it had never been tried."""
        if self.link is not None:
            self._retire(self.link)
        if self._version is not None:
            self._version, self._record = None, RestartHistory()
            self._context.changed()

    async def _renew(self, version: LoadedVersion) -> None:
        """Load the plugin in a new process next to the running one, and replace that one; a failed
        load changes nothing."""
        if version != self._version:
            self._version, self._record = (
                version,
                RestartHistory(started_at=self._record.started_at),
            )
            self._reloaded.append(time.monotonic())
        self.report()
        try:
            config = dict(self.settings.config)
            link = await self._in_turn()
        except (LoadFailed, UnusableTools, OSError) as error:
            self._failed(
                gettext("It cannot be loaded: %(reason)s") % {"reason": error},
                getattr(error, "details", ""),
            )
            return
        old, self.link, self._config = self.link, link, config
        link.over.add_done_callback(lambda _: self._wake.set())
        self._record.error, self._record.started_at = "", timezone.now()
        self._forget_checkup()
        if old is not None:
            self._retire(old)
        self._context.changed()

    async def _in_turn(self) -> PluginLink:
        """Start a process when few others do. One that takes long to load does not keep the others
        waiting."""
        async with self._context.starting:
            opening = asyncio.create_task(self._opened())
            try:
                await asyncio.wait([opening], timeout=TURN_SECONDS)
            except asyncio.CancelledError:
                opening.cancel()
                await asyncio.wait([opening])
                raise
        return await opening

    async def _opened(self) -> PluginLink:
        link = await PluginLink.open(
            self._context.root / self.settings.folder,
            lambda: self.settings,
            self._context.limits,
            self._context,
        )
        try:
            self.tools = await asyncio.to_thread(
                build_plugin_tools, self.settings.plugin_id, link.declarations, self.tools
            )
        except (UnusableTools, asyncio.CancelledError):
            await asyncio.shield(link.kill())
            raise
        return link

    def _failed(self, reason: str, details: str) -> None:
        """No new process could be started; a running one continues."""
        if self.link is None:
            self._crashed(ProcessExit(reason, details))
            return
        self._record.error = gettext("%(reason)s; the edition that was loaded before goes on.") % {
            "reason": reason
        }
        self._context.crashed(self.settings, ProcessExit(self._record.error, details))

    def _crashed(self, ending: ProcessExit) -> None:
        self._forget_checkup()
        record, self.link = self._record, None
        record.crashes += 1
        record.error = ending.reason
        pause = self._restart_policy.pause * 2 ** (record.crashes - 1) * random.uniform(0.75, 1.25)  # noqa: S311
        record.due = time.monotonic() + pause
        record.retry_at = timezone.now() + timedelta(seconds=pause)
        self._context.crashed(self.settings, ending)
        self._context.changed()

    async def _configure(self, link: PluginLink) -> None:
        self._config = dict(self.settings.config)
        try:
            await link.configure(self._config)
            self._record.error = ""
        except RpcError as error:
            self._record.error = gettext("It did not take the new configuration: %(reason)s") % {
                "reason": error
            }

    async def _check_health(self, link: PluginLink, now: float) -> None:
        """Whether the running plugin is healthy and within its limits. Otherwise it is killed,
        which counts as a crash."""
        usage = await asyncio.to_thread(measure_usage, link.process.pid)
        reason = usage.excess(self._context.limits)
        if link.charge(usage) > self._context.limits.cpu_seconds:
            reason = gettext("A call used more than %(most)d s of processor time.") % {
                "most": self._context.limits.cpu_seconds
            }
        if self._checkup is not None and self._checkup.done():
            is_well, self._checkup = self._checkup.result(), None
            reason = reason or (
                ""
                if is_well
                else gettext("It did not answer when it was asked whether it is well.")
            )
        if reason:
            await link.kill(reason)
        elif self._checkup is None and now >= self._next_checkup:
            self._next_checkup = now + self._restart_policy.health
            self._checkup = asyncio.create_task(link.check_health())
            self._checkup.add_done_callback(lambda _: self._wake.set())
        if (
            self._record.crashes
            and (began := self._record.started_at)
            and timezone.now() - began > timedelta(seconds=self._restart_policy.stable)
        ):
            self._record.crashes = 0

    def _forget_checkup(self) -> None:
        """A health check of one process says nothing about another."""
        self._next_checkup = time.monotonic() + self._restart_policy.health
        if self._checkup is not None:
            self._checkup.cancel()
            self._checkup = None

    def _retire(self, link: PluginLink) -> None:
        """Let ``link`` finish its calls in the background."""
        if self.link is link:
            self.link = None
        task = asyncio.create_task(
            link.drain_and_close(self._restart_policy.drain),
            name=f"retiring {self.settings.plugin_id}",
        )
        self._retiring[task] = link
        task.add_done_callback(lambda done: self._retiring.pop(done, None))
