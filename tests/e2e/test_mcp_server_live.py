"""``/mcp``: our tools for programs that speak the Model Context Protocol, through the SDK's own
client."""

import asyncio
import itertools
import json
import os
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from mcp.client.subscriptions import ToolsListChanged
from mcp_types import (
    AudioContent,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)

from tests.conftest import scripted_env
from tests.e2e.cockpit import Cockpit
from tests.e2e.mcp_host import TOKEN, McpHost, mcp_client
from tests.e2e.odd_server import PICTURE
from tests.e2e.test_http_api import http
from tests.environment import PATIENCE
from tests.live_server import LiveServer
from tests.scripted_model import ScriptedModel
from tools.version import VERSION

GENERATIONS = ["legacy", "auto"]
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
NEWEST = {**HEADERS, "MCP-Protocol-Version": "2026-07-28"}
NESTED = "[" * 100_000


@pytest.fixture(scope="module")
def host(model_server: ScriptedModel) -> Iterator[McpHost]:
    with McpHost(scripted_env(model_server) | {"MCP_SERVER_TOKEN": TOKEN}) as server:
        yield server


@pytest.fixture
def start_host(model_server: ScriptedModel) -> Iterator[Callable[..., McpHost]]:
    """Start a host that a test may end, once."""
    server = McpHost(scripted_env(model_server) | {"MCP_SERVER_TOKEN": TOKEN})

    def start(**env: str) -> McpHost:
        server.env |= env
        return server.start()

    yield start
    server.remove()


@pytest.fixture
def cockpit(host: McpHost) -> Iterator[Cockpit]:
    operator = Cockpit(host)
    yield operator
    operator.close()


def post(
    server: LiveServer, body: Any, *, token: str | None = TOKEN, path: str = "/mcp", **headers: str
) -> Any:
    """``POST /mcp`` with ``body`` as JSON, bytes as they are."""
    bearer = {} if token is None else {"Authorization": f"Bearer {token}"}
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return http(server, "POST", path, data=data, headers={**HEADERS, **bearer, **named})


def linger(server: LiveServer, name: str) -> "asyncio.Task[Any]":
    """A call of ``linger`` under way, by a program that does not mind how it ends."""
    called = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "linger", "arguments": {"name": name}},
    }
    return asyncio.create_task(asyncio.to_thread(post, server, called))


def newest_call(server: LiveServer) -> dict[str, Any]:
    """The newest call on record, with its run's origin, state and error."""
    (row,) = server.rows(
        "SELECT c.*, r.origin, r.state AS run_state, r.error AS run_error, r.finished_at, "
        "r.session_id FROM agent_toolcall c "
        "JOIN agent_run r ON r.id = c.run_id ORDER BY c.id DESC LIMIT 1"
    )
    return row


def words(result: CallToolResult) -> str:
    """The text that a result begins with."""
    first = result.content[0]
    assert isinstance(first, TextContent)
    return first.text


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not is_so():  # noqa: ASYNC110 - another process makes it so
            await asyncio.sleep(0.01)


# --- Tools ----------------------------------------------------------------------


async def test_the_program_says_its_version(host):
    asked = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    response = await asyncio.to_thread(post, host, asked)
    assert f'"version":"{VERSION}"' in response.text.replace(": ", ":")


