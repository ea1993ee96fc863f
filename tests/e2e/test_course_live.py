"""The tools with which the model steers its turn: it waits, ends, keeps silent, replies, and is
asked first if it should."""

import asyncio
import re
import time
from typing import Any

import pytest

from tests.cast import fresh_id
from tests.e2e.chat import client, verdict
from tests.e2e.cockpit import Cockpit
from tests.fake_onebot import at, failed, ok, spoken, text
from tests.scripted_model import Call, Request, call, calls, held

NEXT = "next!"


def results(request: Request) -> list[str]:
    return [message["content"] for message in request.messages if message["role"] == "tool"]


def quoted(action: dict[str, Any]) -> list[str]:
    return [
        segment["data"]["id"]
        for segment in action["params"]["message"]
        if segment["type"] == "reply"
    ]


# --- The end of a turn ------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "detail"),
    [
        ("stay_silent", "the model chose to stay silent"),
        ("no_action", "the model chose to do nothing until the next message"),
        ("finish", "the model ended its turn without a word"),
    ],
)
async def test_a_turn_can_end_without_a_word_and_the_record_says_why(live, model, tool, detail):
    user = fresh_id()
    model.script([calls(Call(tool), content="thinking aloud")])
    async with client(live) as bot:
        await bot.say_private(user, "hm")
        assert await verdict(live, user) == ("silent", "private")
        await bot.no_action(user=user)
    row, *_ = live.rows(
        "SELECT detail FROM agent_message WHERE sender_id = ? ORDER BY id", str(user)
    )
    assert row["detail"] == detail


async def test_after_the_end_no_other_call_of_the_answer_is_made(live, model):
    user = fresh_id()
    said = Call("send_message", {"messages": [{"type": "plain", "text": "too late"}]})
    model.script([calls(Call("finish"), said)])
    async with client(live) as bot:
        await bot.say_private(user, "hm")
        assert await verdict(live, user) == ("silent", "private")
        await bot.no_action(user=user)
    rows = live.rows(
        "SELECT state, result FROM agent_toolcall WHERE requested_by = ? ORDER BY position",
        str(user),
    )
    assert [row["state"] for row in rows] == ["succeeded", "failed"]
    assert "本轮已经结束" in rows[1]["result"]


async def test_silence_beside_other_calls_is_none_and_nothing_is_done(live, model):
    user = fresh_id()
    said = Call("send_message", {"messages": [{"type": "plain", "text": "psst"}]})
    model.script([calls(said, Call("stay_silent")), "Then I speak."])
    async with client(live) as bot:
        await bot.say_private(user, "hm")
        assert spoken(await bot.next_action()) == "Then I speak."
        await bot.no_action(user=user)
    assert all("必须单独调用" in result for result in results(model.requests[-1]))
    assert len(results(model.requests[-1])) == 2


async def test_continue_is_the_gates_alone(live, model):
    user = fresh_id()
    model.script([call("continue"), "hm"])
    async with client(live) as bot:
        await bot.say_private(user, "hm")
        assert spoken(await bot.next_action()) == "hm"
    assert "continue" not in model.requests[-1].tool_names
    assert results(model.requests[-1])[0].splitlines()[0] == "Tool not found: continue"


# --- wait -------------------------------------------------------------------------


async def test_a_wait_says_what_was_planned_and_what_it_took(live, model):
    user = fresh_id()
    model.script([call("wait", seconds=0.2), "There."])
    async with client(live) as bot:
        begun = time.monotonic()
        await bot.say_private(user, "wait")
        assert spoken(await bot.next_action()) == "There."
        assert time.monotonic() - begun >= 0.2
    (result,) = results(model.requests[-1])
    assert re.fullmatch(r"等待结束：计划 0\.2 秒，实际 \d+ 秒。", result)


async def test_a_wait_outlasts_the_time_of_run_and_tool(impatient, model):
    """The run has three seconds there."""
    user = fresh_id()
    model.script([call("wait", seconds="3.5"), "There."])
    async with client(impatient) as bot:
        await bot.say_private(user, "wait")
        assert spoken(await bot.next_action()) == "There."


