"""A plugin in its own process, over real pipes, whatever its code does."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.tools.plugins.processes import PATIENCE, started, write_plugin
from tools.plugin_sdk.calls import RpcError
from tools.plugins.service import THREADS

TOOLS = """
    import asyncio, os, sys, threading, time
    from tools.plugin_sdk import CapabilityError, Plugin, Tool, ToolFailed

    class Test(Plugin):
        async def on_load(self):
            self.ctx.logger.info("loaded with %s", dict(self.config))

        async def on_unload(self):
            self.ctx.logger.info("unloaded")

        async def on_config_update(self, config):
            self.ctx.logger.info("now %s", dict(self.config))

        @Tool
        async def add(self, a: int, b: int = 2) -> int:
            return a + b

        @Tool
        def blocks(self, gate: str) -> str:
            while not os.path.exists(gate):
                time.sleep(0.01)
            return "opened"

        @Tool
        async def waits(self) -> None:
            self.ctx.logger.info("waiting")
            try:
                await asyncio.Event().wait()
            finally:
                self.ctx.logger.info("stopped waiting")

        @Tool
        def raises(self, kind: str) -> None:
            raise {"value": ValueError("no such thing"), "empty": KeyError(),
                   "told": ToolFailed("没有库存"), "exit": SystemExit(3),
                   "stop": StopIteration()}[kind]

        @Tool
        async def large(self, megabytes: int) -> bytes:
            return b"x" * (megabytes * 2**20)

        @Tool
        async def many(self, lists: int) -> list:
            return [[] for _ in range(lists)]

        @Tool
        async def remembers(self, value: dict) -> dict:
            await self.ctx.storage.set("k", {"of": value, 1: {2}})
            return {"kept": await self.ctx.storage.get("k"), "who": self.ctx.call.user_id}

        @Tool
        def sends(self, text: str) -> str:
            self.ctx.report_progress("half", tell=True)
            return self.ctx.send.text(text)

        @Tool
        async def sends_elsewhere(self) -> None:
            await self.ctx.send.text("x", "another chat")

        @Tool
        async def denied(self) -> str:
            try:
                await self.ctx.llm.generate("?")
            except CapabilityError as error:
                return error.code

        @Tool
        def prints(self) -> None:
            print("on stdout\\0", end="\\n", flush=True)
            os.write(1, b"\\x00\\x00\\x00\\x01\\xc1 raw bytes\\n")
            sys.stderr.write("on stderr\\n")

        @Tool
        def forks(self) -> int:
            child = os.fork()
            if child == 0:
                os.write(int(sys.argv[3]), b"\\xff\\xff\\xff\\xff")
                os._exit(0)
            return os.waitpid(child, 0)[1]

        @Tool
        def burns(self) -> None:
            while True:
                pass

        @Tool
        def devours(self) -> int:
            return len(bytearray(2 * 2**30))

        @Tool
        def opens(self) -> int:
            return len([open(__file__) for _ in range(300)])

        @Tool
        async def modules(self) -> list[str]:
            return sorted({name.partition(".")[0] for name in sys.modules})

        @Tool
        async def logs(self, lines: int) -> None:
            for number in range(lines):
                self.ctx.logger.warning("line %d", number)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_plugin(tmp_path / "plugin", TOOLS)


async def fails(awaitable: Any) -> RpcError:
    with pytest.raises(RpcError) as caught:
        await awaitable
    return caught.value


async def test_tools_are_declared_and_called(folder):
    async with started(folder) as plugin:
        tools = await plugin.load({"city": "巴黎"})
        assert tools[0]["name"] == "add"
        assert tools[0]["parameters_schema"]["required"] == ["a"]
        assert await plugin.invoke("add", {"a": 1}) == 3
        assert await plugin.has_logged("loaded with {'city': '巴黎'}")
        # Nothing of the server is in the process.
        assert {"django", "agent", "onebot", "frostproject", "openai", "aiohttp"}.isdisjoint(
            await plugin.invoke("modules")
        )
    assert not list(folder.glob("__pycache__"))


async def test_a_tool_that_blocks_keeps_nobody_waiting(folder, tmp_path):
    async with started(folder) as plugin:
        await plugin.load()
        blocked = asyncio.create_task(plugin.invoke("blocks", {"gate": str(tmp_path / "gate")}))
        assert await plugin.invoke("add", {"a": 1}) == 3
        assert (await plugin.request("health"))["calls"] == 1
        assert not blocked.done()
        (tmp_path / "gate").touch()
        assert await blocked == "opened"


