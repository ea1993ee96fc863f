"""Plugins that say too much, or what nobody can understand. Each time the plugin beside them goes
on answering."""

import json

import pytest

from tests.tools.plugins.hosting import PLUGINS, hosted, plugin, rewrite
from tools.models import PluginLogLine, PluginStatus
from tools.plugins.host import BURST

pytestmark = [pytest.mark.live, pytest.mark.django_db(transaction=True)]

HEAD = """
import os, sys
from tools.plugin_sdk import Plugin, Tool, ctx
"""
GARBAGE = """
@Tool
def spoil():
    for fd in map(int, os.listdir("/proc/self/fd")):
        try:
            os.write(fd, b"\\xff" * 64)
        except OSError:
            pass
    import time; time.sleep(600)
"""
FLOOD = """
@Tool
async def flood() -> str:
    for number in range(3000):
        ctx.logger.info("line %d", number)
        print("printed", number)
    return "done"
"""


async def test_what_is_printed_is_in_the_log_and_harms_no_call(tmp_path):
    plugin(
        tmp_path,
        "prints",
        f"{HEAD}\nprint('loading')\n\n@Tool\ndef say() -> str:\n"
        "    print('said\\x1b[31m')\n    return 'ok'\n",
    )
    async with hosted(tmp_path) as hosting:
        await hosting.enable("prints")
        assert (await hosting.call("say")).content == "ok"
        assert (await hosting.line("prints", "loading")).level == "stdout"
        assert (await hosting.line("prints", "said")).text == "said\ufffd[31m"


async def test_an_answer_of_a_hundred_megabytes_is_a_failure_and_nothing_else(tmp_path):
    plugin(
        tmp_path,
        "bad",
        f"{HEAD}\n@Tool\ndef much() -> str:\n    return 'x' * 100_000_000\n"
        "\n@Tool\ndef little() -> str:\n    return 'x'\n",
    )
    async with hosted(tmp_path) as hosting:
        await hosting.enable("bad")
        result = await hosting.call("much")
        assert "100000" in result.error_message
        assert (await hosting.call("little")).content == "x"


async def test_garbage_in_the_pipes_ends_the_process_that_wrote_it(tmp_path):
    plugin(tmp_path, "bad", HEAD + GARBAGE)
    plugin(tmp_path, "good")
    async with hosted(tmp_path) as hosting:
        await hosting.enable("bad", "good")
        assert "崩溃" in (await hosting.call("spoil")).error_message
        await hosting.crash("bad", "frame")
        assert await hosting.greets()


async def test_a_flood_of_lines_is_cut_and_counted(tmp_path):
    plugin(tmp_path, "bad", HEAD + FLOOD)
    plugin(tmp_path, "good")
    async with hosted(tmp_path) as hosting:
        await hosting.enable("bad", "good")
        assert (await hosting.call("flood")).content == "done"
        assert await hosting.greets()
        await hosting.line("bad", "more lines were left out")
        number = await hosting.read(
            lambda: PluginLogLine.objects.filter(plugin__folder="bad").count()
        )
        assert BURST <= number < 3 * BURST


async def test_a_broken_manifest_is_told_and_mended(tmp_path):
    folder = plugin(tmp_path, "bad")
    sound = (folder / "_manifest.json").read_text()
    rewrite(folder / "_manifest.json", "{")
    async with hosted(tmp_path) as hosting:
        assert "JSON" in (await hosting.found("bad")).fault
        await hosting.change("bad", enabled=True)
        assert await hosting.tools() == []
        rewrite(folder / "_manifest.json", sound)
        await hosting.state("bad", "running")
        assert await hosting.greets()


async def test_of_two_folders_with_one_id_the_first_counts(tmp_path):
    plugin(tmp_path, "a", id="test.same")
    plugin(tmp_path, "b", id="test.same")
    async with hosted(tmp_path) as hosting:
        await hosting.enable("a")
        second = await hosting.found("b")
        assert second.fault == "The id test.same is in two folders, a and b; only the first counts."
        await hosting.change("b", enabled=True)
        assert await hosting.greets()
        assert await hosting.read(lambda: PluginStatus.objects.count()) == 1


async def test_a_plugin_that_edits_itself_is_not_followed_for_ever(tmp_path):
    edits = (
        "\nwith open(__file__, 'a') as file:\n    file.write('#')\n\n@Tool\ndef say() -> str:\n"
        "    return 'ok'\n"
    )
    plugin(tmp_path, "bad", HEAD + edits)
    async with hosted(tmp_path, reloads=2) as hosting:
        await hosting.enable("bad")
        supervisor = next(iter(hosting.host.tools.values())).supervisor
        await hosting.until(lambda: len(supervisor._reloaded) == 2)
        assert (await hosting.call("say")).content == "ok"


async def test_no_manifest_keeps_the_others_from_running(tmp_path):
    said = ["[]", '{"manifest_version": 3}', "\x00", json.dumps({"id": "../x"})]
    for number, text in enumerate(said):
        (plugin(tmp_path, f"bad{number}") / "_manifest.json").write_text(text)
    plugin(tmp_path, "good")
    async with hosted(tmp_path) as hosting:
        await hosting.enable("good")
        assert await hosting.greets()
        rows = await hosting.read(lambda: list(PLUGINS.filter(folder__startswith="bad")))
        assert [bool(row.fault) for row in rows] == [True] * len(said)
