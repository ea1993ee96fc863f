"""Servers behind a URL that must not be reached, or that misuse the way to them."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.tools.mcp.serving import SLOPPY, linked, only_the_sloppy_are_left_out, said, until
from tools.fetch.allow_list import AllowList
from tools.fetch.request import DestinationResolver
from tools.mcp.link import State
from tools.mcp.provider import load_session_opener
from tools.mcp.settings import McpServerSettings
from tools.mcp.specs import ServerRefusedError

TOOLS = {"tools": [{"name": "fine", "inputSchema": {"type": "object"}}]}
INITIALIZED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "web", "version": "1"},
}
Answer = tuple[int, dict[str, str], bytes]


class WebServer(ThreadingHTTPServer):
    """Speaks MCP over streamable HTTP; ``answers`` says for a method what is answered instead."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: dict[str, Callable[[Any], Answer]] = {}
        self.heard: list[tuple[str, dict[str, str]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/mcp"

    def settings(self, **more: Any) -> McpServerSettings:
        return McpServerSettings(1, "web", transport="streamable_http", url=self.url, **more)

    def answer(self, message: Any) -> Answer:
        method = message["method"]
        if special := self.answers.get(method):
            return special(message)
        result: Any = {"initialize": INITIALIZED, "tools/list": TOOLS, "ping": {}}.get(method)
        if method == "tools/call":
            result = {"content": [{"type": "text", "text": "fine"}]}
        if result is None:
            return 202 if "id" not in message else 404, {}, b""
        return answered(
            message, result, **({"Mcp-Session-Id": "s-1"} if method == "initialize" else {})
        )


def answered(message: Any, result: Any, **headers: str) -> Answer:
    body = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": result})
    return 200, {"Content-Type": "application/json", **headers}, body.encode()


class _Handler(BaseHTTPRequestHandler):
    server: WebServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.heard.append((message["method"], dict(self.headers)))
        self.reply(*self.server.answer(message))

    def do_GET(self) -> None:
        self.reply(405, {}, b"")

    do_DELETE = do_GET  # noqa: N815 - as http.server calls it

    def reply(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def web() -> Iterator[WebServer]:
    with WebServer() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


async def failure(settings: McpServerSettings, allow: tuple[str, ...] = ("127.0.0.1",)) -> str:
    """What is noted of a server that cannot be used."""
    async with linked(
        settings,
        is_up=False,
        load=lambda: load_session_opener(DestinationResolver(AllowList.parse(allow))),
    ) as link:
        await until(lambda: link.status("p").error)
        assert not link.is_offered
        return link.status("p").error


async def test_headers_of_the_row_are_sent_and_proxies_of_the_environment_are_not_used(
    web: WebServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with linked(web.settings(headers={"Authorization": "Bearer s3cret"})) as link:
        assert await said(link) == "fine"
    assert {headers.get("Authorization") for _, headers in web.heard} == {"Bearer s3cret"}


async def test_a_sloppy_entry_of_the_list_costs_no_other_tool(web: WebServer):
    web.answers["tools/list"] = lambda message: answered(
        message, {"tools": json.loads(SLOPPY.read_bytes())}
    )
    async with linked(web.settings()) as link:
        only_the_sloppy_are_left_out(link)
        assert await said(link) == "fine"


async def test_an_address_inside_is_not_dialled_unless_it_is_allowed(web: WebServer):
    assert "FETCH_ALLOW can list it" in await failure(web.settings(), allow=())
    assert web.heard == []


@pytest.mark.parametrize("transport", ["streamable_http", "sse"])
@pytest.mark.parametrize(
    "host", ["169.254.169.254", "[::ffff:169.254.169.254]", "[fd00:ec2::254]", "10.0.0.1"]
)
async def test_addresses_inside_are_refused_in_every_spelling(transport: str, host: str):
    settings = McpServerSettings(1, "in", transport=transport, url=f"http://{host}/mcp")
    assert "not public" in await failure(settings, allow=())


@pytest.mark.parametrize(
    "location", ["http://169.254.169.254/latest/", "http://127.0.0.1:9/mcp", "file:///etc/passwd"]
)
async def test_a_redirect_to_elsewhere_is_not_followed(web: WebServer, location: str):
    web.answers["initialize"] = web.answers["server/discover"] = lambda _message: (
        307,
        {"Location": location},
        b"",
    )
    assert "edirect" in await failure(web.settings(headers={"X-Key": "s3cret"}))


@pytest.mark.parametrize(
    "url", ["http://user:pw@127.0.0.1/", "ftp://127.0.0.1/", "http:///", "not a url"]
)
async def test_a_url_that_cannot_be_used_is_told_and_not_tried_again(url: str):
    async with linked(McpServerSettings(1, "bad", transport="sse", url=url), is_up=False) as link:
        await until(lambda: link.status("p").state == State.STOPPED)
        assert link.status("p").error


async def test_the_status_of_a_refusal_is_told(web: WebServer):
    web.answers["initialize"] = web.answers["server/discover"] = lambda _message: (
        401,
        {},
        b"who are you?",
    )
    assert "HTTP 401" in await failure(web.settings())


async def test_a_status_instead_of_an_answer_fails_the_call_alone(web: WebServer):
    async with linked(web.settings()) as link:
        web.answers["tools/call"] = lambda _message: (503, {}, b"x" * 200_000)
        with pytest.raises(ServerRefusedError, match=r"^HTTP 503 Service Unavailable$") as refused:
            await said(link)
        assert refused.value.text == "MCP 服务器返回了错误（HTTP 503 Service Unavailable）"
        del web.answers["tools/call"]
        assert await said(link) == "fine"


async def test_an_answer_beyond_the_limit_fails_its_call_alone(web: WebServer):
    async with linked(web.settings()) as link:
        web.answers["tools/call"] = lambda message: answered(
            message, {"content": [{"type": "text", "text": "x" * (9 * 2**20)}]}
        )
        with pytest.raises(ServerRefusedError, match="larger than 8 MiB"):
            await said(link)
        del web.answers["tools/call"]
        assert await said(link) == "fine"


def as_event(answer: Answer) -> Answer:
    """The same answer as a stream of one event, in an encoding that events never have."""
    status, headers, body = answer
    content_type = "Text/Event-Stream; charset=utf-16"
    return status, {**headers, "Content-Type": content_type}, b"data: " + body + b"\n\n"


def as_body(answer: Answer) -> Answer:
    return answer


@pytest.mark.parametrize("form", [as_body, as_event])
@pytest.mark.parametrize("value", [[[]] * 1_800_000, ["x"] * 1_400_000], ids=["lists", "texts"])
async def test_an_answer_of_too_many_values_fails_its_call_alone(
    web: WebServer, form: Callable[[Answer], Answer], value: list[Any]
):
    body = {"content": [], "structuredContent": {"a": value}}
    async with linked(web.settings()) as link:
        web.answers["tools/call"] = lambda message: form(answered(message, body))
        with pytest.raises(ServerRefusedError, match="50,000 objects and lists or 200,000"):
            await said(link)
        web.answers["tools/call"] = lambda message: form(
            answered(message, {"content": [{"type": "text", "text": '[{,"' * 2**20}]})
        )
        assert await said(link) == '[{,"' * 2**20
        assert [method for method, _ in web.heard].count("initialize") == 1


async def test_an_answer_that_is_packed_is_not_unpacked(web: WebServer):
    web.answers["initialize"] = lambda message: answered(
        message, INITIALIZED, **{"Content-Encoding": "gzip"}
    )
    assert "packed its answer" in await failure(web.settings())


@pytest.mark.parametrize("status", [404, 400])
async def test_a_call_that_meets_a_forgotten_session_is_made_again_in_a_new_one(
    web: WebServer, status: int
):
    async with linked(web.settings()) as link:
        lost = threading.Event()

        def forget(message: Any) -> Answer:
            if not lost.is_set():
                lost.set()
                return status, {"Content-Type": "text/plain"}, b"No valid session"
            return answered(message, {"content": [{"type": "text", "text": "again"}]})

        web.answers["tools/call"] = forget
        assert await said(link) == "again"
        assert [method for method, _ in web.heard].count("initialize") == 2


async def test_a_call_that_could_not_be_sent_is_made_again_when_the_server_is_back(web: WebServer):
    async with linked(web.settings(call_seconds=10)) as link:
        original = web.answers
        port = web.server_address[1]
        web.shutdown()
        web.server_close()
        again = WebServer.__new__(WebServer)
        ThreadingHTTPServer.__init__(again, ("127.0.0.1", port), _Handler)
        again.answers, again.heard = original, []
        threading.Thread(target=again.serve_forever, args=(0.01,), daemon=True).start()
        try:
            assert await said(link) == "fine"
        finally:
            again.shutdown()
            again.server_close()


async def test_a_name_is_judged_by_the_address_that_is_dialled(web: WebServer):
    async def inside(_host: str) -> list[str]:
        return ["169.254.169.254", "10.1.1.1"]

    settings = McpServerSettings(
        1, "named", transport="streamable_http", url="http://mcp.example.org/"
    )
    async with linked(
        settings, is_up=False, load=lambda: load_session_opener(DestinationResolver(resolve=inside))
    ) as link:
        await until(lambda: link.status("p").error)
        assert (
            "mcp.example.org is 169.254.169.254, 10.1.1.1, which is not public"
            in link.status("p").error
        )
