"""Tools of MCP servers that no one of this project wrote, in real runs: over stdio, streamable HTTP
and SSE."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cast import fresh_id
from tests.conftest import TOKEN, scripted_env
from tests.e2e.chat import client
from tests.e2e.mcp_rows import McpRows, stdio
from tests.fake_onebot import FakeOneBot, spoken
from tests.live_server import LiveServer
from tests.reference_servers import HttpServer, ReferenceServers, reference_servers
from tests.scripted_model import Request, ScriptedModel, call

pytestmark = pytest.mark.slow

ECHO = "Echo: 你好"
on_linux = pytest.mark.skipif(
    not Path("/proc/self").exists(), reason="processes are looked up in /proc"
)


@pytest.fixture(scope="module")
def servers() -> ReferenceServers:
    return reference_servers()


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder that the filesystem server may look into, and where the memory server keeps its
    memory."""
    place = Path(tempfile.mkdtemp(prefix="frost-mcp-")).resolve()
    (place / "note.txt").write_text("冰霜\nthe second line\n", encoding="utf-8")
    yield place
    shutil.rmtree(place)


def installation(model_server: ScriptedModel, servers: ReferenceServers) -> LiveServer:
    """An installation whose operator allows the programs of the reference servers, and sees every
    tool in full."""
    allowed = ",".join({servers.node, servers.time()[0]})
    env = {
        "MCP_ALLOWED_COMMANDS": allowed,
        "FETCH_ALLOW": "127.0.0.1",
        "DEFER_TOOLS_ABOVE": "500",
        "HTTP_API_TOKEN": TOKEN,
    }
    return LiveServer(scripted_env(model_server) | env)


@pytest.fixture(scope="module")
def over_http(servers: ReferenceServers) -> Iterator[HttpServer]:
    with HttpServer(servers.everything("streamableHttp")) as server:
        yield server


@pytest.fixture(scope="module")
def live(
    model_server: ScriptedModel, servers: ReferenceServers, folder: Path, over_http: HttpServer
) -> Iterator[LiveServer]:
    """One installation with all of them connected; where tools are the same, under a prefix."""
    with (
        HttpServer(servers.everything("sse")) as over_sse,
        installation(model_server, servers) as server,
    ):
        rows = McpRows(server)
        rows.save(
            everything=stdio(servers.everything(), environment={"FROST_WORD": "handed on"}),
            http={
                "transport": "streamable_http",
                "url": f"http://127.0.0.1:{over_http.port}/mcp",
                "name_prefix": "http_",
            },
            sse={
                "transport": "sse",
                "url": f"http://127.0.0.1:{over_sse.port}/sse",
                "name_prefix": "sse_",
            },
            time=stdio(servers.time()),
            memory=stdio(
                servers.memory(), environment={"MEMORY_FILE_PATH": str(folder / "memory.jsonl")}
            ),
            files=stdio(
                servers.filesystem(folder),
                include="read_* list_directory write_file",
                exclude="read_multiple_*",
            ),
        )
        rows.wait_connected()
        rows.look()
        yield server


@pytest.fixture
def start(
    model_server: ScriptedModel, servers: ReferenceServers
) -> Iterator[Callable[..., LiveServer]]:
    """Start an installation of this test's own with these rows."""
    with contextlib.ExitStack() as running:

        def started(**rows: dict[str, Any]) -> LiveServer:
            server = running.enter_context(installation(model_server, servers))
            McpRows(server).save(**rows)
            return server

        yield started


@contextlib.asynccontextmanager
async def talker(server: LiveServer) -> AsyncIterator["Talker"]:
    async with client(server) as bot:
        yield Talker(bot)


