"""All plugins of one server process: rows and folder are followed, each plugin has its supervisor,
tools are gathered."""

import asyncio
import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext

from tools.contract import ToolSpec
from tools.error_boundary import log_errors
from tools.models import PluginCrash, PluginLogLine
from tools.models.tool_config import ToolScope
from tools.plugins.capabilities import CallInFlight, CapabilityService
from tools.plugins.folder import (
    CRASHES_KEPT,
    LINES_KEPT,
    PluginFolder,
    PluginReport,
    add_newest,
    confirm_processes,
    delete_process_reports,
    scan_folder,
    sync_plugin_rows,
    watch_folder,
    write_reports,
)
from tools.plugins.process import LINE_CHARS, ProcessExit, ProcessLimits
from tools.plugins.rows import PluginSettings, PluginTool, load_plugin_settings
from tools.plugins.supervisor import RestartPolicy, Supervisor
from tools.registry.catalogue import DatabaseThread, ensure_tool_rows
from tools.text.storable import make_storable
from tools.token_bucket import Quota, RefillRate, TokenBuckets

logger = logging.getLogger(__name__)


# Events of plugins, collected and written in batches: a plugin that logs much costs no more than
# one that logs little.

#: Lines of one plugin that are kept in a second, and more that it may have in hand.
LINES_PER_SECOND, BURST = 20, 200
LINE_RATE = RefillRate(BURST, 1 / LINES_PER_SECOND)
LEVELS = frozenset({"debug", "info", "warning", "error", "stdout", "stderr"})
#: Between the first thing that happens and putting down all that has happened since, in seconds.
GATHER_SECONDS = 0.5
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class PluginRecorder:
    """Of one server process; used from its event loop, and free to be called at any rate."""

    def __init__(self, desk: DatabaseThread, clock: Callable[[], float] = time.monotonic) -> None:
        self._desk = desk
        self._rates = TokenBuckets(clock=clock)
        self._lines: list[PluginLogLine] = []
        self._crashes: list[PluginCrash] = []
        self._reports: dict[int, PluginReport] = {}
        self._known: dict[int, PluginReport] = {}
        self._left_out = Counter[int]()
        self._writing: asyncio.TimerHandle | None = None
        self._written = set[asyncio.Future[Any]]()

    def line(self, plugin_pk: int, level: str, text: str) -> bool:
        """Keep a line of the plugin's log; False when there were too many lately, and this one is
        only counted."""
        quota = Quota(plugin_pk, LINE_RATE)
        if self._rates.wait_seconds(quota):
            self._left_out[plugin_pk] += 1
        else:
            self._rates.take(quota)
            self._lines.append(_line(plugin_pk, _known(level), text))
        self._write_soon()
        return plugin_pk not in self._left_out

    def crash(self, plugin_pk: int, plugin_id: str, ending: ProcessExit) -> None:
        logger.warning("plugin %s: %s", plugin_id, _clean(ending.reason)[:500])
        crash = PluginCrash(plugin_id=plugin_pk, at=timezone.now())
        crash.reason = _clean(ending.reason)[:500]
        crash.detail = _clean(ending.last_words)[-20 * LINE_CHARS :]
        self._crashes.append(crash)
        self._write_soon()

    def report(self, report: PluginReport) -> None:
        """Report the status of a plugin in this process; nothing is written when it did not
        change."""
        report = replace(report, error=_clean(report.error))
        if self._known.get(report.plugin_pk) != report:
            self._known[report.plugin_pk] = self._reports[report.plugin_pk] = report
            self._write_soon()

    def confirm(self) -> None:
        """Confirm the reported status (heartbeat)."""
        self._submit(confirm_processes, [self._desk.process_id])

    async def close(self) -> None:
        """Write the remaining events, and accept no more reports."""
        self._write()
        self._submit(delete_process_reports, [self._desk.process_id])
        await asyncio.gather(*self._written, return_exceptions=True)

    def _write_soon(self) -> None:
        if self._writing is None:
            self._writing = asyncio.get_running_loop().call_later(GATHER_SECONDS, self._write)

    def _write(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None
        for pk, number in self._left_out.items():
            self._lines.append(
                _line(
                    pk,
                    "warning",
                    gettext("%(number)d more lines were left out.") % {"number": number},
                )
            )
        self._left_out.clear()
        lines, self._lines = self._lines, []
        crashes, self._crashes = self._crashes, []
        reports, self._reports = self._reports, {}
        self._submit(add_newest, lines, LINES_KEPT)
        self._submit(add_newest, crashes, CRASHES_KEPT)
        self._submit(write_reports, list(reports.values()))

    def _submit(
        self, operation: Callable[..., None], items: Sequence[object], *more: object
    ) -> None:
        """All ``items`` as one wish: the database thread takes wishes by the hundred."""
        if not items:
            return
        future = self._desk.submit(operation, items, *more)
        self._written.add(future)
        future.add_done_callback(self._done)

    def _done(self, future: "asyncio.Future[Any]") -> None:
        self._written.discard(future)
        if not future.cancelled() and (error := future.exception()):
            self._known.clear()  # what was reported may not be on record: say it again
            logger.error("What happened to plugins could not be put down: %s", error)


def _known(level: str) -> str:
    return level if level in LEVELS else "error" if level == "critical" else "info"


def _line(plugin_pk: int, level: str, text: str) -> PluginLogLine:
    words = _clean(text[:LINE_CHARS])
    return PluginLogLine(plugin_id=plugin_pk, at=timezone.now(), level=level, text=words)


def _clean(text: str) -> str:
    """``text`` without signs that would change how what stands around it is shown."""
    return str(make_storable(_UNPRINTABLE.sub("\ufffd", text)))


#: Plugins that start at the same time; a server that has many is to answer meanwhile.
STARTING_AT_ONCE = 2
#: The interval of heartbeats that confirm the reported status, in seconds.
CONFIRM_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class HostedTool:
    """A tool, and the plugin that it is of."""

    tool: PluginTool
    supervisor: Supervisor


class PluginHost:
    """Used from one event loop, except :meth:`reload`, which runs in the database thread.

    ``reserved`` are the names of built-in tools: plugins cannot use them.
    """

    def __init__(
        self,
        desk: DatabaseThread,
        root: Path,
        limits: ProcessLimits,
        capabilities: CapabilityService,
        *,
        reserved: Collection[str] = (),
        restart_policy: RestartPolicy | None = None,
    ) -> None:
        self.root = root
        self.limits = limits
        self.restart_policy = restart_policy or RestartPolicy()
        self.process_id = desk.process_id
        self.starting = asyncio.Semaphore(STARTING_AT_ONCE)
        self.tools: Mapping[str, HostedTool] = {}
        """By name, in the order of the folders; includes plugins that are not running now."""
        self.tools_version = 0
        """Increases with each change of :attr:`tools`."""
        self.one_of_each: Sequence[HostedTool] = ()
        """One tool of each plugin that has some."""
        self.has_chat_limits = False
        """Whether any tool is limited to certain chats."""
        self._desk = desk
        self._capabilities = capabilities
        self._recorder = PluginRecorder(desk)
        self._rows: Mapping[int, PluginSettings] = {}
        self._stamps: dict[str, str] = {}
        self._supervisors: dict[int, Supervisor] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._reserved = frozenset(reserved)
        self._recorded: list[ToolSpec] = []

    def reload(self) -> None:
        """Read the rows. In the database thread."""
        self.obey(load_plugin_settings())

    def obey(self, rows: Iterable[PluginSettings]) -> None:
        """Have the plugins run that the rows say. In the database thread."""
        self._rows = {settings.pk: settings for settings in rows}
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._apply_settings)

    def start(self) -> None:
        """Start watching the folder and running the enabled plugins. Returns immediately."""
        self._loop = asyncio.get_running_loop()
        self._tasks = [
            self._loop.create_task(work(), name="plugins") for work in (self._follow, self._confirm)
        ]

    async def close(self) -> None:
        """Stop all plugins concurrently, and write the last records."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._loop = None
        supervisors, self._supervisors = self._supervisors, {}
        await asyncio.gather(
            *(each.close() for each in supervisors.values()), return_exceptions=True
        )
        await self._recorder.close()
        await self._capabilities.close()

    def settings(self, pk: int) -> PluginSettings | None:
        """The row as last read; the supervisor may not have it yet."""
        return self._rows.get(pk)

    def all_settings(self) -> Sequence[PluginSettings]:
        return list(self._rows.values())

    def supervisor(self, pk: int) -> Supervisor | None:
        return self._supervisors.get(pk)

    # --- For supervisors ------------------------------------------------------------

    def line(self, plugin_pk: int, level: str, text: str) -> bool:
        return self._recorder.line(plugin_pk, level, text)

    def crashed(self, plugin: PluginSettings, ending: ProcessExit) -> None:
        self._recorder.crash(plugin.pk, plugin.plugin_id, ending)

    def report(self, report: PluginReport) -> None:
        self._recorder.report(report)

    async def run_capability(
        self, plugin: PluginSettings, call: CallInFlight | None, name: str, arguments: object
    ) -> object:
        return await self._capabilities.run_capability(
            self._rows.get(plugin.pk, plugin), call, name, arguments
        )

    def changed(self) -> None:
        """Collect the tools again. Of several with one name the first counts, in the order of the
        folders."""
        tools: dict[str, HostedTool] = {}
        for supervisor in sorted(self._supervisors.values(), key=lambda each: each.settings.folder):
            notes = []
            for tool in supervisor.tools:
                first = tools.get(tool.spec.name)
                if tool.spec.name in self._reserved:
                    notes.append(
                        gettext("%(tool)s is a tool of this program.") % {"tool": tool.spec.name}
                    )
                elif first is None or not first.supervisor.settings.is_wanted:
                    tools[tool.spec.name] = HostedTool(tool, supervisor)
                elif supervisor.settings.is_wanted:
                    notes.append(_taken(tool, first))
            if notes != supervisor.notes:
                supervisor.notes = notes
                logger.warning("plugin %s: %s", supervisor.settings.plugin_id, " ".join(notes))
                supervisor.report()
        self.tools = tools
        self.tools_version += 1
        self.one_of_each = list({hosted.supervisor: hosted for hosted in tools.values()}.values())
        self.has_chat_limits = any(
            hosted.tool.scope != ToolScope.ALL or hosted.tool.sessions for hosted in tools.values()
        )
        self._record_tools()

    # --- Work -----------------------------------------------------------------------

    async def _follow(self) -> None:
        """Read the folder now, and after each change in it."""
        await self._look()
        await watch_folder(self.root, self._look)

    async def _look(self) -> None:
        with log_errors(logger, "The folder of plugins %s could not be looked at", self.root):
            found = await asyncio.to_thread(scan_folder, self.root)
            self._stamps = {each.folder: each.stamp for each in found}
            await self._desk.submit(self._sync_rows, found)

    def _sync_rows(self, found: Sequence[PluginFolder]) -> None:
        sync_plugin_rows(found)
        # not before: these rows may never come to be
        transaction.on_commit(self.reload, robust=True)

    def _apply_settings(self) -> None:
        """Apply the rows. A plugin whose row is gone is stopped like a disabled one."""
        if self._loop is None:
            return
        for pk, settings in self._rows.items():
            if pk not in self._supervisors:
                self._supervisors[pk] = Supervisor(settings, self)
            self._supervisors[pk].apply(settings, self._stamps.get(settings.folder, ""))
        for pk in self._supervisors.keys() - self._rows.keys():
            supervisor = self._supervisors[pk]
            supervisor.apply(replace(supervisor.settings, enabled=False), "")
        self.changed()

    async def _confirm(self) -> None:
        while True:
            self._recorder.confirm()
            await asyncio.sleep(CONFIRM_SECONDS)

    def _record_tools(self) -> None:
        """Have the operator's rows of tools made, or follow what the plugins declare now."""
        specs = [offered.tool.spec for offered in self.tools.values() if offered.supervisor.serving]
        if specs and [id(spec) for spec in specs] != [id(spec) for spec in self._recorded]:
            self._recorded = specs
            self._desk.submit(ensure_tool_rows, specs).add_done_callback(self._tools_recorded)

    def _tools_recorded(self, future: "asyncio.Future[int]") -> None:
        if not future.cancelled() and (error := future.exception()):
            self._recorded = []
            logger.error("The rows of plugins' tools could not be made: %s", error)


def _taken(tool: PluginTool, first: HostedTool) -> str:
    return gettext(
        "%(tool)s is not offered: plugin %(plugin)s in the folder %(folder)s has one of that name."
    ) % {
        "tool": tool.spec.name,
        "plugin": first.supervisor.settings.plugin_id,
        "folder": first.supervisor.settings.folder,
    }
