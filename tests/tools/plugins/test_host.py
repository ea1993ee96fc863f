"""Plugins that behave, under the host: found, switched on and off, called, configured, edited while
they run."""

import asyncio
import shutil
from typing import Any

import pytest

from tests.tools.plugins.hosting import (
    GREETS,
    LIMITS,
    PLUGINS,
    becomes,
    gone,
    hosted,
    plugin,
    rewrite,
)
from tools.contract import (
    RecordedCall,
    ToolAvailabilityContext,
    ToolExecutionContext,
    ToolFailed,
    ToolInvocation,
)
from tools.models import PluginCrash, PluginLogLine, PluginStatus, ToolConfig
from tools.plugins.capabilities import CapabilityService
from tools.plugins.folder import LINES_KEPT, add_newest, confirm_processes
from tools.plugins.host import PluginHost
from tools.plugins.provider import PluginToolProvider

pytestmark = [pytest.mark.live, pytest.mark.django_db(transaction=True)]

HEAD = """
import asyncio, os
from tools.plugin_sdk import Plugin, Tool, ctx
"""
EDITION = """
@Tool
async def edition(release: str = "") -> str:
    import pathlib
    if release:
        pathlib.Path(release + ".begun").touch()
        while not os.path.exists(release):
            await asyncio.sleep(0.01)
    return "{}"
"""


async def says(hosting, tool, words, **arguments):
    return (await hosting.call(tool, **arguments)).content == words


async def test_a_new_plugin_is_known_and_does_not_run_until_it_is_enabled(tmp_path):
    plugin(tmp_path, "hello")
    async with hosted(tmp_path) as hosting:
        row = await hosting.found("hello")
        assert (row.plugin_id, row.version, row.enabled, row.fault) == (
            "test.hello",
            "1.0.0",
            False,
            "",
        )
        assert await hosting.tools() == []
        await hosting.enable("hello")
        assert await hosting.greets()
        spec = await hosting.registry.get_tool_spec("greet")
        assert spec is not None
        assert (spec.provider_name, spec.provider_type) == ("test.hello", "plugin")
        assert (
            await hosting.until(lambda: ToolConfig.objects.filter(name="greet").first())
        ).provider_name == "test.hello"


async def test_a_plugin_that_is_switched_off_is_gone_at_once_and_the_refusal_says_why(tmp_path):
    plugin(tmp_path, "hello")
    async with hosted(tmp_path) as hosting:
        await hosting.enable("hello")
        runner = (await hosting.state("hello", "running")).runner_pid
        await hosting.change("hello", enabled=False)
        assert await hosting.tools() == []
        assert (
            "插件 test.hello 已被管理员停用"
            in (await hosting.call("greet", name="you")).error_message
        )
        assert await gone(runner)
        await hosting.until(lambda: not PluginStatus.objects.exists())


async def test_edited_code_is_loaded_beside_the_old_which_finishes_its_calls(tmp_path):
    folder = plugin(tmp_path / "plugins", "hello", HEAD + EDITION.format("old"))
    release = tmp_path / "release"
    async with hosted(tmp_path / "plugins") as hosting:
        await hosting.enable("hello")
        calling = asyncio.create_task(hosting.call("edition", release=str(release)))
        await becomes((tmp_path / "release.begun").exists)
        rewrite(folder / "plugin.py", HEAD + EDITION.format("new"))
        await becomes(lambda: says(hosting, "edition", "new"))
        release.touch()
        assert (await calling).content == "old"
        assert not await hosting.read(PluginCrash.objects.exists)


async def test_an_edition_that_cannot_be_loaded_leaves_the_old_one_running(tmp_path):
    folder = plugin(tmp_path, "hello")
    async with hosted(tmp_path) as hosting:
        await hosting.enable("hello")
        rewrite(folder / "plugin.py", "def (")
        assert "plugin.py, line 1" in (await hosting.crash("hello")).reason
        assert await hosting.greets()
        status = await hosting.until(lambda: PluginStatus.objects.exclude(error="").first())
        assert (status.state, "loaded before goes on" in status.error) == ("running", True)
        rewrite(folder / "plugin.py", GREETS.replace("hello", "goodbye"))
        assert await becomes(lambda: says(hosting, "greet", "goodbye you", name="you"))
        assert await hosting.until(
            lambda: PluginStatus.objects.filter(state="running", error="").exists()
        )


