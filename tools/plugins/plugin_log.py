"""Events of plugins, collected and written in batches: a plugin that logs much costs no more than
one that logs little."""

import asyncio
import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext

from tools.plugins.process import LINE_CHARS, ProcessExit
from tools.plugins.records import (
    CrashEntry,
    LogEntry,
    PluginReport,
    confirm_processes,
    delete_process_reports,
    write_crashes,
    write_log_entries,
    write_reports,
)
from tools.registry.live_provider import DatabaseThread
from tools.text.storable import make_storable
from tools.token_bucket import Quota, RefillRate, TokenBuckets

logger = logging.getLogger(__name__)

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
        self._lines: list[LogEntry] = []
        self._crashes: list[CrashEntry] = []
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
        last_words = _clean(ending.last_words)[-20 * LINE_CHARS :]
        self._crashes.append(
            CrashEntry(plugin_pk, timezone.now(), _clean(ending.reason), last_words)
        )
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
        self._submit(write_log_entries, lines)
        self._submit(write_crashes, crashes)
        self._submit(write_reports, list(reports.values()))

    def _submit(
        self, operation: Callable[[Sequence[Any]], Sequence[None]], items: Sequence[Any]
    ) -> None:
        """All ``items`` as one wish: the database thread takes wishes by the hundred."""
        if not items:
            return
        future = self._desk.submit_batched(partial(_all_of, operation), items)
        self._written.add(future)
        future.add_done_callback(self._done)

    def _done(self, future: "asyncio.Future[Any]") -> None:
        self._written.discard(future)
        if not future.cancelled() and (error := future.exception()):
            self._known.clear()  # what was reported may not be on record: say it again
            logger.error("What happened to plugins could not be put down: %s", error)


def _all_of(
    operation: Callable[[Sequence[Any]], Sequence[None]], wishes: Sequence[Sequence[Any]]
) -> Sequence[None]:
    for items in wishes:
        operation(items)
    return [None] * len(wishes)


def _known(level: str) -> str:
    return level if level in LEVELS else "error" if level == "critical" else "info"


def _line(plugin_pk: int, level: str, text: str) -> LogEntry:
    return LogEntry(plugin_pk, timezone.now(), level, _clean(text[:LINE_CHARS]))


def _clean(text: str) -> str:
    """``text`` without signs that would change how what stands around it is shown."""
    return str(make_storable(_UNPRINTABLE.sub("\ufffd", text)))