RAISED = {
    "value": "no such thing",
    "empty": "KeyError",
    "told": "没有库存",
    "exit": "SystemExit: 3",
    "stop": "StopIteration",
}


async def test_what_a_tool_raises_is_the_failure_of_its_call_and_the_operator_is_told_where(folder):
    async with started(folder) as plugin:
        await plugin.load()
        for kind, words in RAISED.items():
            error = await fails(plugin.invoke("raises", {"kind": kind}))
            assert (error.code, error.message) == ("E_PLUGIN_FAILED", words)
            assert await plugin.invoke("add", {"a": 1}) == 3
        assert await plugin.has_logged("ValueError: no such thing\n")
        line = next(line for line in plugin.logged if "no such thing" in line["text"])
        assert line["level"] == "error"
        assert line["text"].startswith("plugin.py, line ")


async def test_a_result_that_is_too_large_or_of_too_many_parts_fails_alone(folder):
    async with started(folder) as plugin:
        await plugin.load()
        assert (await fails(plugin.invoke("large", {"megabytes": 100}))).code == "E_BAD_PAYLOAD"
        assert len(await plugin.invoke("large", {"megabytes": 1})) > 2**20
        assert (await fails(plugin.invoke("many", {"lists": 300_000}))).code == "E_BAD_PAYLOAD"
        assert len(await plugin.invoke("many", {"lists": 100_000})) == 100_000


async def test_a_call_that_is_given_up_is_stopped(folder):
    async with started(folder) as plugin:
        await plugin.load()
        call = asyncio.create_task(plugin.invoke("waits"))
        await plugin.has_logged("waiting")
        call.cancel()
        assert await plugin.has_logged("stopped waiting")
        assert (await plugin.request("health"))["calls"] == 0


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("missing", {}),
    ("add", {}),
    ("add", {"a": "one"}),
    ("add", {"a": 1, "c": 2}),
]


async def test_a_call_that_cannot_be_made_is_a_failure(folder):
    async with started(folder) as plugin:
        await plugin.load()
        for name, arguments in CALLS:
            assert (await fails(plugin.invoke(name, arguments))).code in {
                "E_METHOD_NOT_ALLOWED",
                "E_PLUGIN_FAILED",
            }


SENSELESS = [
    ("invoke", {"name": "add"}),
    ("invoke", 7),
    ("load", {}),
    ("explode", {}),
    ("configure", {"config": {}}),
    ("shutdown", 1),
]


async def test_a_request_that_makes_no_sense_is_refused(folder):
    async with started(folder) as plugin:
        for method, payload in SENSELESS:
            assert (await fails(plugin.request(method, payload))).code in {
                "E_METHOD_NOT_ALLOWED",
                "E_PLUGIN_NOT_FOUND",
            }
        assert await plugin.load()


# --- What it asks for -------------------------------------------------------------


async def test_a_tool_asks_the_server_and_is_answered(folder):
    gives = {"storage_set": None, "storage_get": {"stored": 1}, "send_text": "已发送"}
    async with started(folder, **gives) as plugin:
        await plugin.load()
        assert await plugin.invoke("remembers", {"value": {"a": 1}}) == {
            "kept": {"stored": 1},
            "who": "42",
        }
        assert plugin.asked[0] == {
            "name": "storage.set",
            "arguments": {"key": "k", "value": {"of": {"a": 1}, "1": [2]}},
            "call": "c1",
        }
        # And a synchronous one in the same words.
        assert await plugin.invoke("sends", {"text": "hi"}) == "已发送"
        assert plugin.progress == [{"call": "c1", "text": "half", "tell": True}]


async def test_what_is_not_granted_can_be_caught_or_fails_the_call(folder):
    async with started(folder) as plugin:
        await plugin.load()
        assert await plugin.invoke("denied") == "E_CAPABILITY_DENIED"
        assert (await fails(plugin.invoke("sends", {"text": "hi"}))).code == "E_CAPABILITY_DENIED"


async def test_nothing_is_sent_to_another_chat(folder):
    async with started(folder, send_text="sent") as plugin:
        await plugin.load()
        assert (await fails(plugin.invoke("sends_elsewhere"))).code == "E_CAPABILITY_DENIED"
        assert plugin.asked == []


