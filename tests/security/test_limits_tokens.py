"""The tokens of a day: when they are used up only owners are answered, and everybody is told
once."""

import asyncio
import base64
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.cast import fresh_id
from tests.conftest import TOKEN, scripted_env
from tests.e2e.chat import client
from tests.environment import PATIENCE
from tests.fake_onebot import spoken
from tests.live_server import LiveServer
from tests.scripted_model import ScriptedModel, call, fails, hangs, returns, says
from tests.security.limits import answered, heard, override, page, reasons, settled

#: What each answer of the scripted model says that it cost.
COST = 18


def spent(server: LiveServer) -> int:
    tokens = "coalesce(sum(input_tokens + output_tokens), 0) AS tokens"
    [row] = server.rows(f"SELECT {tokens} FROM agent_spendsum WHERE kind = 'total'")
    return int(row["tokens"])


@pytest.fixture(scope="module")
def rich(model_server: ScriptedModel) -> Iterator[LiveServer]:
    """A server that has more tokens a day than these tests use up; what each cost is a
    difference."""
    named = {"VISUAL_MODEL_NAME": "scripted-vision", "CODER_MODEL_NAME": "scripted-coder"}
    with LiveServer(scripted_env(model_server) | named | {"TOKENS_PER_DAY": "9000000"}) as server:
        yield server


async def test_strangers_are_told_once_in_each_chat_and_owners_are_answered(start_server, model):
    model.answer_with(lambda request: "fine")
    server, owner, first, second = (
        start_server(TOKENS_PER_DAY="50"),
        fresh_id(),
        fresh_id(),
        fresh_id(),
    )
    async with client(server) as bot:
        await override(server, bot, owners=str(owner))
        for number in range(1, 4):
            await bot.say_private(first, f"你好 {number}")
            await settled(server, first, number)
        for person in (first, first, second, second, second):
            await bot.say_private(person, "你好")
        rows = await settled(server, first, 5)
        assert answered(rows) == 3
        assert reasons(rows) | reasons(await settled(server, second, 3)) == {"token_limit": 3}
        await bot.say_private(owner, "你好")
        answered_him = "SELECT 1 FROM agent_message WHERE sender_id = ? AND state = 'answered'"
        await server.row(answered_him, str(owner))
        said = await heard(bot)
        assert sum("请明天再来" in words for words in said) == 2
        assert said.count("fine") == 4
        await server.row(
            "SELECT 1 FROM agent_message WHERE reason = 'owner_note' AND state = 'silent'"
        )
        assert "TOKENS_PER_DAY" in "".join([*said, *await heard(bot)])
    assert spent(server) == 4 * COST
    assert server.log.count("54 tokens / 50 tokens") == 1
    assert "72" in await page(server, "/admin/")


async def test_the_owner_is_told_once_a_day_also_after_a_restart(start_server, model):
    model.answer_with(lambda request: "fine")
    server, owner, account = start_server(TOKENS_PER_DAY="10"), fresh_id(), fresh_id()
    async with client(server, account) as bot:
        await override(server, bot, owners=str(owner))
        for _ in range(2):
            await bot.say_private(person := fresh_id(), "你好")
            await settled(server, person, 1)
    await asyncio.to_thread(server.restart)
    async with client(server, account) as bot:
        await bot.say_private(person := fresh_id(), "你好")
        assert reasons(await settled(server, person, 1)) == {"token_limit": 1}
        await settled(server, owner, 1)
        notes = server.rows("SELECT 1 FROM agent_message WHERE reason = 'owner_note'")
        assert len(notes) == 1
        assert sum("TOKENS_PER_DAY" in words for words in await heard(bot)) <= 1


async def test_a_run_under_way_is_finished(start_server, model):
    server, person = start_server(TOKENS_PER_DAY="5"), fresh_id()
    model.script([call("get_weather", city="Oslo"), "sunny"])
    async with client(server) as bot:
        await bot.say_private(person, "weather?")
        assert spoken(await bot.next_action()) == "sunny"
    assert spent(server) == 2 * COST


async def test_subagents_pictures_and_programs_count(rich, model):
    server, person, before = rich, fresh_id(), spent(rich)
    model.script([call("use_subagent", subagent_name="Coder", content="write"), "done"])
    model.script(["code"], model="scripted-coder")
    async with client(server) as bot:
        await bot.say_private(person, "code!")
        assert spoken(await bot.next_action()) == "done"
        assert spent(server) == before + 3 * COST
        model.script(["A red dot."], model="scripted-vision")
        model.script(["I see."])
        dot = (
            "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAA"
            "AABJRU5ErkJggg=="
        )
        assert base64.b64decode(dot)
        await bot.say_private(person, [{"type": "image", "data": {"file": f"base64://{dot}"}}])
        assert spoken(await bot.next_action()) == "I see."
    assert spent(server) == before + 5 * COST
    model.script(["result"])
    assert (await asked(server))["result"] == "result"
    assert spent(server) == before + 6 * COST