async def test_a_message_breaks_a_wait_in_private(live, model):
    user = fresh_id()
    model.script([call("wait", seconds="for ever"), "First.", "Second."])
    async with client(live) as bot:
        await bot.say_private(user, "wait")
        await live.row(
            "SELECT 1 FROM agent_toolcall WHERE requested_by = ? AND state = 'running'", str(user)
        )
        await bot.say_private(user, NEXT)
        assert [spoken(await bot.next_action()) for _ in range(2)] == ["First.", "Second."]
    assert "计划 30 秒" in results(model.requests[1])[0]
    assert "提前结束" in results(model.requests[1])[0]


async def test_a_message_that_came_before_the_wait_breaks_it_too(live, model):
    user = fresh_id()
    model.script([held(call("wait", seconds=600)), "First.", "Second."])
    async with client(live) as bot:
        await bot.say_private(user, "wait")
        await model.wait_for_requests(1)
        await bot.say_private(user, NEXT)
        await live.row(
            "SELECT 1 FROM agent_message WHERE sender_id = ? AND state = 'waiting'", str(user)
        )
        model.release()
        assert [spoken(await bot.next_action()) for _ in range(2)] == ["First.", "Second."]
    assert "提前结束" in results(model.requests[1])[0]


async def test_a_message_does_not_break_a_wait_in_a_group(live, model):
    group, user = fresh_id(), fresh_id()
    model.script([call("wait", seconds=2), "First.", "Second."])
    async with client(live) as bot:
        begun = time.monotonic()
        await bot.say_group(group, user, "wait")
        await live.row(
            "SELECT 1 FROM agent_toolcall WHERE requested_by = ? AND state = 'running'", str(user)
        )
        await bot.say_group(group, user, NEXT)
        assert [spoken(await bot.next_action()).strip() for _ in range(2)] == ["First.", "Second."]
        assert time.monotonic() - begun >= 2


async def test_there_are_so_many_waits_in_a_row_and_then_rest(live, model):
    user = fresh_id()
    model.script([calls(*(Call("wait", {"seconds": -1}) for _ in range(4)))])
    async with client(live) as bot:
        await bot.say_private(user, "wait")
        assert await verdict(live, user) == ("silent", "private")
    rows = live.rows(
        "SELECT result FROM agent_toolcall WHERE requested_by = ? ORDER BY position", str(user)
    )
    assert [row["result"].split("：")[0].split("，")[0] for row in rows] == ["等待结束"] * 3 + [
        "已连续等待 3 次"
    ]


async def test_a_wait_goes_on_after_a_crash_where_it_was(start_server, model):
    server = start_server()
    user, account = fresh_id(), fresh_id()
    model.script([call("wait", seconds=3), "There."])
    async with client(server, account) as bot:
        await bot.say_private(user, "wait")
        await server.row("SELECT 1 FROM agent_toolcall WHERE state = 'running'")
    server.kill()
    server.start()
    async with client(server, account) as bot:
        assert spoken(await bot.next_action()) == "There."
    assert results(model.requests[-1])[0].startswith("等待结束：计划 3 秒，实际 ")


async def test_several_chats_wait_at_once_and_a_message_breaks_the_wait_of_its_own_chat_alone(
    live, model
):
    one, two = fresh_id(), fresh_id()

    def answer(request: Request) -> Any:
        if request.messages[-1]["role"] == "tool":
            return "Waited."
        return (
            f"To {request.last_text[-1]}."
            if NEXT in request.last_text
            else call("wait", seconds=600)
        )

    model.answer_with(answer)
    async with client(live) as bot:
        for user in (one, two):
            await bot.say_private(user, "wait")
            await live.row(
                "SELECT 1 FROM agent_toolcall WHERE requested_by = ? AND state = 'running'",
                str(user),
            )
        for number in (1, 2):
            await bot.say_private(two, f"{NEXT}{number}")
        said = [await bot.next_action() for _ in range(3)]
        assert [spoken(action) for action in said] == ["Waited.", "To 1.", "To 2."]
        assert {action["params"]["user_id"] for action in said} == {two}
        assert live.rows(
            "SELECT 1 FROM agent_toolcall WHERE requested_by = ? AND state = 'running'", str(one)
        )
        await bot.say_private(one, f"{NEXT}3")
        assert [spoken(await bot.next_action()) for _ in range(2)] == ["Waited.", "To 3."]