async def test_a_call_that_does_not_finish_before_a_reload_fails_in_words(tmp_path):
    plugin(tmp_path / "plugins", "hello", HEAD + EDITION.format("old"))
    async with hosted(tmp_path / "plugins", drain=0.1) as hosting:
        await hosting.enable("hello")
        calling = asyncio.create_task(hosting.call("edition", release=str(tmp_path / "never")))
        await becomes((tmp_path / "never.begun").exists)
        await hosting.change("hello", reloads=1)
        assert "正被停用或重新加载" in (await calling).error_message
        assert (await hosting.call("edition")).content == "old"


async def test_a_tool_that_did_not_change_stays_the_same_object(tmp_path):
    edition = "\n\n@Tool('edition', '{}')\ndef edition() -> str:\n    return ''\n"
    folder = plugin(tmp_path, "hello", GREETS + edition.format("one"))
    async with hosted(tmp_path) as hosting:
        await hosting.enable("hello")
        before = {spec.name: spec for spec in await hosting.registry.list_tools()}
        rewrite(folder / "plugin.py", GREETS + edition.format("two"))
        await becomes(lambda: hosting.host.tools["edition"].tool.spec.description == "two")
        assert await hosting.registry.get_tool_spec("greet") is before["greet"]


async def test_a_folder_that_goes_takes_its_tools_and_keeps_its_row(tmp_path):
    folder = plugin(tmp_path, "hello")
    async with hosted(tmp_path) as hosting:
        await hosting.enable("hello", granted=["storage"])
        shutil.move(folder, tmp_path.parent / "away")
        await hosting.until(lambda: PLUGINS.exclude(fault="").exists())
        assert await hosting.tools() == []
        shutil.move(tmp_path.parent / "away", tmp_path / "renamed")
        row = await hosting.found("renamed")
        assert (row.granted, row.fault) == (["storage"], "")
        assert await becomes(hosting.greets)


async def test_a_new_configuration_reaches_the_running_process(tmp_path):
    tool = "@Tool\ndef config() -> str:\n    return f'{ctx.config.get(\"town\")} {os.getpid()}'\n"
    schema = {"type": "object", "properties": {"town": {"type": "string", "default": "Paris"}}}
    plugin(tmp_path, "hello", HEAD + tool, config_schema=schema)
    async with hosted(tmp_path) as hosting:
        await hosting.enable("hello")
        town, pid = (await hosting.call("config")).content.split()
        assert town == "Paris"
        await hosting.change("hello", config={"town": "Rome"})
        assert await becomes(lambda: says(hosting, "config", f"Rome {pid}"))


async def test_the_process_sees_nothing_of_the_servers_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("UPSTREAM_API_KEY", "secret")
    plugin(
        tmp_path,
        "hello",
        HEAD + "@Tool\ndef seen() -> str:\n    return ' '.join(sorted(os.environ))\n",
    )
    async with hosted(tmp_path) as hosting:
        await hosting.enable("hello")
        assert set((await hosting.call("seen")).content.split()) <= {
            "LANG",
            "LC_CTYPE",
            "PATH",
            "TZ",
        }


async def test_of_two_tools_with_one_name_the_first_folders_counts_and_the_other_is_told(tmp_path):
    plugin(tmp_path, "a", GREETS)
    plugin(tmp_path, "b", GREETS.replace("hello", "other"))
    async with hosted(tmp_path) as hosting:
        await hosting.enable("b")
        assert (await hosting.call("greet", name="you")).content == "other you"
        await hosting.enable("a")
        assert (await hosting.call("greet", name="you")).content == "hello you"
        told = await hosting.until(
            lambda: PluginStatus.objects.filter(plugin__folder="b", error__contains="greet").first()
        )
        assert "test.a" in told.error
        await hosting.change("a", enabled=False)
        assert (await hosting.call("greet", name="you")).content == "other you"


