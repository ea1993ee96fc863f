"""Some days in a group, as the people there and the operator see them. The clock is the server's,
and is moved on."""

import asyncio
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.chat import client
from tests.e2e.cockpit import Cockpit
from tests.fake_onebot import spoken
from tests.live_server import LiveServer
from tests.pictures import picture
from tests.scripted_model import Request, ScriptedModel, call

DAY = 86_400
_START = """
import sys, django
from pathlib import Path
from datetime import timedelta
django.setup()
from django.utils import timezone
days, real = Path(sys.argv.pop(1)), timezone.now
timezone.now = lambda: real() + timedelta(days=int(days.read_text()))
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", *sys.argv[1:]])
"""


class Calendar(LiveServer):
    """The real server on a day of the test's choosing."""

    day = 0

    def _command(self) -> list[str]:
        self.move_to(self.day)
        return [
            sys.executable,
            "-c",
            _START,
            str(self.folder / "day"),
            "runserver",
            f"127.0.0.1:{self.port}",
            "--noreload",
        ]

    def move_to(self, day: int) -> None:
        self.day = day
        new = self.folder / "day.new"
        new.write_text(str(day))
        new.replace(self.folder / "day")  # the server reads it at any moment

    def clock(self) -> int:
        """The time that a client gives its events, in seconds."""
        return int(time.time()) + self.day * DAY


@pytest.fixture
def server(model_server: ScriptedModel) -> Any:
    with Calendar(scripted_env(model_server) | {"LANGUAGE_CODE": "en"}) as running:
        yield running


def results(request: Request) -> list[str]:
    return [message["content"] for message in request.messages if message["role"] == "tool"]


def knows_of_the_peanuts(request: Request) -> bool:
    return any("花生" in str(message["content"]) for message in request.messages)


async def test_some_days_in_a_group(server, model):
    ann, bob, group, other, account = (fresh_id() for _ in range(5))
    stickers = server.data_dir / "media" / "stickers"
    stickers.mkdir(parents=True, exist_ok=True)
    (stickers / "开心的猫.png").write_bytes(picture())
    async with client(server, account) as bot:

        async def say(who: int, words: str, where: int = group, **more: Any) -> dict[str, Any]:
            return await bot.say_group(where, who, words, time=server.clock(), **more)

        # Monday: a wish is kept.
        model.script([call("remember", text="Ann 对花生过敏，点菜不要放花生"), "记住了。"])
        await say(ann, "我对花生过敏，以后点菜别放花生")
        assert spoken(await bot.next_action()).strip() == "记住了。"
        # Tuesday: small talk is not answered, and a question is, after a moment, with a quote.
        server.move_to(1)
        model.script([call("stay_silent")])
        await say(bob, "哈哈哈")
        await _settled(server, group, "silent")
        question = await say(bob, "有人知道几点集合吗？", mention=False)
        model.script(
            [
                call("wait", seconds=0.3),
                call("reply", msg_id=str(question["message_id"]), text="晚上七点。"),
                "答过了",
            ]
        )
        await say(ann, "你帮他答一下")
        quote, *words = (await bot.next_action())["params"]["message"]
        assert (quote["data"]["id"], words[0]["data"]["text"]) == (
            str(question["message_id"]),
            "晚上七点。",
        )
        # Wednesday: a sticker.
        server.move_to(2)
        model.script([call("send_emoji", words="开心"), ""])
        await say(bob, "发个开心的表情")
        (sticker,) = (await bot.next_action())["params"]["message"]
        assert sticker["type"] == "image"
        # Thursday, after a restart: the wish counts here, and is a secret elsewhere.
        server.move_to(3)
    server.restart()
    async with client(server, account) as bot:
        model.script(
            ["宫保鸡丁，不放花生。", "不知道。", call("query_memory", query="花生"), "没有。"]
        )
        await say(bob, "给 Ann 点菜，她能吃花生吗")
        assert "不放花生" in spoken(await bot.next_action())
        assert knows_of_the_peanuts(model.requests[-1])
        for words in ("给我点菜，能放吗", "再想想"):
            await say(ann, words, other)
            await bot.next_action()
        assert not any(map(knows_of_the_peanuts, model.requests[-3:-1]))
        assert "Ann 对" not in results(model.requests[-1])[0]
    await asyncio.to_thread(_look_at_the_record, server, group)


async def _settled(server: Calendar, group: int, state: str) -> None:
    await server.row(
        "SELECT 1 FROM agent_message m JOIN agent_chatsession s ON s.id = m.session_id WHERE "
        "s.peer_id = ? AND m.state = ?",
        str(group),
        state,
    )


def _look_at_the_record(server: Calendar, group: int) -> None:
    """Every step can be read in the admin."""
    cockpit = Cockpit(server)
    (session,) = server.rows("SELECT id FROM agent_chatsession WHERE peer_id = ?", str(group))
    chat = cockpit.page(f"/admin/agent/chatsession/{session['id']}/change/")
    assert all(words in chat for words in ("记住了。", "晚上七点。", "silent", "给 Ann 点菜"))
    runs = server.rows("SELECT id FROM agent_run WHERE session_id = ? ORDER BY id", session["id"])
    pages = "".join(cockpit.page(f"/admin/agent/run/{run['id']}/change/") for run in runs)
    assert all(tool in pages for tool in ("remember", "stay_silent", "wait", "reply", "send_emoji"))
    assert "等待结束" in pages
    assert "Ann 对花生过敏" in cockpit.page("/admin/agent/note/")
    days = {row["created_at"][:10] for row in server.rows("SELECT created_at FROM agent_message")}
    today = datetime.now(UTC)
    assert {(today + timedelta(days=day)).date().isoformat() for day in (0, 3)} <= days
    cockpit.close()
