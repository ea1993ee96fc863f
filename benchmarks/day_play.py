"""Plays the day of ``python -m benchmarks.same_day`` against the code in a folder, and writes down
what reached the model and the chats."""

import asyncio
import json
import re
import sqlite3
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import day_model, day_story
from benchmarks.day_story import Chat, Said
from benchmarks.process import TOKEN, Installation, Server, free_port, fresh_folder, tail
from tests import pictures
from tests.fake_onebot import FakeOneBot, failed, ok, spoken
from tests.file_server import FileServer, sends
from tests.scripted_model import Request, ScriptedModel

ACCOUNTS = (10001, 10002, 10003, 10004)
ROWS = Path(__file__).with_name("day_rows.py")
LOOK_SECONDS, CALM_SECONDS, SETTLE_SECONDS = 0.03, 0.06, 60
SETTINGS = {
    "LANGUAGE_CODE": "zh-hans",
    "MODEL_NAME": "scripted",
    "VISUAL_MODEL_NAME": "scripted-vision",
    "CODER_MODEL_NAME": "scripted-coder",
    "FETCH_ALLOW": "127.0.0.1",
    "TOKENS_PER_DAY": "5000000",
    "BOT_NAME": "霜",
    "DEFER_TOOLS_ABOVE": "0",
    "MEDIA_FREE_GIB": "0",
    "SYSTEM_PROMPT": "你是{bot_name}，在{chat_kind}。今天是{date}，星期{weekday}，{time}。",
}
_UNENDED = (
    "SELECT count(*) FROM agent_message WHERE state IN ('waiting', 'running', 'pending', 'sent')"
)
_SEEN = (
    "SELECT DISTINCT message_id FROM agent_message WHERE direction = 'in' AND message_id IN ({})"
)
#: What is of the moment or of the machine in bytes on their way, and what stands there instead.
MOMENTARY = (
    (re.compile(r"127\.0\.0\.1:\d+"), "HOST"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(\+\d\d:?\d\d|Z)?"), "MOMENT"),
    (re.compile(r"\d{4}-\d\d-\d\d"), "DAY"),
    (re.compile(r"\b\d\d:\d\d(:\d\d)?\b"), "TIME"),
    (re.compile(r"星期[一二三四五六日]"), "WEEKDAY"),
    (re.compile(r"(before: #|运行 )\d+"), r"\1ROW"),
)
#: Signs of work: how many there are depends on how long the machine takes.
SIGNS = ("set_msg_emoji_like", "set_input_status")
Streams = dict[str, list[str]]
"""What went to one receiver, in order, by the receiver's name."""


class DayError(RuntimeError):
    """The day could not be played to its end."""


def play(root: Path, seed: int) -> Streams:
    """The day, played by the code in ``root``."""
    with fresh_folder() as folder, ScriptedModel() as model, FileServer() as files:
        model.answer_with(day_model.decide)
        _serve_files(files)
        port = int(model.url.rsplit(":", 1)[1].split("/")[0])
        installation = Installation(
            folder / "data", port, True, settings=SETTINGS, root=root, has_core=False
        )
        installation.folder.mkdir()
        given = {"model": model.url, "tool": f"{files.url}/price"}
        _prepare(installation, given)
        day = Day(installation, model, files.url)
        try:
            asyncio.run(day.play(seed))
        except (TimeoutError, AssertionError, OSError) as error:
            raise DayError(f"{error!r}\n{tail(installation.log, 40)}") from error
        finally:
            day.stop()
        return day.streams()


def _serve_files(files: FileServer) -> None:
    for number in range(6):
        picture = pictures.saved(pictures.plain((number * 40, 90, 200 - number * 30)))
        files.serve(f"/{number}.png", sends(picture, "image/png"))
    files.serve("/t.txt", sends("一份文件\n第二行".encode(), "text/plain"))
    files.serve("/v.amr", sends(b"#!AMR\n" + bytes(64), "audio/amr"))
    files.serve("/price", sends(b'{"price": 7}', "application/json"))


def _prepare(installation: Installation, given: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ROWS.read_text(encoding="utf-8")],
        cwd=installation.root,
        env=installation.environment(),
        input=json.dumps(given).encode(),
        capture_output=True,
    )
    if done.returncode:
        raise DayError(f"the rows could not be made:\n{done.stderr.decode()[-3000:]}")


