"""An account that cannot speak in a group: it keeps silent there until it can."""

import time

import pytest

from tests.cast import fresh_id
from tests.e2e.chat import client, verdict
from tests.fake_onebot import FakeOneBot, Frame, failed, ok, spoken
from tests.scripted_model import held

PAUSED = (
    "SELECT 1 FROM agent_message m JOIN agent_chatsession s ON s.id = m.session_id "
    "WHERE s.peer_id = ? AND m.state = 'silent' AND m.reason = 'paused'"
)
QQ_MUTED = 'EventChecker Failed: NTEvent EventRet:\n{"result": 120, "errMsg": ""}'


def refusing(bot: FakeOneBot, refusal: Frame, **answers: Frame) -> None:
    """Have the client refuse messages, and answer other actions as told."""
    bot.answer_with(
        lambda action: (
            answers.get(action["action"])
            or (refusal if action["action"].startswith("send_") else bot.usual_answer(action))
        )
    )


async def ban(bot: FakeOneBot, group: int, sub_type: str = "ban", **fields: object) -> None:
    usual = {"user_id": bot.self_id, "operator_id": 1, "duration": 0}
    await bot.tell(
        "notice", notice_type="group_ban", sub_type=sub_type, group_id=group, **usual | fields
    )


async def speaks_again(bot: FakeOneBot, model, group: int) -> None:
    model.script(["back"])
    await bot.say_group(group, fresh_id(), "hi")
    assert spoken(await bot.next_action()).strip() == "back"


async def test_a_refusal_for_a_mute_pauses_the_group_until_the_mute_is_lifted(live, model):
    """Checklist 94: one refused message, then no model call and no frame."""
    group = fresh_id()
    async with client(live) as bot:
        refusing(bot, failed(1200, QQ_MUTED))
        model.script(["hello"])
        await bot.say_group(group, fresh_id(), "hi")
        await bot.next_action()
        await live.row(
            "SELECT 1 FROM agent_chatsession WHERE peer_id = ? AND pause_reason = 'muted'",
            str(group),
        )
        await bot.say_group(group, fresh_id(), "hello?")
        await live.row(PAUSED, str(group))
        bot.answer_again()
        await ban(bot, group, "lift_ban")
        await speaks_again(bot, model, group)
    assert len(model.requests) == 2


@pytest.mark.parametrize(
    ("end", "said"),
    [("lift_ban", "muted"), ("group_increase", "left")],
)
async def test_notices_pause_and_lift(live, model, end, said):
    """Checklist 94."""
    group = fresh_id()
    async with client(live) as bot:
        if said == "muted":
            await ban(bot, group, duration=600)
        else:
            await bot.tell(
                "notice",
                notice_type="group_decrease",
                sub_type="kick_me",
                group_id=group,
                user_id=bot.self_id,
            )
        await bot.say_group(group, fresh_id(), "hi")
        assert await verdict(live, group) == ("silent", "paused")
        row = await live.row("SELECT * FROM agent_chatsession WHERE peer_id = ?", str(group))
        assert (row["pause_reason"], row["paused_until"] is not None) == (said, said == "muted")
        if end == "lift_ban":
            await ban(bot, group, "lift_ban")
        else:
            await bot.tell(
                "notice",
                notice_type="group_increase",
                sub_type="invite",
                group_id=group,
                user_id=bot.self_id,
            )
        await speaks_again(bot, model, group)


@pytest.mark.parametrize("role", ["member", "admin"])
async def test_a_mute_of_the_whole_group_silences_all_but_its_managers(live, model, role):
    group = fresh_id()
    async with client(live) as bot:
        refusing(bot, ok(), get_group_member_info=ok({"role": role, "user_id": bot.self_id}))
        await ban(bot, group, user_id=0, duration=-1)
        if role == "admin":
            await speaks_again(bot, model, group)
            return
        await live.row(
            "SELECT 1 FROM agent_chatsession WHERE peer_id = ? AND pause_reason = 'all_muted'",
            str(group),
        )
        await bot.say_group(group, fresh_id(), "hi")
        assert await verdict(live, group) == ("silent", "paused")
        await ban(bot, group, "lift_ban", user_id=0)
        await speaks_again(bot, model, group)


async def test_the_end_of_a_mute_is_asked_for_and_one_that_ended_unseen_is_lifted(live, model):
    group, account = fresh_id(), fresh_id()
    end = int(time.time()) + 600
    async with client(live, account) as bot:
        member = {"role": "member", "user_id": account, "shut_up_timestamp": end}
        refusing(bot, failed(120, ""), get_group_member_info=ok(member))
        model.script(["hello"])
        await bot.say_group(group, fresh_id(), "hi")
        await live.row(
            "SELECT 1 FROM agent_chatsession WHERE peer_id = ? AND paused_until IS NOT NULL",
            str(group),
        )
    async with client(live, account, greet=False) as bot:
        refusing(bot, ok(), get_group_member_info=ok({**member, "shut_up_timestamp": 0}))
        await bot.lifecycle()
        await live.row(
            "SELECT 1 FROM agent_chatsession WHERE peer_id = ? AND pause_reason IS NULL", str(group)
        )
        await speaks_again(bot, model, group)


async def test_a_message_that_is_refused_for_its_quote_is_sent_once_without_it(start_server, model):
    """Checklist 95."""
    server = start_server(ENABLE_REPLY_IN_GROUP_MSG="true")
    model.script(["hello"])
    async with client(server, headers={"User-Agent": "Lagrange.OneBot/1"}) as bot:
        bot.answer_with(
            lambda action: (
                failed(200, "")
                if any(part["type"] == "reply" for part in action["params"].get("message", ()))
                else bot.usual_answer(action)
            )
        )
        await bot.say_group(fresh_id(), fresh_id(), "hi")
        first, second = await bot.next_action(), await bot.next_action()
        assert [part["type"] for part in first["params"]["message"]] == ["reply", "at", "text"]
        assert [part["type"] for part in second["params"]["message"]] == ["at", "text"]
        row = await server.row(
            "SELECT * FROM agent_message WHERE direction = 'out' AND state = 'delivered'"
        )
    assert row["detail"] == "retcode 200; without the quote: delivered"


async def test_a_mute_stops_the_answer_under_way(live, model):
    """It costs no further model call, and nothing is sent for it later."""
    group = fresh_id()
    model.script([held("too late")])
    async with client(live) as bot:
        await bot.say_group(group, fresh_id(), "hi")
        await model.wait_for_requests(1)
        await ban(bot, group, duration=600)
        await live.row(PAUSED, str(group))
        model.release()
        await bot.no_action(user=fresh_id())
