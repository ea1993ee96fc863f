"""What models write for tool calls that are none: the model is told and tries again, and the chat
is answered."""

import pytest

from tests.cast import fresh_id
from tests.e2e.chat import client, verdict
from tests.fake_onebot import spoken
from tests.scripted_model import Call, call, calls, says


@pytest.mark.parametrize(
    "broken", [{}, "x", {"id": "c1", "function": None}, {"id": "c1", "function": {"name": ""}}]
)
async def test_a_call_that_is_none_is_not_silence(live, model, broken):
    user = fresh_id()
    model.script([says(None, tool_calls=[broken]), call("get_weather", city="北京"), "晴"])
    async with client(live) as bot:
        await bot.say_private(user, "天气？")
        assert spoken(await bot.next_action()) == "晴"
    *_, echoed, told = model.requests[1].messages
    assert echoed["tool_calls"][0]["id"] == told["tool_call_id"]
    assert "function" in told["content"]
    assert await verdict(live, user) == ("answered", "private")
    rows = live.rows(
        "SELECT t.state, t.tool_name FROM agent_toolcall t JOIN agent_run r ON r.id = t.run_id "
        "JOIN agent_chatsession s ON s.id = r.session_id WHERE s.peer_id = ? ORDER BY t.id",
        str(user),
    )
    assert [(row["state"], row["tool_name"]) for row in rows] == [
        ("failed", "unnamed_call"),
        ("succeeded", "get_weather"),
    ]


async def test_null_arguments_and_one_id_for_two_calls_are_no_problem(live, model):
    model.script(
        [
            calls(Call("fetch_history", "null", id="c1"), Call("fetch_history", "null", id="c1")),
            "done",
        ]
    )
    async with client(live) as bot:
        await bot.say_private(fresh_id(), "hi")
        assert spoken(await bot.next_action()) == "done"
    *_, echoed, first, second = model.requests[-1].messages
    assert [one["function"]["arguments"] for one in echoed["tool_calls"]] == ["{}", "{}"]
    assert first["tool_call_id"] == "c1" != second["tool_call_id"] == echoed["tool_calls"][1]["id"]