class Day:
    """One server, the clients of its accounts, and what they heard."""

    def __init__(self, installation: Installation, model: ScriptedModel, files: str) -> None:
        self._installation, self._model, self._files = installation, model, files
        self._server: Server | None = None
        self._port = free_port()
        self._clients: dict[int, FakeOneBot] = {}
        self._heard: list[tuple[int, dict[str, Any]]] = []
        self._sent: defaultdict[str, int] = defaultdict(int)
        self._last: dict[tuple[str, str], int] = {}
        self._codes: dict[str, list[str]] = defaultdict(list)
        self._touched = 0.0
        self.told = 0

    # --- The day ------------------------------------------------------------------

    async def play(self, seed: int) -> None:
        await self._begin()
        for wave in day_story.tell(seed, self._files):
            if isinstance(wave, str):
                await self._end()
                await self._begin()
                continue
            await asyncio.gather(*map(self._say, wave))
            await self._settle(wave)
        await self._end()

    async def _begin(self) -> None:
        self._server = Server(self._installation, self._port)
        await asyncio.to_thread(self._server.wait_healthy)
        for account in ACCOUNTS:
            client = FakeOneBot(
                f"ws://127.0.0.1:{self._port}/ws/frostagent", account, token=TOKEN, nickname="霜"
            )
            client.answer_with(partial(self._answer, account))
            client.names = {
                "get_group_info": {"group_name": "群"},
                "get_group_member_info": {"card": "成员", "nickname": "成员", "role": "member"},
            }
            self._clients[account] = await client.__aenter__()
        await asyncio.sleep(0.5)

    async def _end(self) -> None:
        for client in self._clients.values():
            await client.__aexit__(None, None, None)
        self._clients.clear()
        await asyncio.to_thread(self.stop)

    def stop(self) -> None:
        if self._server:
            self._server.stop()
            self._server = None

    async def _say(self, said: Said) -> None:
        chat, segments = said.chat, list(said.segments)
        if said.approves is not None:
            segments[-1] = day_story.text(f"{segments[-1]['data']['text']} {self._code(chat)}")
        if quoted := self._last.get((chat.key, said.quotes)):
            segments.insert(0, {"type": "reply", "data": {"id": str(quoted)}})
        client, message = self._clients[chat.account], _written(segments, said.form)
        fields = {"message_id": said.message_id, "message_seq": said.number, **said.fields}
        fields |= {"raw_message": _raw(segments), "real_id": said.number}
        if chat.is_group:
            role = "owner" if said.sender == day_story.OWNER else "member"
            fields["sender"] = {
                "user_id": said.sender,
                "nickname": f"人{said.sender}",
                "role": role,
            }
        for _ in range(2 if said.twice else 1):
            if chat.is_group:
                await client.say_group(chat.peer, said.sender, message, mention=False, **fields)
            else:
                await client.say_private(said.sender, message, **fields)
        if said.recalled:
            kind = "group_recall" if chat.is_group else "friend_recall"
            group = {"group_id": chat.peer, "operator_id": said.sender} if chat.is_group else {}
            await client.tell(
                "notice", notice_type=kind, user_id=said.sender, message_id=said.message_id, **group
            )
        self._last[chat.key, "person"] = said.message_id
        self.told += 1

    def _code(self, chat: Chat) -> str:
        codes = self._codes[_target(chat)]
        if not codes:
            return "000001"
        return codes[-1]

    async def _settle(self, wave: list[Said]) -> None:
        """Wait until all of ``wave`` is on record and nothing is left to do."""
        end, ids = time.monotonic() + SETTLE_SECONDS, [str(said.message_id) for said in wave]
        calm = 0
        while calm < 2:
            await asyncio.sleep(LOOK_SECONDS)
            is_calm = time.monotonic() - self._touched > CALM_SECONDS and self._is_done(ids)
            calm = calm + 1 if is_calm else 0
            if time.monotonic() > end:
                raise DayError(f"not settled: {[said.segments for said in wave]}")

    def _is_done(self, ids: list[str]) -> bool:
        file = self._installation.folder / "frostagent.sqlite3"
        connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=10)
        try:
            seen = connection.execute(_SEEN.format(", ".join("?" * len(ids))), ids).fetchall()
            return len(seen) == len(set(ids)) and not connection.execute(_UNENDED).fetchone()[0]
        finally:
            connection.close()

    # --- The client ---------------------------------------------------------------

    def _answer(self, account: int, action: dict[str, Any]) -> dict[str, Any]:
        self._touched = time.monotonic()
        self._heard.append((account, action))
        name, params = action["action"], action["params"]
        if name.startswith("send_"):
            return self._take_sent(account, params)
        if name == "get_forward_msg":
            sender = {"nickname": "某人", "user_id": 21009}
            words = [day_story.text(f"被转发的话 {params.get('id')}")]
            node = {"sender": sender, "time": 1_700_000_000, "content": words}
            return ok({"messages": [node, node]})
        return failed(1404, f"不支持的Api {name}")

    def _take_sent(self, account: int, params: dict[str, Any]) -> dict[str, Any]:
        target = _target_of(account, params)
        self._sent[target] += 1
        kind, peer = target.split(":")[1:]
        number = int(peer) % 100_000 * 1_000 + self._sent[target]
        number += 900_000_000 + (100_000_000 if kind == "group" else 0)
        words = spoken({"params": params}) if isinstance(params.get("message"), list) else ""
        self._codes[target] += re.findall(r"(?:批准|拒绝)\s*(\d{6})", words)
        for key in _keys(account, kind, int(peer)):
            self._last[key, "bot"] = number
        return ok({"message_id": number})

    # --- What was heard -----------------------------------------------------------

    def streams(self) -> Streams:
        """In canonical form: what is random by its nature has a name instead."""
        codes = {code for found in self._codes.values() for code in found}
        streams: Streams = defaultdict(list)
        for request in self._model.requests:
            streams[f"model {_asked_for(request)}"].append(_canonical(_request(request), codes))
        for account, action in self._heard:
            name, params = action["action"], action["params"]
            to = f"{name} {_target_of(account, params)}"
            line = json.dumps(params, ensure_ascii=False)
            streams[to].append(_canonical(line, codes))
        for name in streams:
            if name == "model -":
                streams[name].sort()
            elif name.startswith(SIGNS):
                streams[name] = sorted(set(streams[name]))
        return dict(sorted(streams.items()))