async def test_no_plugin_takes_the_name_of_a_tool_of_the_program(tmp_path):
    plugin(tmp_path, "a", GREETS.replace("def greet", "def reply"))
    async with hosted(tmp_path) as hosting:
        await hosting.enable("a")
        status = await hosting.until(lambda: PluginStatus.objects.exclude(error="").first())
        assert status.error == "reply is a tool of this program."
        assert await hosting.tools() == []
        assert not await hosting.read(ToolConfig.objects.exists)


#: By where a tool is wanted: in which chat it is looked for, and whether it is there.
WANTED: dict[str, tuple[dict[str, Any], bool]] = {
    "chat_scope='group'": ({"is_group_chat": False}, False),
    "chat_scope='private'": ({"is_group_chat": False}, True),
    "allowed_session=['qq:7']": ({"group_id": "7"}, True),
    "allowed_session=['7']": ({"group_id": "7"}, True),
    "allowed_session=['s1']": ({"session_id": "s1"}, True),
    "allowed_session=['qq:8', '77']": ({"session_id": "s1", "group_id": "7"}, False),
}


async def test_a_tool_is_seen_only_where_its_plugin_wants_it(tmp_path):
    tools = [
        f"@Tool('quiet{number}', {metadata})\ndef quiet{number}() -> str:\n    return ''\n"
        for number, metadata in enumerate(WANTED)
    ]
    plugin(tmp_path, "a", "\n".join([HEAD, *tools]))
    async with hosted(tmp_path) as hosting:
        await hosting.enable("a")
        for number, (chat, is_seen) in enumerate(WANTED.values()):
            usual: dict[str, Any] = {"platform": "qq", "is_group_chat": True, "is_owner": True}
            context = ToolAvailabilityContext(**(usual | chat))
            specs = await hosting.registry.list_tools(context)
            assert (f"quiet{number}" in {spec.name for spec in specs}) is is_seen
        everything = await hosting.registry.list_tools()
        assert len(everything) == len(WANTED)
        assert not {"chat_scope", "allowed_session"} & set().union(
            *(spec.metadata for spec in everything)
        )


async def test_what_a_plugin_sends_goes_to_the_chat_of_its_call_and_only_when_granted(tmp_path):
    plugin(
        tmp_path,
        "a",
        f"{HEAD}\n@Tool\nasync def say():\n    return await ctx.send.text('hi')\n",
        capabilities=["send.text"],
    )
    async with hosted(tmp_path) as hosting:
        await hosting.enable("a")
        assert "not granted" in (await hosting.call("say")).error_message
        await hosting.change("a", granted=["send.text"])
        assert (await hosting.call("say", session="s9")).content == "sent"
        assert hosting.services.sent == [("s9", "hi")]


async def test_what_was_asked_for_in_a_call_ends_with_the_call(tmp_path):
    plugin(
        tmp_path,
        "a",
        f"{HEAD}\n@Tool\nasync def say():\n    return await ctx.send.text('hi')\n",
        capabilities=["send.text"],
    )
    async with hosted(tmp_path) as hosting:
        await hosting.enable("a", granted=["send.text"])
        hosting.services.hold.clear()
        calling = asyncio.create_task(hosting.call("say"))
        link: Any = hosting.host.tools["say"].supervisor.link
        await becomes(lambda: link._asked)
        calling.cancel()
        await becomes(lambda: not link._asked)
        hosting.services.hold.set()
        assert hosting.services.sent == []


async def test_a_cancelled_call_is_cancelled_in_the_plugin(tmp_path):
    tool = (
        "@Tool\nasync def wait(file: str):\n    open(file + '.begun', 'w')\n    try:\n"
        "        await asyncio.sleep(600)\n    finally:\n        open(file, 'w')\n"
    )
    plugin(tmp_path / "plugins", "a", HEAD + tool)
    async with hosted(tmp_path / "plugins") as hosting:
        await hosting.enable("a")
        calling = asyncio.create_task(hosting.call("wait", file=str(tmp_path / "ended")))
        await becomes((tmp_path / "ended.begun").exists)
        calling.cancel()
        await becomes((tmp_path / "ended").exists)


