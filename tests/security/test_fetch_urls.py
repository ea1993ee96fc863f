"""What the model names by URL is loaded here, through the guard, and no client is sent to the
inside of a network."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.cast import fresh_id
from tests.conftest import TOKEN, scripted_env
from tests.e2e.chat import client, outgoing, verdict
from tests.e2e.cockpit import Cockpit
from tests.fake_onebot import FakeOneBot, Frame, failed, ok, spoken
from tests.file_server import drips
from tests.live_server import LiveServer
from tests.scripted_model import Answer, Request, ScriptedModel, call

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
LARGE = 36 * 2**20
THE_END = "the end"
INSIDE = [
    "http://169.254.169.254/latest/meta-data/",
    "http://127.0.0.2:21000/ready",
    "http://192.168.1.1/admin",
    "http://[::1]/a.png",
    "http://[::ffff:127.0.0.2]/a.png",
    "http://2130706434/a.png",
    "http://0x7f.2/a.png",
    "http:/169.254.169.254/latest",
    "http:169.254.169.254/latest",
    "http:\\\\169.254.169.254\\latest",
    "HTTP://169.254.169.254/",
    "http://example.com@169.254.169.254/",
    "http://127.0.0.1\\@169.254.169.254/",
    "https://localhost.localdomain:1/",
    "http://０.0.0.0/",
]


@pytest.fixture
async def site() -> AsyncIterator[str]:
    """A web site on the one host that is allowed."""

    async def large(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        if "said" in request.query:
            response.content_length = LARGE
        await response.prepare(request)
        for _ in range(LARGE // 2**20):
            await response.write(bytes(2**20))
        return response

    async def picture(_request: web.Request) -> web.Response:
        return web.Response(body=PICTURE)

    async def inside(_request: web.Request) -> web.Response:
        raise web.HTTPFound("http://169.254.169.254/latest/meta-data/")

    async def nothing(_request: web.Request) -> web.Response:
        return web.Response()

    async def elsewhere(_request: web.Request) -> web.Response:
        raise web.HTTPFound("/cat.png")

    app = web.Application()
    pages = {
        "/cat.png": picture,
        "/large": large,
        "/inside": inside,
        "/empty": nothing,
        "/moved": elsewhere,
    }
    app.add_routes([web.get(path, handler) for path, handler in pages.items()])
    async with TestServer(app) as server:
        yield f"http://127.0.0.1:{server.port}"


@pytest.fixture(scope="module")
def strict(model_server: ScriptedModel) -> Iterator[LiveServer]:
    """A server that may reach nothing but public addresses."""
    with LiveServer(scripted_env(model_server)) as server:
        yield server


def in_base64(content: bytes) -> str:
    return "base64://" + base64.b64encode(content).decode()


def sending(kind: str, url: str) -> Answer:
    return call("send_message", messages=[{"type": kind, "url": url}])


async def sent(bot: FakeOneBot, model: ScriptedModel, wanted: Answer, user: int = 0) -> list[Frame]:
    """What the client is asked in a run with the call ``wanted``, up to its closing words."""
    model.script([wanted, THE_END])
    await bot.say_private(user or fresh_id(), "send it", message_id=77)
    actions = []
    while spoken_in(action := await bot.next_action()) != THE_END:
        actions.append(action)
    return actions


def spoken_in(action: Frame) -> str:
    return spoken(action) if action["action"].startswith("send_") else ""


def told(request: Request) -> str:
    return str(request.messages[-1]["content"])


@pytest.mark.parametrize("kind", ["image", "record", "video", "file"])
async def test_a_url_is_loaded_here_and_the_record_keeps_the_url(live, model, site, kind):
    user = fresh_id()
    async with client(live) as bot:
        (action,) = await sent(bot, model, sending(kind, f"{site}/cat.png"), user)
        (segment,) = action["params"]["message"]
        assert (segment["type"], segment["data"]["file"]) == (kind, in_base64(PICTURE))
        assert kind != "file" or segment["data"]["name"] == "cat.png"
        row = await outgoing(live, user, f"m.text <> '{THE_END}' AND m.settled_at IS NOT NULL")
    assert json.loads(row["segments"]) == [{"type": kind, "data": {"file": f"{site}/cat.png"}}]
    assert told(model.requests[1]) == "消息已发送"


@pytest.mark.parametrize(
    ("agent", "urls"),
    [("NapCat/4.8.0", INSIDE), ("CQHttp/4.15.0", INSIDE[:2]), ("Lagrange.OneBot/1.0", INSIDE[:2])],
    ids=["NapCat", "CQHttp", "Lagrange"],
)
async def test_no_client_is_ever_given_a_url_of_the_inside(strict, model, urls, agent):
    async with FakeOneBot(
        strict.ws_url, fresh_id(), token=TOKEN, headers={"User-Agent": agent}
    ) as bot:
        for url in urls:
            assert await sent(bot, model, sending("file", url)) == []
            answer = told(model.requests[-1])
            assert "网址" in answer or "http" in answer, url
        assert await sent(bot, model, sending("image", urls[0])) == []
    assert "169.254" not in json.dumps(
        [action for action in bot.actions if action["action"] != "get_login_info"]
    )


@pytest.mark.parametrize("path", ["/inside", "/empty", "/missing"])
async def test_what_cannot_be_loaded_sends_nothing_and_is_said(live, model, site, path):
    async with client(live) as bot:
        assert await sent(bot, model, sending("image", site + path)) == []
    assert "消息发送失败: 该网址" in told(model.requests[1])


async def test_a_picture_of_a_reply_is_loaded_here_too(live, model, site):
    async with client(live) as bot:
        wanted = call("reply", msg_id="77", text="look", attach_pic=[f"{site}/cat.png"])
        model.script([wanted, "done"])
        user = fresh_id()
        await bot.say_private(user, "send it", message_id=77)
        action = await bot.next_action()
        await verdict(live, user)
    assert action["params"]["message"][-1] == {
        "type": "image",
        "data": {"file": in_base64(PICTURE)},
    }


async def test_a_picture_of_a_reply_from_the_inside_is_not_sent(strict, model):
    async with client(strict) as bot:
        assert (
            await sent(bot, model, call("reply", msg_id="77", text="look", attach_pic=[INSIDE[0]]))
            == []
        )
    assert "不允许访问" in told(model.requests[1])


@pytest.mark.parametrize("query", ["", "?said"])
async def test_what_is_too_large_stays_a_url_of_a_host_that_was_judged(live, model, site, query):
    async with client(live) as bot:
        (action,) = await sent(bot, model, sending("video", f"{site}/large{query}"))
    assert action["params"]["message"] == [
        {"type": "video", "data": {"file": f"{site}/large{query}"}}
    ]


async def test_a_client_that_takes_only_paths_is_given_the_url_behind_the_redirects(
    live, model, site
):
    async with client(live, headers={"User-Agent": "CQHttp/4.15.0"}) as bot:
        bot.answer_with(
            lambda action: ok({"file": "/cache/1"}) if action["action"] == "download_file" else ok()
        )
        download, upload = await sent(bot, model, sending("file", f"{site}/moved"))
        assert await sent(bot, model, sending("file", f"{site}/inside")) == []
    assert download["params"]["url"] == f"{site}/cat.png"
    assert (upload["action"], upload["params"]["file"]) == ("upload_private_file", "/cache/1")


async def owned(server: LiveServer, bot: FakeOneBot, model: ScriptedModel, **changes: Any) -> None:
    model.script(["hello"])
    await bot.say_private(fresh_id(), "hello")
    await bot.next_action()
    cockpit = await asyncio.to_thread(Cockpit, server)
    await asyncio.to_thread(cockpit.set_bot, bot.self_id, **changes)
    cockpit.close()


async def test_an_account_that_loads_media_itself_is_given_judged_urls_and_base64_after_a_refusal(
    live, model, site
):
    async with client(live) as bot:
        await owned(live, bot, model, media_by_url="on")
        url = f"{site}/cat.png"
        bot.answer_with(lambda action: failed(1200, "no") if url in json.dumps(action) else ok())
        first, second = await sent(bot, model, sending("image", url))
        assert await sent(bot, model, sending("image", INSIDE[0])) == []
    assert first["params"]["message"] == [{"type": "image", "data": {"file": url}}]
    assert second["params"]["message"] == [{"type": "image", "data": {"file": in_base64(PICTURE)}}]


async def test_bodies_without_end_do_not_hold_up_small_pictures_of_others(
    model, site, file_server, start_server
):
    server, endless = await asyncio.to_thread(start_server), file_server.serve("/endless", drips())
    model.script([sending("image", endless)] * 4)
    async with client(server) as bot:
        for _ in range(4):
            await bot.say_private(fresh_id(), "send it")
        await file_server.wait_for_requests(4)
        (action,) = await sent(bot, model, sending("image", f"{site}/cat.png"))
        assert action["params"]["message"] == [
            {"type": "image", "data": {"file": in_base64(PICTURE)}}
        ]
        await asyncio.to_thread(server.kill)  # or their runs would go on in the tests after this
