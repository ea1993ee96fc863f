"""What happens to plugins, put down: bounded in rate and length, without signs that would forge
what stands around it."""

import asyncio
from typing import Any

import pytest
from django.utils import timezone

from tests.tools.plugins.hosting import PLUGINS, Desk
from tools.models import PluginCrash, PluginLogLine, PluginStatus
from tools.plugins.folder import CRASHES_KEPT, PluginReport, add_newest
from tools.plugins.host import BURST, LINES_PER_SECOND, PluginRecorder
from tools.plugins.process import LINE_CHARS, ProcessExit, describe_exit

pytestmark = pytest.mark.django_db(transaction=True)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def read(desk: Desk, query: Any) -> Any:
    return await desk.submit(query)


async def test_lines_are_bounded_in_rate_and_the_rest_is_counted():
    desk, clock = Desk(), Clock()
    journal = PluginRecorder(desk, clock)
    row = await read(desk, lambda: PLUGINS.create(folder="a"))
    kept = [journal.line(row.pk, "info", f"line {number}") for number in range(BURST + 30)]
    clock.now = 1.0
    kept += [journal.line(row.pk, "info", f"later {number}") for number in range(LINES_PER_SECOND)]
    await journal.close()
    texts = await read(
        desk, lambda: list(PluginLogLine.objects.order_by("pk").values_list("text", flat=True))
    )
    assert len(texts) == BURST + LINES_PER_SECOND + 1
    assert (kept.count(False) >= 30, texts[-1]) == (True, "30 more lines were left out.")
    await desk.close()


async def test_a_line_is_cut_and_nothing_in_it_changes_what_stands_around_it():
    desk = Desk()
    journal = PluginRecorder(desk)
    row = await read(desk, lambda: PLUGINS.create(folder="a"))
    journal.line(row.pk, "shouting", "a\x1b[2J\x00\ud800\u202e" + "x" * 5000)
    await journal.close()
    line = await read(desk, PluginLogLine.objects.get)
    assert (line.level, len(line.text)) == ("info", LINE_CHARS)
    assert line.text.startswith("a\ufffd[2J\ufffd\ufffd\ufffdx")
    await desk.close()


async def test_a_state_is_written_when_it_changes_and_goes_with_the_process():
    desk = Desk()
    journal = PluginRecorder(desk)
    row = await read(desk, lambda: PLUGINS.create(folder="a"))
    journal.report(PluginReport(row.pk, "p1", "starting"))
    journal.report(PluginReport(row.pk, "p1", "running", runner_pid=7, tools=("a",)))
    journal._write()
    status = await read(desk, PluginStatus.objects.get)
    assert (status.state, status.runner_pid, status.tools) == ("running", 7, ["a"])
    await journal.close()
    assert not await read(desk, PluginStatus.objects.exists)
    await desk.close()


async def test_what_happened_to_a_plugin_whose_row_is_gone_is_dropped():
    desk = Desk()
    journal = PluginRecorder(desk)
    journal.line(4711, "info", "who?")
    journal.crash(4711, "test.gone", ProcessExit("It ended."))
    journal.report(PluginReport(4711, "p1", "running"))
    await journal.close()
    found = [model.objects.exists for model in (PluginLogLine, PluginCrash, PluginStatus)]
    assert [await read(desk, query) for query in found] == [False] * 3
    await desk.close()
    await asyncio.sleep(0)


def test_the_newest_crashes_are_kept():
    row = PLUGINS.create(folder="a")
    reasons = map(str, range(CRASHES_KEPT + 3))
    crashes = [PluginCrash(plugin=row, at=timezone.now(), reason=reason) for reason in reasons]
    add_newest(crashes, CRASHES_KEPT)
    assert list(row.crash_reports.order_by("pk").values_list("reason", flat=True)[:1]) == ["3"]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0, "exit code 0"),
        (3, "exit code 3"),
        (128 + 11, "SIGSEGV"),
        (128 + 9, "SIGKILL"),
        (128 + 24, "processor time"),
        (-9, "watches"),
    ],
)
def test_an_exit_status_is_told_in_words(status, words):
    assert words in describe_exit(status)


def test_a_process_that_died_of_a_memory_error_is_told_so():
    assert "ran out of the memory" in describe_exit(1, "Traceback\nMemoryError")
