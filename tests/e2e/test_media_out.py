"""Pictures and files on their way out: a real server, a real socket, and what the record says of
it."""

import base64
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import requests
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.cast import fresh_id
from tests.e2e.chat import client, outgoing
from tests.e2e.cockpit import Cockpit
from tests.environment import PATIENCE
from tests.fake_onebot import FakeOneBot, Frame, failed, ok, spoken
from tests.live_server import LiveServer
from tests.scripted_model import Request, ScriptedModel, call

NTEVENT = 'Timeout: NTEvent serviceAndMethod:NodeIKernelMsgService/sendMsg EventRet:\n{"result": 0}'
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
THE_END = "the end"


@pytest.fixture
async def site() -> AsyncIterator[str]:
    """A web site with one picture."""

    async def picture(_request: web.Request) -> web.Response:
        return web.Response(body=PICTURE)

    app = web.Application()
    app.router.add_get("/cat.png", picture)
    async with TestServer(app) as server:
        yield f"http://127.0.0.1:{server.port}"


def in_base64(content: bytes) -> str:
    return "base64://" + base64.b64encode(content).decode()


def kept(server: LiveServer, content: bytes = PICTURE) -> Path:
    """A new file in the server's media folder."""
    file = server.data_dir / "media" / f"{fresh_id()}.png"
    file.write_bytes(content)
    return file


def is_closing(action: Frame) -> bool:
    return action["action"].startswith("send_") and spoken(action) == THE_END


async def sends(
    bot: FakeOneBot, model: ScriptedModel, user: int, *parts: dict[str, Any]
) -> list[Frame]:
    """What the client is asked in a run that sends ``parts``, up to its closing words."""
    model.script([call("send_message", messages=list(parts)), THE_END])
    await bot.say_private(user, "send it")
    actions = []
    while not is_closing(action := await bot.next_action()):
        actions.append(action)
    return actions


def told(request: Request) -> str:
    """What the model was told of its call."""
    return str(request.messages[-1]["content"])


async def spoken_by_tool(server: LiveServer, user: int) -> list[dict[str, Any]]:
    """The rows of the messages that the tool sent to ``user``, once all of them are settled."""
    await outgoing(server, user, f"m.text = '{THE_END}' AND m.settled_at IS NOT NULL")
    return server.rows(
        "SELECT m.* FROM agent_message m JOIN agent_chatsession s ON s.id = m.session_id "
        "WHERE s.peer_id = ? AND m.tool_call_id IS NOT NULL ORDER BY m.id",
        str(user),
    )


async def test_a_picture_of_the_media_folder_reaches_a_client_without_access_and_is_not_kept_twice(
    live, model
):
    user, file = fresh_id(), kept(live)
    async with client(live) as bot:
        (action,) = await sends(
            bot,
            model,
            user,
            {"type": "plain", "text": "look"},
            {"type": "image", "path": file.name},
        )
    assert action["action"] == "send_private_msg"
    assert action["params"]["message"][1] == {"type": "image", "data": {"file": in_base64(PICTURE)}}
    (row,) = await spoken_by_tool(live, user)
    assert json.loads(row["segments"])[1] == {"type": "image", "data": {"file": f"file://{file}"}}
    assert (row["state"], row["text"]) == ("delivered", "look[图片]")


async def test_a_file_follows_the_words_as_an_upload_and_both_are_on_record(live, model):
    user, file = fresh_id(), kept(live)
    async with client(live) as bot:
        bot.answer_with(
            lambda action: (
                ok(None) if action["action"] != "upload_private_file" else ok({"file_id": "/1"})
            )
        )
        words, upload = await sends(
            bot, model, user, {"type": "file", "path": file.name}, {"type": "plain", "text": "here"}
        )
    assert spoken(words) == "here"
    assert upload["action"] == "upload_private_file"
    assert upload["params"] == {"user_id": user, "file": in_base64(PICTURE), "name": file.name}
    rows = await spoken_by_tool(live, user)
    assert [(row["text"], row["state"]) for row in rows] == [
        ("here", "delivered"),
        (f"[文件:{file.name}]", "delivered"),
    ]
    assert told(model.requests[1]) == "消息已发送"


async def test_a_file_that_was_refused_is_on_record_beside_the_words_that_were_heard(live, model):
    user, file = fresh_id(), kept(live)
    async with client(live) as bot:
        bot.answer_with(
            lambda action: (
                failed(1200, "no space") if action["action"].startswith("upload") else ok()
            )
        )
        await sends(
            bot, model, user, {"type": "plain", "text": "here"}, {"type": "file", "path": file.name}
        )
    rows = await spoken_by_tool(live, user)
    assert [(row["state"], row["detail"]) for row in rows] == [
        ("delivered", ""),
        ("failed", "no space"),
    ]
    assert (
        f"消息发送失败 [文件:{file.name}]: no space\n其余内容已发送或可能已送达，请勿重发"
        in told(model.requests[1])
    )