@pytest.mark.parametrize("mode", GENERATIONS)
async def test_the_enabled_tools_that_need_no_chat_are_listed_with_all_that_is_declared(host, mode):
    async with mcp_client(host, mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert {"get_weather", "use_subagent", "paint"} <= set(tools)
    assert not {"send_message", "reply", "finish", "continue", "tool_search"} & set(tools)
    paint, recite = tools["paint"], tools["recite"]
    assert (paint.title, paint.description) == ("The painter", "Paint a picture.")
    assert paint.annotations
    hints = paint.annotations
    assert (
        hints.read_only_hint,
        hints.destructive_hint,
        hints.idempotent_hint,
        hints.open_world_hint,
    ) == (
        True,
        False,
        True,
        False,
    )
    assert recite.input_schema["properties"]["length"]["type"] == "integer"
    assert tools["count"].output_schema == {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
    }


@pytest.mark.parametrize("mode", GENERATIONS)
async def test_a_call_has_its_result(host, mode):
    async with mcp_client(host, mode) as client:
        weather = await client.call_tool("get_weather", {"city": "北京"})
    assert weather.content == [TextContent(text="北京 的天气是晴朗，温度 25°C")]
    assert not weather.is_error


@pytest.mark.parametrize("mode", GENERATIONS)
async def test_every_kind_of_content_arrives(host, mode):
    async with mcp_client(host, mode) as client:
        text, picture, sound, link, note, archive = (await client.call_tool("paint")).content
    assert text == TextContent(text="Painted.")
    assert picture == ImageContent(data=PICTURE, mime_type="image/png")
    assert sound == AudioContent(data="AAAA", mime_type="audio/wav")
    assert isinstance(link, ResourceLink)
    assert (link.uri, link.name) == ("https://example.org/", "more")
    assert isinstance(note, EmbeddedResource)
    assert (note.resource.uri, note.resource.mime_type) == ("note://1", "text/plain")
    assert archive == TextContent(text="[二进制内容 application/zip]")


@pytest.mark.parametrize("mode", GENERATIONS)
async def test_a_structured_result_arrives_as_it_was_promised_and_can_be_read_as_text(host, mode):
    async with mcp_client(host, mode) as client:
        await client.list_tools()  # from now on the client checks what was promised
        measured, counted, said = [
            await client.call_tool(name, given)
            for name, given in (("measure", {}), ("count", {}), ("recite", {"length": 2}))
        ]
    assert measured.structured_content == {"宽": 3}
    assert measured.content == [TextContent(text='{"宽": 3}')]
    assert counted.structured_content == {"n": 1}
    assert (said.content, said.structured_content) == ([TextContent(text="霜霜")], None)


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("nothing", {}, "Tool not found: nothing"),
        ("send_message", {"messages": []}, "Tool not found: send_message"),
        ("tool_search", {"query": "x"}, "Tool not found: tool_search"),
        ("get_weather", {}, "city"),
        ("recite", {"length": "long"}, "length"),
        ("tear", {}, "工具执行失败: it tore"),
        ("transfer", {"amount": 5}, "没有人可以批准"),
        ("n" * 500, {"a": "\ud800"}, "Tool not found: "),
    ],
)
@pytest.mark.parametrize("mode", GENERATIONS)
async def test_a_call_that_fails_says_why_and_is_an_error(host, mode, tool, arguments, told):
    async with mcp_client(host, mode) as client:
        result = await client.call_tool(
            tool, json.loads(json.dumps(arguments).replace("\\ud800", "?"))
        )
    assert result.is_error
    assert told in words(result)
    assert not host.has("transferred")


async def test_callers_are_nobody(host, cockpit):
    await asyncio.to_thread(cockpit.configure, "whoami", allowed="owners")
    try:
        async with mcp_client(host) as client:
            refused = await client.call_tool("whoami")
            await asyncio.to_thread(cockpit.configure, "whoami", allowed="everyone")
            allowed = await client.call_tool("whoami")
    finally:
        await asyncio.to_thread(cockpit.configure, "whoami", allowed="everyone")
    assert words(refused).startswith("没有权限")
    assert words(allowed) == "mcp//"


async def test_calls_count_against_the_tools_rate(host, cockpit):
    before = await asyncio.to_thread(cockpit.configure, "measure", calls_per_minute_person=1)
    try:
        async with mcp_client(host) as client, mcp_client(host, "legacy") as other:
            assert not (await client.call_tool("measure")).is_error
            again = await other.call_tool("measure")
    finally:
        await asyncio.to_thread(cockpit.configure, "measure", **before)
    assert words(again).startswith("调用过于频繁")


@pytest.mark.parametrize("mode", GENERATIONS)
async def test_a_tool_that_is_switched_off_is_gone_at_once_and_back_at_once(host, cockpit, mode):
    async with mcp_client(host, mode) as client:
        await asyncio.to_thread(cockpit.configure, "count", enabled=False)
        gone = await client.call_tool("count")
        names = {tool.name for tool in (await client.list_tools()).tools}
        await asyncio.to_thread(cockpit.configure, "count", enabled=True)
        back = await client.call_tool("count")
    assert words(gone).splitlines()[0] == "Tool not found: count"
    assert "count" not in names
    assert back.structured_content == {"n": 1}


async def test_a_listener_is_told_when_the_tools_change_and_the_others_need_not_ask(host, cockpit):
    async with mcp_client(host) as client, client.listen(tools_list_changed=True) as changes:
        told = asyncio.ensure_future(anext(aiter(changes)))
        async with asyncio.timeout(PATIENCE):
            for number in itertools.count(1):  # the first look may come after a change
                words = f"Count to {number}."
                await asyncio.to_thread(cockpit.configure, "count", description=words)
                if (await asyncio.wait([told], timeout=2))[0]:
                    break
        assert await told == ToolsListChanged()
        tools = {tool.name: tool.description for tool in (await client.list_tools()).tools}
        await asyncio.to_thread(cockpit.configure, "count", description="")
    assert tools["count"] == words