def _asked_for(request: Request) -> str:
    """The chat that a request is for; "-" where it says none."""
    text = request.raw.decode(errors="replace")
    mark = day_model.find_mark(json.dumps(request.body.get("messages", text), ensure_ascii=False))
    return f"{mark.partition('-')[0] or '-'}"


def _request(request: Request) -> str:
    return f"{request.path} {request.raw.decode(errors='replace')}"


def _canonical(line: str, codes: Iterable[str]) -> str:
    for pattern, name in MOMENTARY:
        line = pattern.sub(name, line)
    for code in codes:
        line = line.replace(code, "CODE")
    return line


def _written(segments: list[dict[str, Any]], form: str) -> Any:
    return segments if form == "array" else _raw(segments)


def _raw(segments: list[dict[str, Any]]) -> str:
    parts = []
    for one in segments:
        data = ",".join(f"{name}={value}" for name, value in one["data"].items())
        parts.append(one["data"]["text"] if one["type"] == "text" else f"[CQ:{one['type']},{data}]")
    return "".join(parts)


def _target(chat: Chat) -> str:
    return f"{chat.account}:{'group' if chat.is_group else 'private'}:{chat.peer}"


def _target_of(account: int, params: dict[str, Any]) -> str:
    if group := params.get("group_id"):
        return f"{account}:group:{group}"
    return f"{account}:private:{params.get('user_id', 0)}"


def _keys(account: int, kind: str, peer: int) -> list[str]:
    """The key of the chat of the first account, whose last message may be quoted."""
    if account != ACCOUNTS[0]:
        return []
    return [f"g{peer - 30000}" if kind == "group" else f"p{peer - 41000}"]