async def test_progress_reaches_the_call_that_it_is_of(tmp_path):
    tool = (
        "@Tool('work', is_long_running=True)\nasync def work() -> str:\n"
        "    ctx.report_progress('half', tell=True)\n    await asyncio.sleep(0)\n"
        "    return 'done'\n"
    )
    plugin(tmp_path, "a", HEAD + tool)
    async with hosted(tmp_path) as hosting:
        await hosting.enable("a")
        told: list[tuple[str, bool]] = []
        context = ToolExecutionContext(
            user_id="1",
            owners={"1"},
            on_progress=lambda text, tell: told.append((text, tell)),
        )
        result = await hosting.registry.invoke(ToolInvocation("work"), context)
        assert (result.content, told) == ("done", [("half", True)])


async def test_everything_is_ended_and_told_when_the_host_closes(tmp_path):
    plugin(tmp_path, "a")
    plugin(tmp_path, "b")
    async with hosted(tmp_path) as hosting:
        await hosting.enable("a", "b")
        runners = [(await hosting.state(name, "running")).runner_pid for name in "ab"]
        await hosting.registry.close()
        assert await gone(*runners)
        assert not await hosting.read(PluginStatus.objects.exists)


async def test_a_host_that_was_never_started_offers_nothing_and_closes(tmp_path):
    plugin(tmp_path, "a")
    async with hosted(tmp_path) as hosting:
        await hosting.enable("a")
        host = PluginHost(
            hosting.desk, tmp_path, LIMITS, CapabilityService(hosting.desk, hosting.services)
        )
        provider = PluginToolProvider(host)
        await hosting.read(hosting.host.reload)
        assert await provider.list_tools() == []
        assert "正在启动" in provider.absence("greet") or provider.absence("greet") == ""
        await provider.close()


def test_the_newest_lines_are_kept(db):
    row = PLUGINS.create(folder="a")
    at = row.found_at
    texts = map(str, range(LINES_KEPT + 5))
    lines = [PluginLogLine(plugin=row, at=at, level="info", text=text) for text in texts]
    add_newest(lines, LINES_KEPT)
    assert list(row.log_lines.order_by("pk").values_list("text", flat=True)[:1]) == ["5"]
    assert row.log_lines.count() == LINES_KEPT


def test_states_of_processes_that_are_gone_go_too(db):
    row = PLUGINS.create(folder="a")
    for process, seen in (("old", "2020-01-01T00:00Z"), ("p1", "2020-01-01T00:00Z")):
        PluginStatus.objects.create(plugin=row, process_id=process, seen_at=seen)
    confirm_processes(["p1"])
    assert list(PluginStatus.objects.values_list("process_id", flat=True)) == ["p1"]


BOOKS = """
from tools.plugin_sdk import Tool, ToolFailed

@Tool("book", description="book", undo="unbook")
def book(seat: int) -> str:
    return f"booked {seat}"

@Tool("unbook", description="unbook", visibility="hidden")
def unbook(arguments: dict, result: str) -> str:
    if arguments["seat"] == 13:
        raise ToolFailed("seat 13 is sold")
    return f"{result} no more"
"""


async def test_a_plugin_takes_its_calls_back_by_another_of_its_tools(tmp_path):
    plugin(tmp_path, "books", BOOKS)
    async with hosted(tmp_path) as hosting:
        await hosting.found("books")
        await hosting.enable("books")
        await becomes(lambda: says(hosting, "book", "booked 1", seat=1))
        call = RecordedCall("book", {"seat": 1}, "booked 1")
        assert await hosting.registry.undo(call, ToolExecutionContext()) == "booked 1 no more"
        with pytest.raises(ToolFailed, match="sold"):
            await hosting.registry.undo(RecordedCall("book", {"seat": 13}), ToolExecutionContext())
