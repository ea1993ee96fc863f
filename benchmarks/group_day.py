"""``python -m benchmarks.group_day [--seed N]``: a day in a group of 500, with a real server, its
admin and a scripted model; prints what was said, what was kept silent, and why.

The day is pressed together: each time of day is some hundred messages, and what the owner changes
between them is changed in the admin alone, by its forms.
"""

import argparse
import asyncio
import json
import sqlite3
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.admin_forms import AdminForms
from benchmarks.fake_model import FakeModel, ModelConnection, port_of
from benchmarks.group_members import BOT, BOT_NAME, GROUP, OWNER, Group, Said, at, text
from benchmarks.process import HOST, TOKEN, Installation, Server, free_port, fresh_folder
from benchmarks.speedups import dumps, loads
from benchmarks.websocket import WebSocket

MANNERS = "/admin/agent/manners/"
LONG = "从前有一座山，山上有一座庙，庙里有一个机器人。" * 60
TABLE = "两者的比较：\n\n| 语言 | 类型 |\n| --- | --- |\n| Python | 动态 |\n| Go | 静态 |\n\n**都不错**。"
#: Seconds without any frame after which what was asked is taken for done.
QUIET_SECONDS = 3.0


class DayModel(FakeModel):
    """Answers at length, with Markdown, with a tool call or in a word, by what it is asked."""

    def decide(self, request: dict[str, Any], model_in_us: int) -> dict[str, Any]:
        messages = request["messages"]
        if messages[-1]["role"] == "tool":
            return {"role": "assistant", "content": "北京今天晴朗，25°C。"}
        asked = json.dumps(messages[-1]["content"], ensure_ascii=False)
        if "很长的故事" in asked:
            return {"role": "assistant", "content": LONG}
        if "表格" in asked:
            return {"role": "assistant", "content": TABLE}
        if "北京天气" in asked and request.get("tools"):
            call = self._tool_calls(("get_weather", {"city": "北京"}))
            return call | {"content": "我来查一下。"}
        return {"role": "assistant", "content": f"第 {self.stats.calls} 个回答。"}


@dataclass(slots=True)
class Client:
    """The OneBot client of the bot's account."""

    port: int
    group: Group
    sent: list[dict[str, Any]] = field(default_factory=list)
    is_muted: bool = False
    last_frame: float = 0.0
    _ids: int = 900_000
    _socket: WebSocket = field(init=False)

    async def connect(self) -> None:
        headers = {
            "X-Self-ID": str(BOT),
            "X-Client-Role": "Universal",
            "User-Agent": "OneBot/11",
            "Authorization": f"Bearer {TOKEN}",
        }
        self._socket = WebSocket(self.port, "/ws/frostagent", headers, self._on_text)
        await self._socket.connect()
        self.event(post_type="meta_event", meta_event_type="lifecycle", sub_type="connect")

    def event(self, **fields: Any) -> None:
        self._socket.send(dumps({"time": int(time.time()), "self_id": BOT, **fields}))

    def say(self, said: Said) -> None:
        member = said.member
        sender = {
            "user_id": member.user_id,
            "nickname": member.nickname,
            "card": member.card,
            "role": member.role,
        }
        self.event(
            post_type="message",
            message_type="group",
            sub_type="normal",
            group_id=GROUP,
            group_name="五百人的群",
            user_id=member.user_id,
            message_id=said.message_id,
            message=said.segments,
            sender=sender,
        )
        if said.recalled:
            self.notice("group_recall", user_id=member.user_id, message_id=said.message_id)

    def notice(self, kind: str, **fields: Any) -> None:
        self.event(post_type="notice", notice_type=kind, group_id=GROUP, **fields)

    def mute(self, seconds: int) -> None:
        """By an administrator of the group; 0 lifts it."""
        self.is_muted = bool(seconds)
        kind = "ban" if seconds else "lift_ban"
        self.notice("group_ban", sub_type=kind, operator_id=OWNER, user_id=BOT, duration=seconds)

    def close(self) -> None:
        self._socket.close()

    def _on_text(self, payload: bytes) -> None:
        action = loads(payload)
        self.last_frame = time.monotonic()
        name, echo = action.get("action", ""), action.get("echo")
        data: Any = {}
        if name.startswith("send_"):
            if self.is_muted and name.startswith("send_group"):
                self._answer(echo, "failed", 1200, None, "EventChecker Failed: result 120")
                return
            self._ids += 1
            data = {"message_id": self._ids}
            self.group.bot_messages.append(self._ids)
            self.sent.append(action)
        elif name == "get_forward_msg":
            node = {
                "sender": {"nickname": "某人", "user_id": 1_094_950_020},
                "time": int(time.time()),
                "content": [text("被转发的话")],
            }
            data = {"messages": [node, node]}
        self._answer(echo, "ok", 0, data, "")

    def _answer(self, echo: Any, status: str, code: int, data: Any, wording: str) -> None:
        frame = {"status": status, "retcode": code, "data": data, "echo": echo}
        self._socket.send(dumps(frame | {"message": wording, "wording": wording}))