class Talker:
    """Somebody in a private chat whose every message is answered with ``the end``."""

    def __init__(self, bot: FakeOneBot) -> None:
        self._bot = bot
        self._user = fresh_id()

    async def asks(self, model: ScriptedModel, *answers: Any) -> list[Request]:
        """The model's requests of one run in which it gives ``answers`` first."""
        before = len(model.requests)
        model.script([*answers, "the end"])
        await self._bot.say_private(self._user, "hi")
        while spoken(await self._bot.next_action(20)) != "the end":
            pass
        return model.requests[before:]

    async def hears(self, text: str) -> str:
        """What the bot says to ``text``, whatever its model does."""
        await self._bot.say_private(self._user, text)
        return spoken(await self._bot.next_action(20))

    async def tools(self, model: ScriptedModel) -> set[str]:
        """The tools that the model is offered now."""
        (request,) = await self.asks(model)
        return set(request.tool_names)

    async def result(self, model: ScriptedModel, tool: str, /, **arguments: Any) -> str:
        """What the model is told of a call."""
        _, second = await self.asks(model, call(tool, **arguments))
        (told,) = [message["content"] for message in second.messages if message["role"] == "tool"]
        return str(told)

    async def until(self, model: ScriptedModel, is_so: Callable[[set[str]], bool]) -> set[str]:
        """The tools offered, once they are so."""
        async with asyncio.timeout(40):
            while not is_so(offered := await self.tools(model)):  # noqa: ASYNC110
                await asyncio.sleep(0.2)
        return offered


async def told(server: LiveServer, model: ScriptedModel, tool: str, /, **arguments: Any) -> str:
    """What the model of somebody new is told of a call."""
    async with talker(server) as somebody:
        return await somebody.result(model, tool, **arguments)


# --- Offers and calls -----------------------------------------------------------


async def test_the_tools_of_all_servers_are_offered_with_their_schemas_by_filter_and_prefix(
    live, model
):
    async with talker(live) as somebody:
        (request,) = await somebody.asks(model)
    offered = {tool["function"]["name"]: tool["function"] for tool in request.body["tools"]}
    assert {
        "echo",
        "http_echo",
        "sse_echo",
        "get_current_time",
        "create_entities",
        "read_text_file",
        "write_file",
    } <= set(offered)
    assert not {"move_file", "read_multiple_files", "directory_tree"} & set(offered)
    assert offered["get-sum"]["parameters"]["properties"]["a"]["type"] == "number"
    assert offered["http_get-sum"]["parameters"] == offered["get-sum"]["parameters"]


@pytest.mark.parametrize("prefix", ["", "http_", "sse_"], ids=["stdio", "streamable HTTP", "SSE"])
async def test_a_call_goes_through_and_its_text_is_in_the_next_request(live, model, prefix):
    assert await told(live, model, f"{prefix}echo", message="你好") == ECHO


@pytest.mark.parametrize("prefix", ["", "http_", "sse_"], ids=["stdio", "streamable HTTP", "SSE"])
async def test_bad_arguments_reach_no_server_and_numbers_in_quotes_are_numbers(live, model, prefix):
    assert "b" in await told(live, model, f"{prefix}get-sum", a=1)
    assert "42" in await told(live, model, f"{prefix}get-sum", a="40", b=2)


async def test_a_picture_is_named_where_the_model_does_not_see_and_kept(live, model):
    said = await told(live, model, "get-tiny-image")
    assert "[图片内容 image/png]" in said
    assert live.rows("SELECT 1 FROM agent_resultpicture")


async def test_structured_content_is_told_and_on_record(live, model):
    said = await told(live, model, "get-structured-content", location="New York")
    assert json.loads(said.splitlines()[0]).keys() == {"temperature", "conditions", "humidity"}
    (row,) = live.rows("SELECT structured_content FROM agent_toolcall ORDER BY id DESC LIMIT 1")
    assert json.loads(row["structured_content"]).keys() == {"temperature", "conditions", "humidity"}


