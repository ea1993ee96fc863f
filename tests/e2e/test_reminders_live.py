"""Reminders on a real server: said in time, by a model or without, over a kill, and late."""

import asyncio
import signal
import sqlite3
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.chat import client
from tests.fake_onebot import FakeOneBot, spoken
from tests.live_server import LiveServer
from tests.scripted_model import ScriptedModel, call, fails

ROWS = "SELECT state, outcome FROM agent_reminder WHERE set_by = ? AND state = ?"


@pytest.fixture(scope="module")
def live(model_server: ScriptedModel) -> Iterator[LiveServer]:
    with LiveServer(scripted_env(model_server)) as server:
        yield server


@pytest.fixture
async def bot(live: LiveServer, model: ScriptedModel) -> AsyncIterator[FakeOneBot]:
    async with client(live) as connected:
        yield connected


async def heard(bot: FakeOneBot) -> str:
    return spoken(await bot.next_action()).strip()


async def test_a_text_is_said_at_its_instant_without_a_model(live, model, bot):
    person = fresh_id()
    await bot.say_private(person, "/提醒 2s 关火")
    assert (await heard(bot)).startswith("#")
    assert await heard(bot) == "提醒：关火"
    await live.row(ROWS, str(person), "done")
    assert not model.requests


async def test_a_task_that_a_model_set_is_a_run_when_it_is_due(live, model, bot):
    person = fresh_id()
    task = {"text": "查天气并告诉我们", "when": "PT1S", "kind": "task"}
    model.script([call("set_reminder", **task), "好的", "今天有雨"])
    await bot.say_private(person, "明天提醒")
    assert await heard(bot) == "好的"
    assert await heard(bot) == "今天有雨"
    assert "查天气并告诉我们" in model.requests[-1].last_text
    await live.row(ROWS, str(person), "done")


async def test_a_task_whose_model_fails_says_its_text(live, model, bot):
    person = fresh_id()
    model.script([call("set_reminder", text="喝水", when="PT1S", kind="task"), "好的", fails(400)])
    await bot.say_private(person, "提醒我")
    assert await heard(bot) == "好的"
    assert await heard(bot) == "提醒：喝水（模型没有回答）"


async def test_what_fell_due_while_the_account_was_away_is_told_once_as_late(live, model):
    person, account = fresh_id(), fresh_id()
    async with client(live, account) as bot:
        await bot.say_private(person, "/remind 1h tea")
        await heard(bot)
        now = datetime.now(UTC).replace(tzinfo=None)
    due = now - timedelta(seconds=61)
    with sqlite3.connect(live.data_dir / "frostagent.sqlite3", timeout=30) as database:
        database.execute(
            "UPDATE agent_reminder SET due_at = ?, next_at = ? WHERE set_by = ?",
            (str(due), str(due), str(person)),
        )
    async with client(live, account) as bot:
        said = await heard(bot)
        assert said.startswith("(was due ")
        assert said.endswith(") Reminder: tea")


async def test_a_kill_as_it_fires_neither_loses_nor_doubles_it(start_server, model_server):
    server = start_server(**scripted_env(model_server))
    person, account = fresh_id(), fresh_id()
    server.restart(FROST_FAULT="reminder_fired")
    async with client(server, account) as bot:
        await bot.say_private(person, "/提醒 2s 关火")
        assert (await heard(bot)).startswith("#")
        assert await asyncio.to_thread(server.exit_code, 30) == -signal.SIGKILL
    server.restart(FROST_FAULT="")
    async with client(server, account) as bot:
        assert (await heard(bot)).endswith("提醒：关火")
        await server.row(ROWS, str(person), "done")
        await bot.say_private(person, "/提醒列表")
        assert "关火" not in await heard(bot)
