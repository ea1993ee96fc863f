"""Answers longer than one message: in parts, or as a merged forward."""

import asyncio
import random
import signal
from collections.abc import Callable

import pytest

from agent.domain.answer_parts import split_answer
from tests.cast import fresh_id
from tests.e2e.chat import client, verdict
from tests.e2e.cockpit import Cockpit
from tests.environment import PATIENCE
from tests.fake_onebot import Frame, failed, ok, spoken
from tests.live_server import LiveServer
from tests.scripted_model import Call, calls, held


def paragraphs(count: int, length: int) -> str:
    """Words in which nothing repeats."""
    chance = random.Random(count)
    signs = [chr(number) for number in range(0x4E00, 0x9000)]
    return "\n\n".join("".join(chance.choices(signs, k=length)) + "。" for _ in range(count))


LONG = paragraphs(9, 600)
"""Three parts as manners are without a row."""
PARTS = split_answer(LONG, 2_000)
HUGE = paragraphs(14, 1_500)
"""A merged forward."""


async def states(server: LiveServer, peer: int, count: int) -> list[tuple[int | None, str]]:
    """Part and state of the messages to ``peer``, once ``count`` of them are settled."""
    query = (
        "FROM agent_message m JOIN agent_chatsession s ON s.id = m.session_id "
        "WHERE s.peer_id = ? AND m.direction = 'out' AND m.settled_at IS NOT NULL"
    )
    await server.row(f"SELECT count(*) {query} HAVING count(*) >= ?", str(peer), count)
    rows = server.rows(f"SELECT m.part, m.state {query} ORDER BY m.id", str(peer))
    return [(row["part"], row["state"]) for row in rows]


async def test_each_part_waits_for_the_answer_to_the_one_before(live, model):
    """Checklist 84."""
    model.script([LONG])
    group = fresh_id()
    async with client(live) as bot:
        bot.stay_silent()
        asked = await bot.say_group(group, fresh_id(), "tell me all")
        for number, part in enumerate(PARTS):
            action = await bot.next_action()
            assert len(bot.actions) == number + 1
            kinds = [segment["type"] for segment in action["params"]["message"]]
            assert kinds == (["text"] if number else ["at", "text"])
            assert spoken(action).strip() == part
            await bot.answer(action)
    assert asked["group_id"] == group
    assert await states(live, group, 3) == [(n, "delivered") for n in (1, 2, 3)]


async def test_later_requests_show_the_parts_as_one_message(live, model):
    model.script([LONG, "short"])
    user = fresh_id()
    async with client(live) as bot:
        await bot.say_private(user, "tell me all")
        heard = [spoken(await bot.next_action()) for _ in PARTS]
        await bot.say_private(user, "and now?")
        assert spoken(await bot.next_action()) == "short"
    assert heard == PARTS
    said = [one["content"] for one in model.requests[1].messages if one["role"] == "assistant"]
    assert said == [LONG]


async def test_after_a_refused_part_no_other_is_sent(live, model):
    model.script([LONG])
    group = fresh_id()
    async with client(live) as bot:
        bot.answer_with(lambda action: failed() if len(bot.actions) == 2 else ok())
        await bot.say_group(group, fresh_id(), "tell me all")
        assert await verdict(live, group) == ("failed", "mention")
        refused = [(1, "delivered"), (2, "failed"), (3, "failed")]
        assert (await states(live, group, 3))[:3] == refused
        assert len(bot.actions) == 3  # the last is an apology


async def test_a_part_without_an_answer_does_not_hold_the_others_up(impatient, model):
    model.script([LONG])
    group = fresh_id()
    async with client(impatient) as bot:
        bot.answer_with(lambda action: None if len(bot.actions) == 2 else ok())
        await bot.say_group(group, fresh_id(), "tell me all")
        expected = [(1, "delivered"), (2, "unknown"), (3, "delivered")]
        assert await states(impatient, group, 3) == expected
        assert len(bot.actions) == 3


def is_refused(action: Frame, how: Frame) -> Frame:
    return how if "forward" in action["action"] else ok()


async def test_a_very_long_answer_is_a_merged_forward(live, model):
    """Checklist 84."""
    model.script([HUGE])
    group = fresh_id()
    async with client(live) as bot:
        await bot.say_group(group, fresh_id(), "tell me all")
        action = await bot.next_action()
        assert (action["action"], action["params"]["group_id"]) == ("send_group_forward_msg", group)
        nodes = [node["data"] for node in action["params"]["messages"]]
        said = [node["content"][0]["data"]["text"] for node in nodes]
        assert said == split_answer(HUGE, 2_000)
        assert {node["user_id"] for node in nodes} == {str(bot.self_id)}
        assert await states(live, group, 1) == [(0, "delivered")]
        assert len(bot.actions) == 1


@pytest.mark.parametrize("how", [failed(), failed(1404, "不支持的Api"), failed(404, "")])
async def test_the_parts_are_sent_where_a_forward_is_refused(live, model, how):
    """Checklist 84."""
    model.script([HUGE])
    user = fresh_id()
    async with client(live) as bot:
        bot.answer_with(lambda action: is_refused(action, how))
        await bot.say_private(user, "tell me all")
        parts = split_answer(HUGE, 2_000)
        assert (await bot.next_action())["action"] == "send_private_forward_msg"
        assert [spoken(await bot.next_action()) for _ in parts] == parts
        expected = [(0, "failed"), *((n, "delivered") for n in range(1, len(parts) + 1))]
        assert await states(live, user, len(parts) + 1) == expected