async def test_a_program_is_answered_when_the_tokens_are_used_up(start_server, model):
    server = start_server(TOKENS_PER_DAY="1")
    model.script(["one", "two"])
    assert [(await asked(server))["result"] for _ in range(2)] == ["one", "two"]


VARIED = "".join(map(chr, range(0x4E00, 0x4E00 + 300)))
"""300 characters that do not repeat themselves."""


async def test_what_an_endpoint_does_not_tell_is_estimated(rich, model):
    server, person, before = rich, fresh_id(), spent(rich)
    silent: dict[str, Any] = {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": VARIED}}]
    }
    model.script(
        [
            returns(silent),
            returns({**silent, "usage": {"total_tokens": "many", "prompt_tokens": -5}}),
        ]
    )
    async with client(server) as bot:
        await bot.say_private(person, "你" * 3000)
        await bot.next_action()
        first = spent(server) - before
        assert 3300 <= first <= 20_000
        await bot.say_private(person, "你" * 3000)
        await bot.next_action()
        assert spent(server) - before >= 2 * first


async def test_a_call_that_nobody_waits_for_any_more_is_estimated(start_server, model):
    server, person = start_server(TOKENS_PER_DAY="1000000", LLM_TIMEOUT="1"), fresh_id()
    model.script([hangs()])
    async with client(server) as bot:
        await bot.say_private(person, "你" * 3000)
        await settled(server, person, 1)
    assert 3000 <= spent(server) <= 20_000


async def test_a_run_whose_time_is_up_has_cost_its_calls(start_server, model):
    server, person = start_server(TOKENS_PER_DAY="1000000", RUN_TIMEOUT="1"), fresh_id()
    model.script([hangs()])
    async with client(server) as bot:
        await bot.say_private(person, "你" * 3000)
        await settled(server, person, 1)
    assert 3000 <= spent(server) <= 20_000


async def test_an_answer_that_is_none_is_estimated_and_a_refusal_costs_nothing(rich, model):
    server, person, before = rich, fresh_id(), spent(rich)
    model.script([fails(400), returns({"choices": []}), returns(b"<html>")])
    async with client(server) as bot:
        for number, least in ((1, 0), (2, 3000), (3, 6000)):
            await bot.say_private(person, "你" * 3000)
            await settled(server, person, number)
            assert least <= spent(server) - before <= 5 * least


async def test_a_number_that_cannot_be_is_estimated(rich, model):
    numbers = ["-5000000", "1" + "0" * 30, "1e30", '"5000000"', "true", "null", "[5]", "NaN", "0"]
    person = fresh_id()
    async with client(rich) as bot:
        for count, number in enumerate(numbers, start=1):
            before = spent(rich)
            usage = (
                f'{{"total_tokens": {number}, "prompt_tokens": {number}, '
                f'"completion_tokens": {number}}}'
            )
            answer = f'{{"choices": [{{"message": {{"content": "fine"}}}}], "usage": {usage}}}'
            model.script([returns(answer.encode())])
            await bot.say_private(person, "你" * 3000)
            assert spoken(await bot.next_action()) == "fine"
            await settled(rich, person, count)
            assert 3000 <= spent(rich) - before <= 20_000 * count, number


async def test_work_in_the_background_stops(start_server, model):
    model.answer_with(lambda request: says("fine"))
    server, person = start_server(TOKENS_PER_DAY="10", MEMORY_EXTRACT_TURNS="1"), fresh_id()
    async with client(server) as bot:
        await override(server, bot, owners=str(person))
        for number in range(1, 4):
            await bot.say_private(person, "I like tea")
            # the note that the day is spent is a row of this chat too
            await server.row(
                "SELECT 1 FROM agent_message WHERE state = 'answered' "
                "GROUP BY session_id HAVING count(*) = ?",
                number,
            )
    assert spent(server) == 3 * COST


async def asked(server: LiveServer) -> dict[str, Any]:
    def post() -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        answer = requests.post(
            f"{server.url}/agent/query", json={"input": "?"}, headers=headers, timeout=PATIENCE
        )
        found: dict[str, Any] = answer.json()
        return found

    return await asyncio.to_thread(post)