# --- reply ------------------------------------------------------------------------


async def test_a_reply_quotes_its_message_once_and_the_final_text_is_kept_and_not_sent(live, model):
    group, user = fresh_id(), fresh_id()
    async with client(live) as bot:
        event = await bot.say_group(group, user, "the first thing", mention=False)
        model.script(
            [
                call(
                    "reply",
                    msg_id=str(event["message_id"]),
                    text="One.\n\nTwo.",
                    attach_at=["20002"],
                ),
                "done thinking",
            ]
        )
        await bot.say_group(group, user, "reply to the first")
        one, two = await bot.next_action(), await bot.next_action()
        await bot.no_action(group=group)
    assert (quoted(one), quoted(two)) == ([str(event["message_id"])], [])
    assert one["params"]["message"][1:] == [at(20002), text(" One.")]
    assert two["params"]["message"] == [text("Two.")]
    (run,) = live.rows(
        "SELECT final_text FROM agent_run WHERE final_text = 'done thinking' ORDER BY id DESC "
        "LIMIT 1"
    )
    assert run["final_text"] == "done thinking"


async def test_a_reply_by_the_replyer_is_sent_and_its_run_is_on_record(live, model):
    user, message_id = fresh_id(), fresh_id()
    wanted = call(
        "reply",
        msg_id=str(message_id),
        reply_reference="say that all is well",
        reply_style="简短表达",
        set_quote=False,
    )
    model.script([wanted, "All is well.", ""])
    async with client(live) as bot:
        await bot.say_private(user, "how are you?", message_id=message_id)
        assert (await bot.next_action())["params"]["message"] == [text("All is well.")]
        assert await verdict(live, user) == ("answered", "private")
    assert "say that all is well" in model.requests[1].last_text
    (run,) = live.rows(
        "SELECT r.origin FROM agent_run r JOIN agent_toolcall c ON c.id = r.parent_id WHERE "
        "c.requested_by = ?",
        str(user),
    )
    assert run["origin"] == "agent"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"msg_id": " ", "text": "x"}, "msg_id 不能为空"),
        ({"text": "x"}, "msg_id"),
        (
            {"msg_id": "123456789", "text": "x"},
            "工具执行失败: 本会话中没有 message_id 为 123456789 的消息",
        ),
        ({"msg_id": "{id}"}, "text 和 reply_reference 不能都为空"),
        ({"msg_id": "{id}", "text": "x", "attach_pic": ["/etc/passwd"]}, "attach_pic[0].path "),
        (
            {"msg_id": "{id}", "text": "x", "attach_pic": ["file:///etc/passwd"]},
            "attach_pic[0].url ",
        ),
        ({"msg_id": "{id}", "text": "x", "reply_style": "诗"}, "reply_style"),
    ],
)
async def test_a_reply_that_cannot_be_made_is_explained(live, model, arguments, told):
    user, message_id = fresh_id(), fresh_id()
    filled = {
        name: value.format(id=message_id) if isinstance(value, str) else value
        for name, value in arguments.items()
    }
    model.script([call("reply", **filled), "hm"])
    async with client(live) as bot:
        await bot.say_private(user, "hi", message_id=message_id)
        assert spoken(await bot.next_action()) == "hm"
    assert results(model.requests[-1])[0].startswith(told)


async def test_a_message_of_another_chat_cannot_be_replied_to(live, model):
    elsewhere, user, message_id = fresh_id(), fresh_id(), fresh_id()
    async with client(live) as bot:
        await bot.say_group(elsewhere, user, "secret", message_id=message_id, mention=False)
        model.script([call("reply", msg_id=str(message_id), text="x"), "hm"])
        await bot.say_private(user, "hi")
        assert spoken(await bot.next_action()) == "hm"
    assert "没有 message_id" in results(model.requests[-1])[0]