async def test_many_calls_at_once_each_get_their_own_result(host):
    async with mcp_client(host) as newest, mcp_client(host, "legacy") as older:
        sent = [
            client.call_tool("recite", {"length": n})
            for n in range(40)
            for client in (newest, older)
        ]
        results = await asyncio.gather(*sent)
    assert [words(result) for result in results[2:]] == [
        "霜" * n for n in range(1, 40) for _ in range(2)
    ]
    assert [result.is_error for result in results] == [False] * 80


# --- The record -----------------------------------------------------------------


@pytest.mark.parametrize("mode", GENERATIONS)
async def test_every_call_is_on_record_and_in_the_admin(host, cockpit, mode):
    async with mcp_client(host, mode) as client:
        await client.call_tool("recite", {"length": 3})
        row = newest_call(host)
        await client.call_tool("tear")
        failed = newest_call(host)
    assert (row["origin"], row["run_state"], row["session_id"], row["requested_by"]) == (
        "mcp",
        "finished",
        None,
        "",
    )
    assert (row["tool_name"], row["provider_name"], row["state"], row["result"]) == (
        "recite",
        "samples",
        "succeeded",
        "霜霜霜",
    )
    assert (json.loads(row["arguments"]), bool(row["finished_at"])) == ({"length": 3}, True)
    assert (failed["state"], failed["run_state"]) == ("failed", "finished")
    page = await asyncio.to_thread(cockpit.page, f"/admin/agent/run/{row['run_id']}/change/")
    assert "recite" in page
    assert "霜霜霜" in page
    assert "recite" in await asyncio.to_thread(
        cockpit.page, f"/admin/agent/toolcall/{row['id']}/change/"
    )


async def test_an_agents_run_stands_inside_the_call_that_set_it_off(host, model):
    model.answer_with(lambda request: "def f(): ...")
    async with mcp_client(host) as client:
        result = await client.call_tool(
            "use_subagent", {"subagent_name": "Coder", "content": "write f"}
        )
    assert words(result) == "def f(): ..." or words(result).startswith("（")
    assert host.rows(
        "SELECT 1 FROM agent_run WHERE origin = 'agent' AND parent_id = ?", newest_call(host)["id"]
    )


@pytest.mark.parametrize("mode", GENERATIONS)
async def test_a_caller_that_goes_away_stops_its_call_and_the_record_says_so(host, mode):
    name = f"gone-{mode}"
    async with mcp_client(host, mode) as client:
        waiting = asyncio.create_task(client.call_tool("linger", {"name": name}))
        await until(lambda: host.has(f"{name}.begun"))
        waiting.cancel()
        await asyncio.wait([waiting])
    await until(lambda: host.has(f"{name}.stopped"))
    await until(lambda: newest_call(host)["run_state"] != "running")
    row = newest_call(host)
    assert (row["state"], row["run_state"], bool(row["finished_at"])) == (
        "unknown",
        "interrupted",
        True,
    )
    assert row["run_error"]


async def test_a_call_that_takes_longer_than_a_run_may_is_stopped(start_host):
    host = await asyncio.to_thread(start_host, RUN_TIMEOUT="1")
    answer = await linger(host, "long")
    assert "超过 1 秒" in answer.content.decode()
    assert host.has("long.stopped")
    row = newest_call(host)
    assert (row["state"], row["run_state"]) == ("failed", "finished")


async def test_a_call_under_way_is_finished_when_the_server_is_asked_to_end(start_host):
    host = await asyncio.to_thread(start_host)
    waiting = linger(host, "last")
    await until(lambda: host.has("last.begun"))
    os.kill(host.pid, signal.SIGTERM)
    host.touch("last.done")
    assert "last lingered" in (await waiting).text
    assert await asyncio.to_thread(host.exit_code, PATIENCE) == 0
    assert newest_call(host)["state"] == "succeeded"


async def test_a_call_without_end_and_a_listener_hold_no_server_up(start_host):
    host = await asyncio.to_thread(start_host)
    async with mcp_client(host) as listener, listener.listen(tools_list_changed=True) as changes:
        waiting = linger(host, "endless")
        await until(lambda: host.has("endless.begun"))
        os.kill(host.pid, signal.SIGTERM)
        assert [change async for change in changes] == []  # it is told that no more will come
        assert await asyncio.to_thread(host.exit_code, PATIENCE) == 0
    await asyncio.wait([waiting])
    row = newest_call(host)
    assert (row["state"], row["run_state"]) == ("unknown", "interrupted")
    assert "Traceback" not in host.log
    assert "was destroyed" not in host.log


