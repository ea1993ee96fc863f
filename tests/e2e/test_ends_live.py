"""Silences and take-overs that end by themselves, on a server whose heartbeat never comes."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.chat import client, tell
from tests.e2e.cockpit import Cockpit
from tests.fake_onebot import FakeOneBot, spoken
from tests.live_server import LiveServer
from tests.scripted_model import ScriptedModel

OWNER = 7_000_003


@pytest.fixture
def still(model_server: ScriptedModel) -> Iterator[LiveServer]:
    """Nothing is tidied up there."""
    limits = {"heartbeat": 3_600.0, "lease": 9_000.0}
    with LiveServer(scripted_env(model_server), limits=limits) as server:
        yield server


def change(server: LiveServer, *statements: str) -> None:
    path = server.data_dir / "frostagent.sqlite3"
    with closing(sqlite3.connect(path, timeout=10)) as database, database:
        for statement in statements:
            database.execute(statement)


def restart_without_history(server: LiveServer) -> None:
    server.terminate()
    change(server, "DELETE FROM tools_toolconfigchange", "DELETE FROM agent_operatoract")
    server.start()


def end_soon(server: LiveServer) -> None:
    """As if the ends had been a second from now all the time."""
    end = f"{datetime.now(UTC) + timedelta(seconds=1):%Y-%m-%d %H:%M:%S.%f}"
    change(
        server,
        f"UPDATE agent_manners SET silenced_until = '{end}' WHERE silenced",
        f"UPDATE agent_chatsession SET taken_over_until = '{end}' WHERE taken_over_by <> ''",
        "UPDATE tools_configversion SET number = number + 1 WHERE id = 1",
    )


async def became(server: LiveServer, user: int, words: str) -> str:
    """The reason of what somebody said, once it is settled."""
    row = await server.row(
        "SELECT reason FROM agent_message WHERE sender_id = ? AND text = ? "
        "AND settled_at IS NOT NULL",
        *(str(user), words),
    )
    return str(row["reason"])


async def talk_until_answered(server: LiveServer, bot: FakeOneBot, user: int) -> None:
    for number in count():
        await bot.say_private(user, f"try {number}")
        if await became(server, user, f"try {number}") == "private":
            return


async def test_they_end_on_time_after_a_restart_without_history_or_heartbeat(still, model):
    model.answer_with(lambda request: "here I am")
    account, taken = fresh_id(), fresh_id()
    async with client(still, account) as bot:
        for user in (OWNER, taken):
            await bot.say_private(user, "hi")
            await bot.next_action()
        cockpit = await asyncio.to_thread(Cockpit, still)
        await asyncio.to_thread(cockpit.own, str(account), str(OWNER))
        [row] = still.rows("SELECT id FROM agent_chatsession WHERE peer_id = ?", str(taken))
        page = f"/admin/agent/chatsession/{row['id']}"
        form = {"hours": "1"}
        await asyncio.to_thread(
            cockpit._post, f"{page}/act/take-over/", form, page=f"{page}/change/"
        )
        cockpit.close()
        await tell(bot, "/关闭 30分", user=OWNER)
        assert "为止" in spoken(await bot.next_action())
    await asyncio.to_thread(restart_without_history, still)
    async with client(still, account) as bot:
        reasons = {OWNER: "silenced", taken: "taken_over"}
        for user in reasons:
            await bot.say_private(user, "and now?")
        assert {user: await became(still, user, "and now?") for user in reasons} == reasons
        await asyncio.to_thread(end_soon, still)
        for user in reasons:
            await asyncio.wait_for(talk_until_answered(still, bot, user), 30)
    assert still.rows("SELECT 1 FROM agent_manners WHERE silenced")
    assert still.rows("SELECT 1 FROM agent_chatsession WHERE taken_over_by <> ''")