async def test_a_recalled_message_is_not_replied_to(live, model):
    group, user, message_id = fresh_id(), fresh_id(), fresh_id()
    async with client(live) as bot:
        await bot.say_group(group, user, "oops", message_id=message_id, mention=False)
        await bot.tell(
            "notice",
            notice_type="group_recall",
            group_id=group,
            user_id=user,
            operator_id=user,
            message_id=message_id,
        )
        model.script([call("reply", msg_id=str(message_id), text="x"), "hm"])
        await bot.say_group(group, user, "reply to what I took back")
        assert spoken(await bot.next_action()).strip() == "hm"
    assert results(model.requests[-1]) == [f"工具执行失败: 消息 {message_id} 已被撤回"]


async def test_a_reply_that_the_client_refuses_is_told_and_the_final_text_goes_out(live, model):
    user, message_id = fresh_id(), fresh_id()
    model.script([call("reply", msg_id=str(message_id), text="rude"), "polite"])
    async with client(live) as bot:
        bot.answer_with(
            lambda action: failed(1200, "被禁言了") if spoken(action) == "rude" else ok()
        )
        await bot.say_private(user, "hi", message_id=message_id)
        assert [spoken(await bot.next_action()) for _ in range(2)] == ["rude", "polite"]
    assert "被禁言了" in results(model.requests[-1])[0]


# --- The timing gate --------------------------------------------------------------


@pytest.fixture
async def gated(live, model) -> Any:
    """A client whose bot asks first if and when to answer."""
    async with client(live) as bot:
        model.script(["hello"])
        await bot.say_private(fresh_id(), "hello")
        await bot.next_action()
        cockpit = await asyncio.to_thread(Cockpit, live)
        await asyncio.to_thread(cockpit.set_bot, bot.self_id, timing_gate="on")
        cockpit.close()
        yield bot


async def test_the_gate_is_asked_with_its_own_tools_and_lets_the_planner_answer(live, model, gated):
    user = fresh_id()
    model.script([call("continue"), "An answer."])
    await gated.say_private(user, "hi")
    assert spoken(await gated.next_action()) == "An answer."
    gate, planner = model.requests[-2:]
    assert set(gate.tool_names) == {"continue", "wait", "no_action"}
    assert [message["role"] for message in planner.messages] == ["system", "user"]
    steps = live.rows(
        "SELECT s.phase, s.number FROM agent_step s JOIN agent_run r ON r.id = s.run_id JOIN "
        "agent_message m ON m.id = r.message_id "
        "WHERE m.sender_id = ? ORDER BY s.number",
        str(user),
    )
    assert [(step["phase"], step["number"]) for step in steps] == [("timing", 1), ("action", 2)]


async def test_the_gate_may_wait_and_may_decide_against_an_answer(live, model, gated):
    user = fresh_id()
    model.script([call("wait", seconds=0), call("no_action")])
    await gated.say_private(user, "hi")
    assert await verdict(live, user) == ("silent", "private")
    assert "计划 0 秒" in results(model.requests[-1])[0]


async def test_a_gate_that_never_decides_means_no_action_after_three_tries(live, model, gated):
    user = fresh_id()
    model.script(["I wonder.", call("get_weather", city="北京"), "Still wondering."])
    await gated.say_private(user, "hi")
    assert await verdict(live, user) == ("silent", "private")
    assert [
        sum("没有调用可用的工具" in str(m["content"]) for m in request.messages)
        for request in model.requests[-3:]
    ] == [
        0,
        1,
        1,
    ]


async def test_a_continuation_needs_no_gate_until_the_planner_is_done(live, model, gated):
    user = fresh_id()
    model.script([call("continue"), call("no_action"), "Without a gate."])
    await gated.say_private(user, "hi")
    assert await verdict(live, user) == ("silent", "private")
    await gated.say_private(user, "and now?")
    assert spoken(await gated.next_action()) == "Without a gate."
    model.script([call("no_action")])
    await gated.say_private(user, "and now?")
    await live.row(
        "SELECT 1 FROM agent_message m JOIN agent_chatsession s ON s.id = m.session_id "
        "WHERE s.peer_id = ? GROUP BY s.id HAVING sum(m.state = 'silent') = 2",
        str(user),
    )