async def test_annotated_parts_links_and_resources_are_told_in_words(live, model):
    assert "Error: Operation failed" in await told(
        live, model, "get-annotated-message", messageType="error"
    )
    assert "[资源链接]" in await told(live, model, "get-resource-links", count=2)
    referred = await told(live, model, "get-resource-reference", resourceType="Text", resourceId=1)
    assert "Resource 1" in referred


async def test_a_servers_error_is_a_failure_in_its_words(live, model):
    said = await told(live, model, "get-resource-reference", resourceType="Text", resourceId=-1)
    assert said.startswith("工具执行失败: ")
    outside = await told(live, model, "read_text_file", path="/etc/passwd")
    assert outside.startswith("工具执行失败: ")
    assert "denied" in outside
    (row,) = live.rows("SELECT state, provider_name FROM agent_toolcall ORDER BY id DESC LIMIT 1")
    assert (row["state"], row["provider_name"]) == ("failed", "mcp")


async def test_a_call_that_takes_its_time_is_waited_for_while_others_go_on(live, model):
    """Over each transport, at the same time."""
    async with (
        talker(live) as first,
        talker(live) as second,
        talker(live) as third,
        talker(live) as quick,
    ):
        model.answer_with(_by_words("trigger-long-running-operation", duration=4, steps=4))
        prefixes = {"slow": first, "http_slow": second, "sse_slow": third}
        slow = [asyncio.create_task(one.hears(words)) for words, one in prefixes.items()]
        assert await quick.hears("quick") == "no tool"
        assert not any(task.done() for task in slow)
        for said in await asyncio.gather(*slow):
            assert "Long running operation completed" in said


def _by_words(tool: str, **arguments: Any) -> Callable[[Request], Any]:
    """A model that calls ``tool`` for whoever says ``slow`` behind its prefix, and then says what
    came of it."""

    def answer(request: Request) -> Any:
        if request.messages[-1]["role"] == "tool":
            return request.last_text
        *_, words = request.last_text.split()
        prefix = words.removesuffix("slow")
        return "no tool" if prefix == words else call(f"{prefix}{tool}", **arguments)

    return answer


async def test_the_time_is_told(live, model):
    now = json.loads(await told(live, model, "get_current_time", timezone="Asia/Shanghai"))
    assert now["timezone"] == "Asia/Shanghai"


async def test_a_file_is_written_once_the_owner_has_approved_and_read_at_once(live, model, folder):
    assert "冰霜" in await told(live, model, "read_text_file", path=str(folder / "note.txt"))
    assert "[FILE] note.txt" in await told(live, model, "list_directory", path=str(folder))
    asked = await told(live, model, "write_file", path=str(folder / "new.txt"), content="x")
    assert "批准" in asked
    assert not (folder / "new.txt").exists()


async def test_what_was_remembered_is_known_in_the_next_run(live, model):
    entity = {"name": "Ann", "entityType": "person", "observations": ["likes snow"]}
    assert "Ann" in await told(live, model, "create_entities", entities=[entity])
    assert "likes snow" in await told(live, model, "read_graph")


async def test_a_program_gets_its_own_variables_and_none_of_ours(live, model):
    said = await told(live, model, "get-env")
    assert "handed on" in said
    assert TOKEN not in said
    assert "FROST_DATA_DIR" not in said
    assert "DJANGO" not in said


# --- Servers that come and go ---------------------------------------------------


@on_linux
async def test_a_server_that_was_killed_is_started_again_and_its_tools_come_back(
    start, model, servers, folder
):
    place = folder / "killed"
    place.mkdir()
    server = await asyncio.to_thread(start, files=stdio(servers.filesystem(place)))
    await asyncio.to_thread(McpRows(server).look, "read_text_file")
    async with talker(server) as somebody:
        assert "read_text_file" in await somebody.tools(model)
        (child,) = [
            pid for pid, command in processes(str(place)) if "process_reaper" not in command
        ]
        os.kill(child, signal.SIGKILL)
        await somebody.until(
            model, lambda offered: "read_text_file" in offered and _is_another(child, place)
        )
        assert "[FILE]" not in await somebody.result(model, "list_directory", path=str(place))