async def test_what_the_client_refuses_as_base64_is_not_tried_again_and_the_model_hears_the_reason(
    live, model, site
):
    user = fresh_id()
    async with client(live) as bot:
        bot.answer_with(
            lambda action: ok() if is_closing(action) else failed(1200, f"no {len(bot.actions)}")
        )
        actions = await sends(bot, model, user, {"type": "image", "url": f"{site}/cat.png"})
    assert len(actions) == 1
    assert told(model.requests[1]).endswith("消息发送失败: no 1")


async def test_a_picture_that_may_have_arrived_is_not_sent_again(live, model, site):
    user = fresh_id()
    async with client(live) as bot:
        bot.answer_with(lambda action: ok() if is_closing(action) else failed(1200, NTEVENT))
        actions = await sends(bot, model, user, {"type": "image", "url": f"{site}/cat.png"})
    assert len(actions) == 1
    assert (await spoken_by_tool(live, user))[0]["state"] == "unknown"
    assert told(model.requests[1]) == "消息可能已送达，请勿重发"


async def test_a_large_file_goes_by_path_first_and_then_in_a_frame_that_the_client_survives(
    live, model
):
    file = kept(live, b"")
    with file.open("r+b") as sparse:
        sparse.truncate(20 * 2**20)
    async with client(live) as bot:
        bot.answer_with(
            lambda action: (
                ok()
                if not json.dumps(action["params"]).count("file:///")
                else failed(1200, "ENOENT")
            )
        )
        by_path, whole = await sends(bot, model, fresh_id(), {"type": "video", "path": file.name})
    file.unlink()
    assert by_path["params"]["message"] == [{"type": "video", "data": {"file": f"file://{file}"}}]
    content = whole["params"]["message"][0]["data"]["file"].removeprefix("base64://")
    assert base64.b64decode(content, validate=True) == bytes(20 * 2**20)


async def test_a_file_too_large_for_a_frame_is_given_up_in_words(live, model):
    file = kept(live, b"")
    with file.open("r+b") as sparse:
        sparse.truncate(2**40)
    async with client(live) as bot:
        bot.answer_with(lambda action: ok() if is_closing(action) else failed(1200, "ENOENT"))
        (action,) = await sends(bot, model, fresh_id(), {"type": "file", "path": file.name})
    file.unlink()
    assert action["params"]["file"] == str(file)
    assert f"ENOENT; {file.name} is too large to be sent as Base64" in told(model.requests[1])


async def test_a_client_that_takes_only_paths_loads_an_address_by_itself(live, model, site):
    def answer(action: Frame) -> Frame:
        return ok({"file": "/cache/1"}) if action["action"] == "download_file" else ok()

    async with client(live, headers={"User-Agent": "CQHttp/4.15.0"}) as bot:
        bot.answer_with(answer)
        download, upload = await sends(
            bot, model, fresh_id(), {"type": "file", "url": f"{site}/cat.png"}
        )
    assert download["params"]["url"] == f"{site}/cat.png"
    assert (upload["action"], upload["params"]["file"]) == ("upload_private_file", "/cache/1")


@pytest.mark.parametrize("path", ["../secret_key", "/etc/passwd", "link", "missing.png"])
async def test_nothing_but_files_of_the_media_folder_leaves_the_machine(live, model, path):
    link = live.data_dir / "media" / "link"
    link.unlink(missing_ok=True)
    link.symlink_to(live.data_dir / "secret_key")
    async with client(live) as bot:
        assert await sends(bot, model, fresh_id(), {"type": "image", "path": path}) == []
    assert "messages[0].path" in told(model.requests[1])


# --- From the admin -----------------------------------------------------------------


class Uploader(Cockpit):
    """An administrator with files."""

    def upload(self, name: str, content: bytes) -> str:
        """Upload one file; the page that is shown then."""
        address = f"{self._server.url}/admin/agent/mediafile/"
        token = re.search(
            r'name="csrfmiddlewaretoken" value="(\w+)"',
            self._browser.get(address, timeout=PATIENCE).text,
        )
        assert token
        form = {"csrfmiddlewaretoken": token[1]}
        answer: requests.Response = self._browser.post(
            f"{address}add/", form, files={"uploads": (name, content)}, timeout=PATIENCE
        )
        return answer.text


async def test_what_the_operator_uploads_can_be_sent_by_the_path_that_the_page_shows(live, model):
    operator = Uploader(live)
    page = operator.upload(f"小猫 {fresh_id()}.png", PICTURE)
    operator.close()
    shown = re.search(r'<code class="path">(小猫_\d+\.png)</code>', page)
    assert shown
    async with client(live) as bot:
        (action,) = await sends(bot, model, fresh_id(), {"type": "image", "path": shown[1]})
    assert action["params"]["message"][0]["data"] == {"file": in_base64(PICTURE)}
