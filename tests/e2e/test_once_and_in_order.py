"""Every message is answered once, and a chat's messages in the order they came."""

import asyncio
import sqlite3
import time
from typing import Any

import pytest

from tests.cast import fresh_id
from tests.e2e.chat import client, tell, words
from tests.fake_onebot import MISSING, spoken
from tests.scripted_model import held

# --- Once -----------------------------------------------------------------------


async def test_a_message_told_again_is_answered_once(live, model):
    """Checklist 65."""
    model.script(["once"])
    account, user = fresh_id(), fresh_id()
    async with client(live, account) as bot:
        event = await bot.say_private(user, "hi")
        await bot.say_private(user, "hi", message_id=event["message_id"])
        assert spoken(await bot.next_action()) == "once"
        await bot.say_private(user, "hi", message_id=str(event["message_id"]))
        await bot.no_action(user=user)
    async with client(live, account) as bot:
        await bot.say_private(user, "hi", message_id=event["message_id"])
        await bot.no_action(user=user)
    assert (
        len(
            live.rows("SELECT id FROM agent_message WHERE sender_id = ? AND text = 'hi'", str(user))
        )
        == 1
    )


async def test_a_message_told_by_two_sockets_is_answered_once(live, model):
    """Checklist 65."""
    model.script(["once"])
    account, user = fresh_id(), fresh_id()
    async with client(live, account) as universal, client(live, account, role="Event") as events:
        event = await universal.say_private(user, "hi")
        await events.say_private(user, "hi", message_id=event["message_id"])
        await events.heartbeat()
        assert spoken(await universal.next_action()) == "once"
        await live.row(
            "SELECT id FROM onebot_bot WHERE self_id = ? AND last_heartbeat_at IS NOT NULL",
            str(account),
        )
        await universal.no_action(user=user)


async def test_a_message_told_again_after_a_restart_is_not_answered_again(start_server, model):
    """Checklist 65."""
    model.script(["once"])
    server, account, user = start_server(), fresh_id(), fresh_id()
    async with client(server, account) as bot:
        event = await bot.say_private(user, "hi")
        await bot.next_action()
        await server.row(
            "SELECT id FROM agent_message WHERE sender_id = ? AND state = 'answered'", str(user)
        )
        server.kill()
    await asyncio.to_thread(server.start)
    async with client(server, account) as bot:
        await bot.say_private(user, "hi", message_id=event["message_id"])
        await bot.no_action(user=user)


@pytest.mark.parametrize("message_id", [-1, 0, "0", "-1", None, MISSING])
async def test_messages_without_a_usable_id_are_all_answered(live, model, message_id):
    """Checklist 64, 66."""
    model.answer_with(words)
    user = fresh_id()
    async with client(live) as bot:
        for number in range(5):
            await bot.say_private(user, f"message {number}", message_id=message_id)
        assert [spoken(await bot.next_action()) for _ in range(5)] == [
            f"message {number}" for number in range(5)
        ]


async def test_one_message_id_in_several_chats_means_several_messages(live, model):
    """Checklist 67."""
    model.answer_with(words)
    async with client(live) as bot:
        for group in (fresh_id(), fresh_id(), None):
            await tell(
                bot,
                f"[CQ:at,qq={bot.self_id}]in {group}",
                user=fresh_id(),
                group=group,
                message_id=4711,
            )
            assert spoken(await bot.next_action()).strip() == f"in {group}"


async def test_a_bots_own_words_told_back_are_not_recorded_twice(live, model):
    model.script(["my words"])
    account, user = fresh_id(), fresh_id()
    async with client(live, account) as bot:
        await bot.say_private(user, "hi")
        action = await bot.next_action()
        row = await live.row(
            "SELECT message_id FROM agent_message WHERE echo = ? AND state = 'delivered'",
            action["echo"],
        )
        told_back: dict[str, Any] = {
            "post_type": "message_sent",
            "target_id": user,
            "message_id": int(row["message_id"]),
        }
        await tell(bot, "my words", user=account, **told_back)
        await bot.no_action(user=user)
    assert len(live.rows("SELECT id FROM agent_message WHERE text = 'my words'")) == 1


# --- In order -------------------------------------------------------------------


async def test_a_chats_messages_are_answered_in_the_order_they_came_whatever_their_time(
    live, model
):
    """Checklist 68."""
    model.answer_with(words)
    group, now = fresh_id(), int(time.time())
    async with client(live) as bot:
        for number in range(10):
            await bot.say_group(group, fresh_id(), f"message {number}", time=now - number)
        answers = [spoken(await bot.next_action()) for _ in range(10)]
    assert answers == [f" message {number}" for number in range(10)]


async def test_a_chats_messages_are_answered_one_at_a_time(live, model):
    model.script([held("first"), "second"])
    user = fresh_id()
    async with client(live) as bot:
        await bot.say_private(user, "one")
        await bot.say_private(user, "two")
        await live.row(
            "SELECT id FROM agent_message WHERE sender_id = ? AND text = 'two' AND state = "
            "'waiting'",
            str(user),
        )
        assert len(await model.wait_for_requests(1)) == 1
        model.release()
        assert [spoken(await bot.next_action()), spoken(await bot.next_action())] == [
            "first",
            "second",
        ]


async def test_a_chat_that_waits_for_its_model_holds_no_other_up(live, model):
    """Checklist 68."""
    model.script([held("slow")])
    slow, quick = fresh_id(), fresh_id()
    async with client(live) as bot:
        await bot.say_private(slow, "think hard")
        await model.wait_for_requests(1)
        await bot.say_private(slow, "and this")
        model.script(["quick", "after that"])
        await bot.say_private(quick, "hi")
        assert (await bot.next_action())["params"]["user_id"] == quick
        model.release()
        assert [spoken(await bot.next_action()), spoken(await bot.next_action())] == [
            "slow",
            "after that",
        ]


async def test_a_chat_whose_client_is_silent_holds_no_other_up(live, model):
    model.answer_with(words)
    slow, quick = fresh_id(), fresh_id()
    async with client(live) as bot:
        bot.stay_silent()
        await bot.say_private(slow, "one")
        first = await bot.next_action()
        await bot.say_private(slow, "two")
        await bot.say_private(quick, "other")
        assert spoken(await bot.next_action()) == "other"
        await bot.answer(first)
        assert spoken(await bot.next_action()) == "two"


async def test_a_message_is_judged_at_receipt_and_answered_however_long_it_waited(
    start_server, model
):
    model.script([held("cut off"), held("busy"), "patience pays"])
    server, account, user = start_server(), fresh_id(), fresh_id()
    async with client(server, account) as bot:
        await bot.say_private(user, "first")
        await bot.say_private(user, "in time")
        await server.row(
            "SELECT id FROM agent_message WHERE text = 'in time' AND state = 'waiting'"
        )
        await model.wait_for_requests(1)
        server.kill()
    with sqlite3.connect(server.data_dir / "frostagent.sqlite3", timeout=30) as database:
        database.execute("UPDATE agent_message SET happened_at = datetime(happened_at, '-1 day')")
    await asyncio.to_thread(server.start)
    async with client(server, account) as bot:
        await model.wait_for_requests(2)
        model.release(2)
        assert [spoken(await bot.next_action()), spoken(await bot.next_action())] == [
            "busy",
            "patience pays",
        ]