def _is_another(child: int, place: Path) -> bool:
    return any(
        pid != child and "process_reaper" not in command for pid, command in processes(str(place))
    )


async def test_a_server_that_is_down_is_offered_no_more_the_refusal_says_why_and_it_comes_back(
    start, model, servers
):
    with HttpServer(servers.everything("streamableHttp")) as remote:
        row = {"transport": "streamable_http", "url": f"http://127.0.0.1:{remote.port}/mcp"}
        server = await asyncio.to_thread(start, remote=row)
        await asyncio.to_thread(McpRows(server).look, "echo")
        async with talker(server) as somebody:
            assert await somebody.result(model, "echo", message="你好") == ECHO
            await asyncio.to_thread(remote.kill)
            assert (await somebody.result(model, "echo", message="你好")).startswith(
                "工具执行失败: "
            )
            await somebody.until(model, lambda offered: "echo" not in offered)
            refusal = await somebody.result(model, "echo", message="你好")
            assert refusal.splitlines()[0] == "Tool not found: echo"
            assert "remote" in refusal
            await asyncio.to_thread(remote.start)
            await somebody.until(model, lambda offered: "echo" in offered)
            assert await somebody.result(model, "echo", message="你好") == ECHO


async def test_a_server_that_is_down_at_the_start_appears_when_it_is_there(start, model, servers):
    remote = HttpServer(servers.everything("streamableHttp"))
    try:
        row = {"transport": "streamable_http", "url": f"http://127.0.0.1:{remote.port}/mcp"}
        server = await asyncio.to_thread(start, remote=row)
        async with talker(server) as somebody:
            assert "echo" not in await somebody.tools(model)
            await asyncio.to_thread(remote.start)
            await asyncio.to_thread(McpRows(server).look, "echo")
            await somebody.until(model, lambda offered: "echo" in offered)
    finally:
        remote.kill()


async def test_a_server_switched_off_during_a_chat_is_gone_with_the_next_message_and_back_when_on(
    start, model, servers
):
    server = await asyncio.to_thread(start, everything=stdio(servers.everything()))
    rows = McpRows(server)
    await asyncio.to_thread(rows.look, "echo")
    async with talker(server) as somebody:
        assert "echo" in await somebody.tools(model)
        await asyncio.to_thread(rows.save, everything={"enabled": False})
        assert "echo" not in await somebody.tools(model)
        refusal = await somebody.result(model, "echo", message="x")
        assert "停用" in refusal
        await asyncio.to_thread(
            rows.save, everything={"enabled": True, "name_prefix": "again_", "include": "echo"}
        )
        await asyncio.to_thread(rows.look, "again_echo")
        assert {
            name
            for name in await somebody.until(model, lambda all_: "again_echo" in all_)
            if "get-sum" in name
        } == set()
        assert await somebody.result(model, "again_echo", message="你好") == ECHO


# --- Processes ------------------------------------------------------------------


def processes(word: str) -> list[tuple[int, str]]:
    """The running processes whose command line holds ``word``, by id."""
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            command = (
                (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            )
            if folder.name.isdigit() and int(folder.name) != os.getpid() and word in command:
                found.append((int(folder.name), command))
    return found


@on_linux
@pytest.mark.parametrize("end", [LiveServer.terminate, LiveServer.kill], ids=["SIGTERM", "SIGKILL"])
async def test_no_program_outlives_the_server(start, servers, folder, end):
    place = folder / end.__name__
    place.mkdir()
    server = await asyncio.to_thread(start, files=stdio(servers.filesystem(place)))
    await McpRows(server).state("files")
    assert len(processes(str(place))) == 2  # the keeper and the server
    await asyncio.to_thread(end, server)
    until = time.monotonic() + 15
    while left := processes(str(place)):
        assert time.monotonic() < until, left
        await asyncio.sleep(0.05)