async def test_a_call_that_a_crash_cut_off_is_of_unknown_outcome_after_the_restart(start_host):
    host = await asyncio.to_thread(start_host)
    waiting = linger(host, "cut")
    await until(lambda: host.has("cut.begun"))
    await asyncio.to_thread(host.kill)
    await asyncio.wait([waiting])
    await asyncio.to_thread(host.start)
    await until(lambda: newest_call(host)["state"] == "unknown")
    assert newest_call(host)["run_state"] == "interrupted"


# --- Who may ask ----------------------------------------------------------------


def test_without_a_token_there_is_no_such_address(live):
    for path in ("/mcp", "/mcp/"):
        assert post(live, LIST, path=path).status_code == 404
        assert http(live, "GET", path).status_code == 404


@pytest.mark.parametrize("token", [None, "wrong", "é"])
def test_a_missing_or_wrong_token_is_refused(host, token):
    answer = post(host, LIST, token=token and token.encode("utf-8").decode("latin1"))
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert TOKEN not in answer.text


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
def test_the_address_may_end_in_a_slash(host, path):
    answer = post(host, LIST, path=path)
    assert answer.status_code == 200
    assert "get_weather" in answer.text


@pytest.mark.parametrize("method", ["GET", "DELETE", "OPTIONS"])
def test_another_method_is_refused(host, method):
    answer = http(host, method, "/mcp", headers={**HEADERS, "Authorization": f"Bearer {TOKEN}"})
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")
    assert http(host, method, "/mcp").status_code == 401


def test_a_foreign_page_and_a_name_that_was_made_to_point_here_are_refused(host):
    assert post(host, LIST, Origin="https://evil.example").status_code == 403
    assert post(host, LIST, Host="evil.example").status_code == 400
    assert post(host, LIST, Host="evil.example", Origin="http://evil.example").status_code == 400
    assert post(host, LIST, Origin=host.url).status_code == 200


# --- Garbage --------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"not json",
        NESTED.encode(),
        [LIST],
        None,
        {"jsonrpc": "1.0", "id": 1, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 1, "method": 5},
        {"jsonrpc": "2.0", "id": 1, "method": "no/such"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 5}},
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "recite", "arguments": "x"},
        },
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
        {"jsonrpc": "2.0", "method": "no/such"},
    ],
    ids=str,
)
@pytest.mark.parametrize("headers", [HEADERS, NEWEST], ids=["older", "newest"])
def test_garbage_is_answered_and_harms_nobody(host, body, headers):
    log = len(host.log)
    answer = http(
        host,
        "POST",
        "/mcp",
        data=_encoded(body),
        headers={**headers, "Authorization": f"Bearer {TOKEN}"},
    )
    assert answer.status_code in (200, 202, 400, 404)
    assert answer.status_code == 202 or "error" in answer.text
    assert "/tools/" not in answer.text  # no path of ours
    assert "Traceback" not in host.log[log:]
    assert post(host, LIST).status_code == 200


def _encoded(body: Any) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body).encode()


@pytest.mark.parametrize("number", ["NaN", '"\\ud800"', '{"a":' * 300 + "1" + "}" * 300])
@pytest.mark.parametrize("headers", [HEADERS, NEWEST], ids=["older", "newest"])
def test_arguments_that_no_tool_and_no_database_takes_are_refused_in_words(host, number, headers):
    log = len(host.log)
    meta = (
        '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/'
        'clientCapabilities":{}},'
    )
    body = (
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{%s"name":"recite",'
        '"arguments":{"length":%s}}}'
    )
    named = {
        **headers,
        "Authorization": f"Bearer {TOKEN}",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "recite",
    }
    answer = http(host, "POST", "/mcp", data=(body % (meta, number)).encode(), headers=named)
    assert answer.status_code in (200, 400)
    assert '"isError":true' in answer.text or "error" in answer.text
    assert "log says why" not in answer.text
    assert "Traceback" not in host.log[log:]


@pytest.mark.parametrize(
    "headers",
    [
        {"Accept": "text/html"},
        {"Content-Type": "text/plain"},
        {"MCP-Protocol-Version": "1999-01-01"},
    ],
)
def test_a_request_in_another_form_is_refused(host, headers):
    answer = post(host, LIST, **{name.replace("-", "_"): value for name, value in headers.items()})
    assert answer.status_code in (400, 406, 415)


def test_a_body_without_end_is_refused(host):
    assert post(host, b"x" * (5 * 2**20)).status_code == 413


def test_a_request_that_is_broken_off_harms_nobody(host):
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer "
        f"{TOKEN}\r\nContent-Length: 99\r\n\r\n{{"
    )
    log = len(host.log)
    with socket.create_connection(("127.0.0.1", host.port)) as line:
        line.sendall(head.encode())
    assert post(host, LIST).status_code == 200
    assert "Traceback" not in host.log[log:]