# --- Loading ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (
            "import not_there_at_all",
            "plugin.py, line 1: ModuleNotFoundError: No module named 'not_there_at_all'",
        ),
        ("def broken(:\n    pass", "plugin.py, line 1: SyntaxError"),
        ("x = 1", "plugin.py declares no tool"),
        (
            "raise SystemExit(3)",
            "ImportError: it ended the process while it was imported: SystemExit 3",
        ),
        ("def create_plugin():\n    return 7", "create_plugin() returns int"),
        (
            "from tools.plugin_sdk import Tool\n@Tool('a')\ndef f(): ...\n@Tool('a')\ndef g(): ...",
            "two tools have the name a",
        ),
        (
            "from tools.plugin_sdk import Tool\n@Tool('no good')\ndef f(): ...",
            "plugin.py, line 2: tools.contract.InvalidDeclaration",
        ),
        (
            "from tools.plugin_sdk import Plugin\nclass A(Plugin): ...\nclass B(Plugin): ...",
            "plugin.py has several plugins: A, B",
        ),
        (
            "from tools.plugin_sdk import Plugin, Tool\nclass A(Plugin):\n"
            "    def on_load(self): 1 / 0\n    @Tool\n    def t(self): ...",
            "plugin.py, line 3: ZeroDivisionError",
        ),
    ],
)
async def test_a_plugin_that_cannot_be_loaded_says_why(tmp_path, source, words):
    async with started(write_plugin(tmp_path / "plugin", source)) as plugin:
        error = await fails(plugin.load())
        assert error.code == "E_PLUGIN_FAILED"
        assert words in error.message.splitlines()[0]
        assert (await fails(plugin.invoke("a"))).code == "E_METHOD_NOT_ALLOWED"


async def test_a_folder_without_code_says_so(tmp_path):
    async with started(tmp_path) as plugin:
        assert "No module named 'loaded_plugin.plugin'" in (await fails(plugin.load())).message


async def test_functions_and_modules_beside_it_are_the_plugins_own(tmp_path):
    source = (
        "from tools.plugin_sdk import Tool, ctx\nfrom .words import greeting\n@Tool\n"
        "def greet() -> str:\n    return greeting() + ctx.call.user_id"
    )
    words = "def greeting():\n    return 'hello '"
    async with started(write_plugin(tmp_path / "with-a-dash", source, words=words)) as plugin:
        await plugin.load()
        assert await plugin.invoke("greet") == "hello 42"


async def test_a_plugin_written_for_maibot_runs_as_it_is(tmp_path):
    source = """
        from maibot_sdk import Action, CONFIG_RELOAD_SCOPE_SELF, MaiBotPlugin, Tool
        from maibot_sdk.types import ToolParameterInfo, ToolParamType

        class Old(MaiBotPlugin):
            async def on_load(self): ...
            async def on_unload(self): ...
            async def on_config_update(self, scope, config_data, version):
                if scope == CONFIG_RELOAD_SCOPE_SELF:
                    self.ctx.logger.info("updated to %s", config_data)

            @Tool("greet", brief_description="打招呼", parameters=[
                ToolParameterInfo(name="stream_id", param_type=ToolParamType.STRING,
                                  description="当前聊天流 ID", required=True)])
            async def greet(self, stream_id: str, **kwargs):
                await self.ctx.send.text("你好！", stream_id)
                return {"success": True, "message": "已回复"}

            @Action("poke", description="戳一戳", action_parameters={"target": "谁"})
            async def poke(self, **kwargs):
                return True, kwargs["action_data"]["target"]

        def create_plugin():
            return Old()
    """
    async with started(write_plugin(tmp_path / "old", source), send_text="sent") as plugin:
        tools = await plugin.load()
        assert [tool["name"] for tool in tools] == ["greet", "poke"]
        assert tools[0]["parameters_schema"]["required"] == []
        assert await plugin.invoke("greet") == {"success": True, "message": "已回复"}
        assert await plugin.invoke("poke", {"target": "小明"}) == [True, "小明"]
        assert await plugin.has_logged("@Action('poke') is deprecated")
        await plugin.request("configure", {"config": {"a": 1}})
        assert await plugin.has_logged("updated to {'a': 1}")


async def test_a_new_configuration_is_there_at_once(folder):
    async with started(folder) as plugin:
        await plugin.load({"city": "巴黎"})
        await plugin.request("configure", {"config": {"city": "里昂"}})
        assert await plugin.has_logged("now {'city': '里昂'}")


# --- Bounds -------------------------------------------------------------------------