async def test_the_gates_calls_do_not_count_towards_the_runs(live, model, gated):
    user = fresh_id()
    weather = [call("get_weather", city=str(n)) for n in range(4)]
    model.script(["hm", call("continue"), *weather, "All five."])
    await gated.say_private(user, "hi")
    assert spoken(await gated.next_action()) == "All five."


async def test_the_waits_of_the_gate_are_not_in_a_row_with_the_planners(live, model, gated):
    user = fresh_id()
    moment = call("wait", seconds=0)
    model.script([moment, moment, call("continue"), moment, moment, moment, "Patient."])
    await gated.say_private(user, "hi")
    assert spoken(await gated.next_action()) == "Patient."


async def test_the_gates_tokens_are_counted_and_a_chat_has_its_own_switch(live, model, gated):
    user = fresh_id()
    model.script([call("continue"), "An answer."])
    await gated.say_private(user, "hi")
    await gated.next_action()
    run = await live.row(
        "SELECT r.model_calls, r.input_tokens, m.session_id FROM agent_run r JOIN "
        "agent_message m ON m.id = r.message_id "
        "WHERE m.sender_id = ? AND r.state = 'finished'",
        str(user),
    )
    assert (run["model_calls"], run["input_tokens"]) == (2, 22)
    cockpit = await asyncio.to_thread(Cockpit, live)
    await asyncio.to_thread(cockpit.set_gate, run["session_id"], "false")
    cockpit.close()
    model.script(["Without a gate."])
    await gated.say_private(user, "hi")
    assert spoken(await gated.next_action()) == "Without a gate."


async def test_only_the_first_of_the_gates_calls_is_made(live, model, gated):
    user = fresh_id()
    model.script(
        [
            calls(Call("continue"), Call("no_action"), Call("get_weather", {"city": "北京"})),
            "An answer.",
        ]
    )
    await gated.say_private(user, "hi")
    assert spoken(await gated.next_action()) == "An answer."
    rows = live.rows(
        "SELECT tool_name, state FROM agent_toolcall WHERE requested_by = ? ORDER BY position",
        str(user),
    )
    assert [row["state"] for row in rows] == ["succeeded", "failed", "failed"]


# --- The gate over a restart ------------------------------------------------------


async def gated_server(start_server: Any, model: Any, account: int) -> Any:
    """A server with one account whose bot asks its gate first."""
    server = start_server()
    async with client(server, account) as bot:
        model.script(["hello"])
        await bot.say_private(fresh_id(), "hello")
        await bot.next_action()
    cockpit = await asyncio.to_thread(Cockpit, server)
    await asyncio.to_thread(cockpit.set_bot, account, timing_gate="on")
    cockpit.close()
    return server


async def test_a_wait_of_the_gate_goes_on_after_a_crash_and_the_gate_decides_again(
    start_server, model
):
    account, user = fresh_id(), fresh_id()
    server = await gated_server(start_server, model, account)
    model.script([call("wait", seconds=3)])
    async with client(server, account) as bot:
        await bot.say_private(user, "wait")
        await server.row("SELECT 1 FROM agent_toolcall WHERE state = 'running'")
    server.kill()
    server.start()
    model.script([call("continue"), "There."])
    async with client(server, account) as bot:
        assert spoken(await bot.next_action()) == "There."
    gate, planner = model.requests[-2:]
    assert results(gate) == [
        result := server.rows("SELECT result FROM agent_toolcall WHERE tool_name = 'wait'")[0][
            "result"
        ]
    ]
    assert result.startswith("等待结束：计划 3 秒，实际 ")
    assert planner.messages[1:] == [
        message for message in gate.messages[1:] if message["role"] == "user"
    ]
    steps = server.rows(
        "SELECT s.phase, s.number FROM agent_step s JOIN agent_toolcall c ON c.run_id = "
        "s.run_id GROUP BY s.id"
    )
    assert [(step["phase"], step["number"]) for step in steps] == [
        ("timing", 1),
        ("timing", 2),
        ("action", 3),
    ]
