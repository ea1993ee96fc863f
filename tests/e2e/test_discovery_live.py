"""Deferred tools in a running server: named, found, called, kept over restarts, and steered in the
admin."""

import asyncio
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.chat import client
from tests.e2e.city_server import CityServer
from tests.e2e.cockpit import Cockpit
from tests.environment import PATIENCE
from tests.fake_onebot import spoken
from tests.live_server import LiveServer
from tests.scripted_model import Answer, Request, ScriptedModel, call, text_of

OUTSIDE = {"plan_route", "city_map", "air_quality"}


@pytest.fixture(scope="module")
def city(model_server: ScriptedModel) -> Iterator[LiveServer]:
    """A server that each test may restart, on a data folder that is kept from test to test."""
    with CityServer(scripted_env(model_server) | {"DEFER_TOOLS_ABOVE": "2"}) as server:
        yield server


async def asked(
    server: LiveServer, model: ScriptedModel, user: int, *answers: Answer
) -> list[Request]:
    """The model's requests of one private run in which it gives ``answers`` and then ends."""
    before = len(model.requests)
    model.script([*answers, "the end"])
    async with client(server) as bot:
        await bot.say_private(user, "hi")
        assert spoken(await bot.next_action()) == "the end"
    return model.requests[before:]


def outside(request: Request) -> list[str]:
    """The tools from outside that were offered, in their order."""
    return [name for name in request.tool_names if name in OUTSIDE]


def system(request: Request) -> str:
    return text_of(request.messages[0])


async def test_deferred_tools_are_found_and_called_and_the_offer_only_grows_at_its_end(city, model):
    first, second, third = await asked(
        city,
        model,
        fresh_id(),
        call("tool_search", query="从北京到上海的路线怎么走"),
        call("plan_route", start="a", end="b"),
    )
    assert (outside(first), outside(second)) == ([], ["plan_route"])
    assert second.body["tools"][:-1] == first.body["tools"]
    assert third.body["tools"] == second.body["tools"]
    assert third.messages[: len(second.messages)] == second.messages
    assert "3. plan_route: 规划从起点到终点的路线" in system(first)
    assert system(third) == system(first)
    assert third.last_text == "a -> b"


async def test_what_was_found_is_there_after_a_restart_in_the_same_chat_alone(city, model):
    user, account = fresh_id(), fresh_id()

    async def offered(*answers: Answer) -> Request:
        model.script([*answers, "the end"])
        async with client(city, account) as bot:
            await bot.say_private(user, "hi")
            await bot.next_action()
        request: Request = model.requests[-1]
        return request

    last = await offered(
        call("tool_search", query="air_quality"), call("tool_search", query="地图")
    )
    assert outside(last) == ["air_quality", "city_map"]
    await asyncio.to_thread(city.restart)
    assert (await offered()).body["tools"] == last.body["tools"]
    assert [outside(request) for request in await asked(city, model, fresh_id())] == [[]]


async def test_a_search_that_a_crash_cut_off_is_made_again(city, model):
    user, account = fresh_id(), fresh_id()
    model.script([call("tool_search", query="city_map"), "the end"])
    await asyncio.to_thread(city.restart, FROST_FAULT="tool_run")
    async with client(city, account) as bot:
        await bot.say_private(user, "hi")
        assert await asyncio.to_thread(city.exit_code, PATIENCE) == -signal.SIGKILL
    await asyncio.to_thread(city.restart, FROST_FAULT="")
    async with client(city, account) as bot:
        assert spoken(await bot.next_action()) == "the end"
    assert outside(model.requests[-1]) == ["city_map"]


async def test_a_tool_that_was_not_found_runs_and_its_failure_advises_to_search(city, model):
    wrong, good = call("plan_route", start="a", end="a"), call("plan_route", start="a", end="b")
    _, failed, right = await asked(city, model, fresh_id(), wrong, good)
    assert failed.last_text.startswith("工具执行失败: already there\n")
    assert failed.last_text.endswith("请先用 tool_search 搜索 plan_route，再按它的参数调用。")
    assert right.last_text == "a -> b"


async def test_the_operator_pins_and_defers_tools_and_the_next_message_obeys(city, model):
    cockpit = await asyncio.to_thread(Cockpit, city)
    before: dict[str, Any] = await asyncio.to_thread(cockpit.configure, "city_map", pinned=1)
    own = await asyncio.to_thread(cockpit.configure, "get_weather", visibility="deferred")
    (request,) = await asked(city, model, fresh_id())
    assert (outside(request), "get_weather" in request.tool_names) == (["city_map"], False)
    assert "\n2. get_weather: " in system(request)
    assert "city_map" not in system(request)
    await asyncio.to_thread(cockpit.configure, "city_map", **before)
    await asyncio.to_thread(cockpit.configure, "get_weather", **own)
    (request,) = await asked(city, model, fresh_id())
    assert (outside(request), "get_weather" in request.tool_names) == ([], True)
    cockpit.close()


async def test_no_more_tools_than_the_limit_are_all_offered_in_full(city, model):
    await asyncio.to_thread(city.restart, DEFER_TOOLS_ABOVE="3")
    (request,) = await asked(city, model, fresh_id())
    assert set(outside(request)) == OUTSIDE
    assert "tool_search" not in system(request)
    await asyncio.to_thread(city.restart, DEFER_TOOLS_ABOVE="2")