@dataclass(slots=True)
class Day:
    """The day as it is played."""

    client: Client
    admin: AdminForms
    group: Group
    pause: float
    phases: list[tuple[str, int, int]] = field(default_factory=list)
    """Title, first and last message id of each time of day."""

    async def talk(self, title: str, count: int) -> None:
        first = last = 0
        for said in self.group.talk(count):
            self.client.say(said)
            first, last = first or said.message_id, said.message_id
            await asyncio.sleep(self.pause)
        await self.rest()
        self.phases.append((title, first, last))

    async def rest(self) -> None:
        """Wait until nothing has been sent for a while."""
        self.client.last_frame = time.monotonic()
        while (left := self.client.last_frame + QUIET_SECONDS - time.monotonic()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(left)

    async def order(self, words: str) -> None:
        """The owner gives a command."""
        said = self.group.say("owner's command", self.group.members[0], at(BOT), text(f" {words}"))
        self.client.say(said)
        await self.rest()

    async def set_manners(self, **fields: str) -> None:
        await asyncio.to_thread(self.admin.save, f"{MANNERS}1/change/", fields)
        await asyncio.sleep(1.5)


async def play(day: Day, messages: int) -> None:
    """Six times of a day, with the owner's changes between them."""
    first = {
        "name": "五百人的群", "account": str(BOT), "chats": f"group:{GROUP}",
        "wake_names": BOT_NAME, "merge_seconds": "0.5", "ambient_messages": "10",
        "markdown": "plain", "part_chars": "500", "quote": "true", "says_beside_calls": "true",
        "person_per_minute": "3",
    }  # fmt: skip
    await asyncio.to_thread(day.admin.save, f"{MANNERS}add/", first)
    await asyncio.to_thread(
        day.admin.save,
        "/admin/onebot/bot/1/change/",
        {"owners": str(OWNER)},
    )
    await day.talk("morning: woken by mention, name, quote; three answers a minute", messages)
    now = datetime.now()
    span = f"{now - timedelta(hours=1):%H:%M}-{now + timedelta(hours=1):%H:%M}"
    await day.set_manners(quiet_hours=span)
    await day.talk("noon: quiet hours", messages)
    await day.set_manners(quiet_hours="", wake_mention="false", wake_chance="5")
    await day.talk("afternoon: by name, quote and chance alone", messages)
    await day.set_manners(wake_mention="true", wake_chance="", silenced="on")
    await day.talk("tea time: silenced in the admin", messages)
    await day.order("/on")
    await day.set_manners(silenced="")
    day.client.mute(600)
    await day.talk("early evening: muted by a group administrator", messages)
    day.client.mute(0)
    await day.set_manners(denied_people="\n".join(str(m.user_id) for m in day.group.members[1:4]))
    await day.talk("late evening: three of the loudest are denied", messages)


def report(database: Path, day: Day, model: FakeModel) -> None:
    """What was said and what was kept silent, and why, from the record."""
    rows = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    for title, first, last in day.phases:
        print(f"\n{title}")
        found = rows.execute(
            "select state, reason, detail, count(*) from agent_message where direction = 'in' and "
            "cast(message_id as integer) between ? and ? group by 1, 2, 3 order by 4 desc",
            (first, last),
        )
        for state, reason, detail, count in found:
            print(f"  {count:5} {state:9} {reason:15} {detail[:60]}")
    sent = Counter(action["action"] for action in day.client.sent)
    print(f"\nsent: {dict(sent)}; model calls: {model.stats.calls}")
    for action in day.client.sent[:200:12]:
        print("  ", json.dumps(action["params"].get("message"), ensure_ascii=False)[:150])
    left = rows.execute(
        "select state, count(*) from agent_message where state in ('waiting', 'running', 'sent', "
        "'pending', 'unknown') group by 1"
    ).fetchall()
    print(f"left over: {left or 'nothing'}")


async def main(seed: int, messages: int, pause: float) -> None:
    model = DayModel()
    model.set_latency(50, 400)
    loop = asyncio.get_running_loop()
    endpoint = await loop.create_server(lambda: ModelConnection(model), HOST, 0)
    with fresh_folder() as folder:
        limits = {"CHAT_ANSWERS_PER_MINUTE": "0", "PERSON_ANSWERS_PER_MINUTE": "12"}
        installation = Installation(folder, port_of(endpoint), settings=limits)
        server = await asyncio.to_thread(_start, installation)
        group = Group(seed)
        client = Client(server.port, group)
        try:
            await client.connect()
            await asyncio.sleep(1)
            admin = await asyncio.to_thread(AdminForms, server.port)
            day = Day(client, admin, group, pause)
            await play(day, messages)
        finally:
            client.close()
            await asyncio.to_thread(server.stop)
            endpoint.close()
        (database,) = folder.glob("*.sqlite3")
        report(database, day, model)


def _start(installation: Installation) -> Server:
    server = Server(installation, free_port())
    server.wait_healthy()
    return server


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seed", type=int, default=14)
    options.add_argument("--messages", type=int, default=300, help="at each time of day")
    options.add_argument("--pause", type=float, default=0.05, help="seconds between messages")
    chosen = options.parse_args()
    sys.exit(asyncio.run(main(chosen.seed, chosen.messages, chosen.pause)))