async def test_what_is_printed_breaks_no_frame_and_comes_as_lines(folder):
    async with started(folder) as plugin:
        await plugin.load()
        await plugin.invoke("prints")
        assert await plugin.invoke("add", {"a": 1}) == 3
        assert plugin.process.stdout
        assert plugin.process.stderr
        assert await plugin.process.stdout.readline() == b"on stdout\0\n"
        assert (await plugin.process.stdout.readline()).endswith(b"raw bytes\n")
        assert await plugin.process.stderr.readline() == b"on stderr\n"


async def test_a_flood_of_log_lines_is_bounded_and_comes_in_order(folder):
    async with started(folder) as plugin:
        await plugin.load()
        await plugin.invoke("logs", {"lines": 5_000})
        assert await plugin.has_logged("lines were left out")
        numbers = [
            int(line["text"].split()[1])
            for line in plugin.logged
            if line["text"].startswith("line ")
        ]
        assert numbers == sorted(numbers)
        assert len(numbers) < 5_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
async def test_a_forked_child_cannot_write_into_the_pipes(folder):
    async with started(folder) as plugin:
        await plugin.load()
        assert await plugin.invoke("forks") == 0
        assert await plugin.invoke("add", {"a": 1}) == 3


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's limits are Linux's")
async def test_memory_and_open_files_are_limited_and_the_plugin_lives_on(folder):
    async with started(folder) as plugin:
        await plugin.load(memory_bytes=512 * 2**20, open_files=64)
        assert "MemoryError" in (await fails(plugin.invoke("devours"))).message
        assert "Too many open files" in (await fails(plugin.invoke("opens"))).message
        assert await plugin.invoke("add", {"a": 1}) == 3


@pytest.mark.skipif(not hasattr(signal, "SIGXCPU"), reason="there is no limit of processor time")
async def test_a_call_that_burns_the_processor_ends_the_process_and_says_where(folder):
    async with started(folder) as plugin:
        await plugin.load(cpu_seconds=1)
        assert (await fails(plugin.invoke("burns"))).code == "E_PLUGIN_CRASHED"
        _, words = await plugin.process.communicate()
        assert plugin.process.returncode == 128 + signal.SIGXCPU
        assert b"in burns" in words


async def test_a_process_all_of_whose_threads_hang_makes_way_for_another(folder, tmp_path):
    async with started(folder) as plugin:
        await plugin.load()
        calls = [
            asyncio.create_task(plugin.invoke("blocks", {"gate": str(tmp_path / "never")}))
            for _ in range(THREADS)
        ]
        while (await plugin.request("health"))["calls"] != THREADS:
            pass
        for call in calls:
            call.cancel()
        assert await asyncio.wait_for(plugin.process.wait(), PATIENCE) == 0
        assert await plugin.has_logged("never ended")


# --- The end ------------------------------------------------------------------------


async def test_the_process_ends_when_the_server_is_gone(folder, tmp_path):
    async with started(folder) as plugin:
        await plugin.load()
        blocked = asyncio.create_task(plugin.invoke("blocks", {"gate": str(tmp_path / "never")}))
        await plugin.request("health")
        plugin.peer.close()
        assert await asyncio.wait_for(plugin.process.wait(), PATIENCE) == 0
        await fails(blocked)


async def test_a_shutdown_lets_calls_finish_and_stops_the_rest(folder, tmp_path):
    async with started(folder) as plugin:
        await plugin.load()
        finishing = asyncio.create_task(plugin.invoke("blocks", {"gate": str(tmp_path / "gate")}))
        await plugin.request("health")
        ending = asyncio.create_task(plugin.request("shutdown", {"seconds": PATIENCE}))
        while (await plugin.request("health"))["calls"] != 1:
            pass
        assert (await fails(plugin.invoke("add", {"a": 1}))).code == "E_SHUTTING_DOWN"
        (tmp_path / "gate").touch()
        assert await finishing == "opened"
        assert await ending == {"stopped": 0}
        assert await asyncio.wait_for(plugin.process.wait(), PATIENCE) == 0
        assert await plugin.has_logged("unloaded")


async def test_a_call_that_does_not_finish_in_time_is_told_why(folder):
    async with started(folder) as plugin:
        await plugin.load()
        call = asyncio.create_task(plugin.invoke("waits"))
        await plugin.has_logged("waiting")
        assert await plugin.request("shutdown", {"seconds": 0.01}) == {"stopped": 1}
        assert (await fails(call)).code == "E_SHUTTING_DOWN"
