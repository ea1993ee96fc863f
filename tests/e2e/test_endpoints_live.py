"""Endpoints as rows on a real server: one that is added answers the next message, and nobody
notices when one dies."""

import asyncio
import json
import sqlite3
from contextlib import ExitStack, closing
from typing import Any

import pytest
from django.db import connection

from agent.llm.requests.base import LLMRequest
from agent.llm.spending import estimate_tokens
from agent.models import ModelEndpoint
from tests.cast import fresh_id
from tests.e2e.chat import client, words
from tests.e2e.seeing import answered, image
from tests.fake_onebot import FakeOneBot, spoken
from tests.file_server import FileServer, sends
from tests.live_server import LiveServer
from tests.pictures import BLUE, picture
from tests.scripted_model import ScriptedModel, held

#: Billionths that a token costs at a price of 1 for a million.
NANO_PER_TOKEN = 1_000


def add_row(
    server: LiveServer, name: str, model: ScriptedModel, position: int, **fields: Any
) -> None:
    """Put an endpoint into the server's database, as another process would."""
    row = ModelEndpoint(name=name, base_url=model.url, model=name, position=position, **fields)
    columns = [field for field in row._meta.concrete_fields if not field.primary_key]
    names = ", ".join(str(field.column) for field in columns)
    values = [field.get_db_prep_save(field.pre_save(row, True), connection) for field in columns]
    places = ", ".join("?" * len(columns))
    with closing(sqlite3.connect(server.data_dir / "frostagent.sqlite3", timeout=10)) as database:
        database.execute(f"INSERT INTO agent_modelendpoint ({names}) VALUES ({places})", values)
        database.execute("UPDATE tools_configversion SET number = number + 1 WHERE id = 1")
        database.commit()


async def ask(bot: FakeOneBot, user: int) -> str:
    await bot.say_private(user, "hi")
    return spoken(await bot.next_action())


async def test_a_row_that_is_added_answers_the_next_message(
    start_server: Any, model: ScriptedModel
):
    server = start_server(UPSTREAM_ENDPOINT="")
    async with client(server) as bot:
        user = fresh_id()
        assert "demo" in await ask(bot, user)
        add_row(server, "added", model, 100)
        model.script(["from the row"])
        assert await ask(bot, user) == "from the row"
        assert model.requests[0].model == "added"


async def test_a_model_that_is_marked_as_calling_no_tools_is_offered_none(
    start_server: Any, model: ScriptedModel
):
    server = start_server(UPSTREAM_ENDPOINT="")
    add_row(server, "small", model, 100, can_tools=False)
    model.script(["without tools"])
    async with client(server) as bot:
        assert await ask(bot, fresh_id()) == "without tools"
    assert model.requests[0].body.get("tools") is None


async def test_an_endpoint_that_begins_to_see_describes_the_next_picture(
    start_server: Any, model: ScriptedModel, file_server: FileServer
):
    server, user = start_server(VISUAL_MODEL_NAME=""), fresh_id()
    pictures = [
        image(file_server.serve(path, sends(picture("PNG", BLUE)))) for path in ("/a", "/b")
    ]
    async with client(server) as bot:
        model.script(["unseen"], model="scripted")
        (asked,) = await answered(bot, model, [pictures[0]], user)
        assert words(asked) == "[图片]"
        add_row(server, "eye", model, 100, can_see=True, can_chat=False)
        model.script(["蓝"], model="eye")
        model.script(["seen"], model="scripted")
        *_, asked = await answered(bot, model, [pictures[1]], user)
    assert words(asked) == "[图片] 【图片内容】: 蓝"


@pytest.mark.slow
async def test_when_the_first_dies_while_people_talk_the_second_answers_and_the_run_says_why(
    start_server: Any, model: ScriptedModel
):
    with ExitStack() as first_server:
        first = first_server.enter_context(ScriptedModel())
        server = start_server(UPSTREAM_ENDPOINT="")
        add_row(server, "first", first, 1)
        add_row(server, "second", model, 2)
        first.script(["from the first", held("never")])
        model.answer_with(lambda _: "from the second")
        async with client(server) as bot:
            user = fresh_id()
            assert await ask(bot, user) == "from the first"
            await bot.say_private(user, "hi")
            await first.wait_for_requests(2)
            await asyncio.to_thread(first_server.close)
            assert spoken(await bot.next_action()) == "from the second"
            for _ in range(3):
                assert await ask(bot, user) == "from the second"
    steps = server.rows("SELECT attempts FROM agent_step ORDER BY id")
    reasons = [json.loads(step["attempts"])[0]["reason"] for step in steps[1:]]
    assert "cannot be reached" in reasons[0]
    assert "not asked: it rests" in reasons[-1]
    status = await server.row("SELECT * FROM agent_endpointstatus WHERE rests_until IS NOT NULL")
    assert "cannot be reached" in status["error"]


async def test_a_row_of_a_transaction_that_fails_is_never_asked(start_server: Any, model: Any):
    server, user = start_server(), fresh_id()
    database = sqlite3.connect(server.data_dir / "frostagent.sqlite3", timeout=10)
    async with client(server) as bot:
        model.script(["before", "after"], model="scripted")
        assert await ask(bot, user) == "before"
        with closing(database):
            database.execute("UPDATE agent_modelendpoint SET enabled = 0, position = 900")
            database.execute("UPDATE tools_configversion SET number = number + 1 WHERE id = 1")
            await bot.say_private(user, "hi")  # it waits: the database is locked
            database.rollback()
        assert spoken(await bot.next_action()) == "after"


@pytest.mark.slow
async def test_what_was_spent_is_what_the_steps_say_also_after_a_kill(
    start_server: Any, model: ScriptedModel
):
    server, user = start_server(UPSTREAM_ENDPOINT=""), fresh_id()
    add_row(server, "paid", model, 1, price_input=2, price_output=8, currency="CNY")
    model.script(["first", held("lost"), "second"])
    async with client(server) as bot:
        assert await ask(bot, user) == "first"
        await bot.say_private(user, "hi")
        await model.wait_for_requests(2)
        server.kill()
    server.start()
    async with client(server, int(bot.self_id)) as bot:
        assert spoken(await bot.next_action()) == "second"
    await server.row(
        "SELECT state FROM agent_run GROUP BY state HAVING state = 'finished' AND count(*) = 2"
    )
    steps = server.rows("SELECT cost_nano FROM agent_step WHERE cost_nano > 0")
    spent = "SELECT sum(cost_nano) AS cost_nano, sum(calls) AS calls FROM agent_spendsum"
    (total,) = server.rows(f"{spent} WHERE kind = 'total'")
    again = model.requests[2].body  # the call that was lost, as its cost is estimated
    offered = [tool["function"] for tool in again["tools"]]
    tools = [one | {"parameters_schema": one.pop("parameters")} for one in offered]
    asked = estimate_tokens(LLMRequest(again["messages"], tools), "")
    lost = asked * 2 * NANO_PER_TOKEN
    told = [step["cost_nano"] for step in steps]
    assert (len(told), total["calls"], total["cost_nano"]) == (2, 3, sum(told) + lost)
