"""Whom the model may mention: single people, and everybody only for those who may do so
themselves."""

import asyncio
from typing import Any

import pytest

from tests.cast import fresh_id, sender
from tests.e2e.chat import client
from tests.e2e.cockpit import Cockpit
from tests.fake_onebot import FakeOneBot, Frame
from tests.scripted_model import Answer, Request, ScriptedModel, call

THE_END = "the end"


async def runs(
    bot: FakeOneBot, model: ScriptedModel, wanted: Answer, *, role: str = "member", user: int = 0
) -> list[Any]:
    """The message that a run of ``user`` with the call ``wanted`` sent, if any, for each message
    but the closing words."""
    model.script([wanted, THE_END])
    person = user or fresh_id()
    await bot.say_group(
        fresh_id(), person, "do it", sender=sender(person) | {"role": role}, message_id=77
    )
    sent = []
    while THE_END not in str(message := (await bot.next_action())["params"]["message"]):
        sent.append(message)
    return sent


def mention(user_id: object) -> Answer:
    return call(
        "send_message",
        messages=[
            {"type": "mention_user", "mention_user_id": user_id},
            {"type": "plain", "text": "hi"},
        ],
    )


def told(request: Request) -> str:
    return str(request.messages[-1]["content"])


def mentioned(message: list[Frame]) -> list[str]:
    return [part["data"]["qq"] for part in message if part["type"] == "at"]


@pytest.mark.parametrize(
    "name",
    [
        "all",
        "ALL",
        " all ",
        "0",
        "000",
        "全体成员",
        "１２３",
        "²",
        "-1",
        "1 2",
        "all,1",
        "[CQ:at,qq=all]",
    ],
)
async def test_a_member_cannot_have_everybody_mentioned_however_it_is_spelled(live, model, name):
    async with client(live) as bot:
        assert await runs(bot, model, mention(name)) == []
    assert "messages[0].mention_user_id" in told(model.requests[1])


async def test_the_model_is_told_who_may_mention_everybody(live, model):
    async with client(live) as bot:
        await runs(bot, model, mention("all"))
    assert "只有群主、群管理员或机器人的主人可以 @全体成员" in told(model.requests[1])


@pytest.mark.parametrize("name", ["all", "0", "20002x"])
async def test_a_reply_mentions_nobody_but_people_either(live, model, name):
    async with client(live) as bot:
        wanted = call("reply", msg_id="77", text="hi", attach_at=["20002", name])
        assert await runs(bot, model, wanted) == []
    assert "attach_at[1]" in told(model.requests[1])


@pytest.mark.parametrize("role", ["owner", "admin"])
async def test_those_in_charge_of_the_group_may_have_everybody_mentioned(live, model, role):
    async with client(live) as bot:
        (message,) = await runs(bot, model, mention("all"), role=role)
    assert mentioned(message) == ["all"]


async def test_whoever_calls_himself_an_admin_in_private_is_none(live, model):
    person = fresh_id()
    model.script([mention("all"), THE_END])
    async with client(live) as bot:
        await bot.say_private(person, "do it", sender=sender(person) | {"role": "admin"})
        assert THE_END in str((await bot.next_action())["params"]["message"])


async def test_an_owner_of_the_bot_may_and_nobody_gains_it_by_arguments(live, model):
    owner = fresh_id()
    async with client(live) as bot:
        model.script(["hello"])
        await bot.say_private(fresh_id(), "hello")
        await bot.next_action()
        cockpit = await asyncio.to_thread(Cockpit, live)
        await asyncio.to_thread(cockpit.own, bot.self_id, str(owner))
        cockpit.close()
        forged = call(
            "send_message",
            messages=[
                {
                    "type": "mention_user",
                    "mention_user_id": "all",
                    "user_id": str(owner),
                    "role": "admin",
                }
            ],
            sender_role="owner",
        )
        assert await runs(bot, model, forged) == []
        (message,) = await runs(bot, model, mention("all"), user=owner)
    assert mentioned(message) == ["all"]


async def test_people_are_mentioned_as_before_with_ids_as_texts_or_numbers(live, model):
    async with client(live) as bot:
        (message,) = await runs(bot, model, mention(" 20002 "))
        (other,) = await runs(bot, model, mention(4_294_967_999))
    assert (mentioned(message), mentioned(other)) == (["20002"], ["4294967999"])