async def test_a_forward_without_an_answer_is_not_sent_again(impatient, model):
    """Checklist 93."""
    model.script([HUGE])
    user = fresh_id()
    async with client(impatient) as bot:
        bot.stay_silent()
        await bot.say_private(user, "tell me all")
        assert await states(impatient, user, 1) == [(0, "unknown")]
        assert len(bot.actions) == 1


async def test_an_answer_that_only_looks_like_codes_arrives_as_it_is(live, model):
    """Checklist 82."""
    words = "[CQ:at,qq=all]&<" + LONG[:2_500]
    model.script([words])
    async with client(live) as bot:
        await bot.say_private(fresh_id(), "hi")
        said = [spoken(await bot.next_action()) for _ in range(2)]
        assert said == split_answer(words, 2_000)


# --- Crashes ----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("boundary", ["frame_written", "answer_received"])
async def test_a_crash_between_parts_repeats_none_and_loses_none(start_server, model, boundary):
    """Checklist 84."""
    model.script([LONG])
    server, user, account = start_server(FROST_FAULT=boundary), fresh_id(), fresh_id()
    async with client(server, account) as bot:
        if boundary == "frame_written":
            bot.stay_silent()
        await bot.say_private(user, "tell me all")
        heard = [spoken(await bot.next_action())]
        assert await asyncio.to_thread(server.exit_code, PATIENCE) == -signal.SIGKILL
    await asyncio.to_thread(server.restart, FROST_FAULT="")
    async with client(server, account) as bot:
        assert await states(server, user, 3) == [
            (1, "unknown"),
            (2, "delivered"),
            (3, "delivered"),
        ]
        assert heard + [spoken(action) for action in bot.actions] == PARTS
        assert await verdict(server, user) == ("answered", "private")
    assert server.rows("SELECT final_text FROM agent_run") == [{"final_text": LONG}]


@pytest.mark.slow
async def test_a_crash_while_a_forward_is_under_way_sends_nothing_again(start_server, model):
    """Checklist 93."""
    model.script([HUGE])
    server, user, account = start_server(FROST_FAULT="frame_written"), fresh_id(), fresh_id()
    async with client(server, account) as bot:
        bot.stay_silent()
        await bot.say_private(user, "tell me all")
        await bot.next_action()
        assert await asyncio.to_thread(server.exit_code, PATIENCE) == -signal.SIGKILL
    await asyncio.to_thread(server.restart, FROST_FAULT="")
    async with client(server, account) as bot:
        assert await states(server, user, 1) == [(0, "unknown")]
        assert await verdict(server, user) == ("answered", "private")
        assert bot.actions == []


async def test_an_answer_planned_while_the_account_is_away_is_sent_when_it_is_back(live, model):
    model.script([held(HUGE)])
    user, account = fresh_id(), fresh_id()
    async with client(live, account) as bot:
        await bot.say_private(user, "tell me all")
        await model.wait_for_requests(1)
    model.release()
    async with client(live, account) as bot:
        bot.answer_with(lambda action: is_refused(action, failed(1404)))
        parts = split_answer(HUGE, 2_000)
        assert (await bot.next_action())["action"] == "send_private_forward_msg"
        assert [spoken(await bot.next_action()) for _ in parts] == parts


# --- Beside calls -----------------------------------------------------------------


@pytest.fixture
def talkative(start_server: Callable[..., LiveServer]) -> LiveServer:
    """A server whose row says that words beside calls are sent."""
    server = start_server()
    cockpit = Cockpit(server)
    cockpit.fill("/admin/agent/manners/add/", name="aside", says_beside_calls="true")
    cockpit.close()
    return server


@pytest.mark.slow
async def test_words_beside_a_call_are_said_before_it_is_made(talkative, model):
    weather = Call("get_weather", {"city": "Paris"})
    speaking = Call("send_message", {"messages": [{"type": "plain", "text": "sent"}]})
    model.script(
        [
            calls(weather, content="我来查一下"),
            calls(speaking, content="not said"),
            "It rains",
            "next",
        ]
    )
    user = fresh_id()
    async with client(talkative) as bot:
        await bot.say_private(user, "how is it?")
        heard = [spoken(await bot.next_action()) for _ in range(3)]
        assert heard == ["我来查一下", "sent", "It rains"]
        await bot.say_private(user, "and now?")
        assert spoken(await bot.next_action()) == "next"
    said = [one["content"] for one in model.requests[-1].messages if one["role"] == "assistant"]
    assert said == heard


async def test_a_long_reply_is_sent_in_messages_of_the_largest_part(live, model):
    text = paragraphs(3, 4_000)
    user = fresh_id()
    async with client(live) as bot:
        asked = fresh_id()
        model.script([calls(Call("reply", {"msg_id": str(asked), "text": text})), ""])
        await bot.say_private(user, "tell me all", message_id=asked)
        parts = [part for one in text.split("\n\n") for part in split_answer(one, 2_000)]
        assert [spoken(await bot.next_action()) for _ in parts] == parts
        assert await states(live, user, len(parts)) == [(None, "delivered")] * len(parts)
        await model.wait_for_requests(2)


@pytest.mark.slow
async def test_the_parts_of_a_tools_message_are_not_sent_again_after_a_crash(start_server, model):
    text = paragraphs(3, 1_500)
    say = Call("send_message", {"messages": [{"type": "plain", "text": text}]})
    server = start_server()
    model.script([calls(say), "that was all"])
    user = fresh_id()
    async with client(server) as bot:
        account = int(bot.self_id)
        bot.stay_silent()
        await bot.say_private(user, "tell me all")
        await bot.next_action()
        server.kill()
    server.restart()
    async with client(server, account) as bot:
        assert spoken(await bot.next_action()) == "that was all"
        assert [state for _, state in await states(server, user, 4)] == [
            *("unknown", "failed", "failed", "delivered"),
        ]
