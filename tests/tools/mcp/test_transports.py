"""The good server over each transport, in its new protocol and its old one, over real pipes and
sockets."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.tools.mcp.serving import connecting, good, linked, said, until, web_server
from tools.mcp.link import McpConnection
from tools.mcp.settings import McpServerSettings
from tools.mcp.specs import ConnectionLostError, ServerRefusedError, SessionOpener

pytestmark = pytest.mark.live

HTTP, SSE = "streamable_http", "sse"


@pytest.fixture(scope="module")
def urls() -> Iterator[dict[str, str]]:
    with web_server("http") as http, web_server("sse") as sse:
        yield {HTTP: http, SSE: sse}


async def connecting_in_the_old_way() -> SessionOpener:
    connect = await connecting()
    return lambda settings, signals, _is_old: connect(settings, signals, True)


@pytest.fixture(params=["stdio", HTTP, SSE])
def server(request: pytest.FixtureRequest, urls: dict[str, str]) -> McpServerSettings:
    kind = request.param
    return (
        good() if kind == "stdio" else McpServerSettings(1, "good", transport=kind, url=urls[kind])
    )


@pytest.fixture(params=["new", "old"])
async def link(
    request: pytest.FixtureRequest, server: McpServerSettings
) -> AsyncIterator[McpConnection]:
    load: Any = connecting if request.param == "new" else connecting_in_the_old_way
    async with linked(server, load=load) as one:
        yield one


async def lists_and_calls(link: McpConnection) -> None:
    assert {"weather", "say", "everything"} <= {spec.name for spec in link.catalogue.specs}
    assert await said(link, "say", text="你好") == "你好"
    assert (link.about["name"], link.about["version"]) == ("good", "1.5")


async def hears_of_a_change(link: McpConnection) -> None:
    await link.call("grow", {}, None, may_repeat=False)
    await until(lambda: "late" in {spec.name for spec in link.catalogue.specs})
    assert await said(link, "late") == "late"
    await link.call("shrink", {}, None, may_repeat=False)
    await until(lambda: "late" not in {spec.name for spec in link.catalogue.specs})


async def calls_side_by_side(link: McpConnection) -> None:
    texts = [str(number) for number in range(20)]
    assert await asyncio.gather(*(said(link, "say", text=text) for text in texts)) == texts


async def fails_with_words_where_the_user_is_asked(link: McpConnection) -> None:
    with pytest.raises(ServerRefusedError):
        await link.call("ask", {}, None, may_repeat=False)


async def is_usable_after_a_call_that_is_cut_off(link: McpConnection) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await link.call("slow", {"seconds": 30}, None, may_repeat=False)
    assert await said(link, "say", text="x") == "x"
    assert link.status("p").error == ""


async def test_each_transport_serves_in_both_protocols(link: McpConnection):
    """All in one session: each stdio server is a process that imports for two seconds."""
    await lists_and_calls(link)
    await hears_of_a_change(link)
    await calls_side_by_side(link)
    await fails_with_words_where_the_user_is_asked(link)
    await is_usable_after_a_call_that_is_cut_off(link)


async def test_a_tool_that_needs_input_of_the_newer_kind_fails_with_words_or_is_asked_again(
    urls: dict[str, str],
):
    async with linked(McpServerSettings(1, "good", transport=HTTP, url=urls[HTTP])) as link:
        with pytest.raises(ServerRefusedError) as refused:
            await link.call("needs_input", {}, None, may_repeat=False)
        assert await said(link, "continues") == "finished"
    assert refused.value.text == "该工具要求补充信息，而这里无法提供，调用未完成"


@pytest.mark.parametrize("kind", [HTTP, SSE])
async def test_a_web_server_that_dies_and_comes_back_is_used_again(kind: str):
    with web_server(kind) as url:
        settings = McpServerSettings(1, "good", transport=kind, url=url)
        async with linked(settings) as link:
            with pytest.raises(ConnectionLostError):
                await link.call("die", {}, None, may_repeat=False)
            await until(lambda: not link.is_offered)
            port = int(url.split(":")[2].split("/")[0])
            with web_server(kind, port):
                await until(lambda: link.is_offered)
                assert await said(link, "say", text="back") == "back"
