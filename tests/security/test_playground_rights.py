"""What somebody gets by speaking in his own playground as whom he likes: no more than he may do
himself, at the moment that he speaks."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.later_server import LaterServer
from tests.fake_onebot import FakeOneBot, at, spoken, text
from tests.scripted_model import ScriptedModel, call
from tests.security.people import accounts, run
from tests.security.players import Player, fetch_token, playground, sign_in

_SET = """
import json, sys, django
django.setup()
from django.contrib.auth.models import Group, Permission, User
from tools.models import ToolConfig
given = json.load(sys.stdin)
for name, fields in given["tools"].items():
    row = ToolConfig.objects.get(name=name)
    for field, value in fields.items():
        setattr(row, field, value)
    row.save()
for name, groups in given["users"].items():
    user = User.objects.get(username=name)
    user.groups.set(Group.objects.filter(name__in=groups))
    user.user_permissions.set(Permission.objects.filter(codename="use_playground"))
"""
ME, GROUP = 777, 40_001
OPERATOR, OWNER_OF_CHATS = ["operator"], ["chat_owner"]
LISTED = {
    "owners": {"allowed": "owners"},
    "people": {"allowed": "people", "allowed_ids": str(ME)},
    "groups": {"allowed": "groups", "allowed_ids": str(GROUP)},
    "group_admins": {"allowed": "group_admins", "allowed_ids": ""},
}


@pytest.fixture(scope="module")
def live(model_server: ScriptedModel) -> Iterator[LaterServer]:
    limits = {"LANGUAGE_CODE": "en", "PERSON_ANSWERS_PER_MINUTE": "100"}
    with LaterServer(scripted_env(model_server) | limits) as server:
        accounts(server, ann="operator", bob="operator", cat="operator")
        yield server


async def arrange(
    live: LaterServer, tools: dict[str, Any] | None = None, **users: list[str]
) -> None:
    """Have tools decide so, and users be in these groups; each may use the playground."""
    await asyncio.to_thread(run, live, _SET, {"tools": tools or {}, "users": users})


async def own(person: Player) -> None:
    """Say that the bot of the playground is one's own."""
    answer = await asyncio.to_thread(person.send, "/admin/playground/owners/", owners=str(ME))
    assert answer.status_code == 200


@pytest.fixture
async def ann(live: LaterServer) -> Player:
    """An operator, and in her playground the owner of the bot."""
    await arrange(live, ann=OPERATOR)
    person = await sign_in(live, "ann")
    await own(person)
    return person


@pytest.fixture
async def bot(live: LaterServer, ann: Player) -> AsyncIterator[FakeOneBot]:
    async with playground(live, ann, await fetch_token(ann)) as connected:
        yield connected


async def say(bot: FakeOneBot, words: str, group: int = GROUP) -> str:
    """The answer to what the owner of the group says there to the bot."""
    sender = {"user_id": ME, "nickname": "Me", "role": "owner"}
    await bot.say_group(group, ME, [at(bot.self_id), text(words)], sender=sender)
    return spoken(await bot.next_action())


async def call_tool(bot: FakeOneBot, model: ScriptedModel, name: str, **arguments: Any) -> str:
    """The result of a call that the owner of the group had the model make, as the model read it."""
    model.script([call(name, **arguments), "so it is"])
    await say(bot, f"please call {name}")
    return str(model.requests[-1].messages[-1]["content"])


@pytest.mark.parametrize("allowed", LISTED)
async def test_a_made_up_sender_may_use_no_tool_of_others(live, model, bot, allowed):
    await arrange(live, {"get_weather": LISTED[allowed]})
    assert "天气" in await call_tool(bot, model, "get_weather", city="Bern")
    await arrange(live, ann=OWNER_OF_CHATS)  # counts for the next message
    assert "没有权限" in await call_tool(bot, model, "get_weather", city="Bern")
    await arrange(live, {"get_weather": {"allowed": "everyone"}})
    assert "天气" in await call_tool(bot, model, "get_weather", city="Bern")


async def test_nobody_is_asked_for_an_approval_that_nobody_can_give(live, model, bot):
    await arrange(live, ann=OWNER_OF_CHATS)
    told = await call_tool(bot, model, "transfer", amount=5, to="nobody")
    assert "没有权限" in told
    assert "没有人能批准" in told
    assert not live.rows("SELECT * FROM agent_approval")


async def test_no_word_in_the_playground_decides_once_the_right_is_gone(live, model, bot, ann):
    group = fresh_id()  # in that of the other tests a stranger has said so much that nobody listens
    model.script([call("transfer", amount=5, to="me"), "I asked"])
    (code,) = re.findall(r"approve (\d{6})", await say(bot, "transfer!", group))
    await bot.next_action()
    question = await live.row(
        "SELECT message_id FROM agent_message WHERE direction = 'out' AND state = 'delivered' "
        "AND text LIKE ?",
        f"%{code}%",
    )
    await arrange(live, ann=OWNER_OF_CHATS)
    quote = {"type": "reply", "data": {"id": question["message_id"]}}
    for words in ([text(f"批准 {code}")], [quote, at(bot.self_id), text("批准")]):
        await bot.say_group(group, ME, words)
        assert "主人" in spoken(await bot.next_action())
    (approval,) = live.rows("SELECT id, state FROM agent_approval WHERE code = ?", code)
    page = f"/admin/agent/approval/{approval['id']}/change/"
    form = {"decision": "approve", "changed_arguments": ""}
    assert (await asyncio.to_thread(ann.send, page, **form)).status_code == 403
    assert live.rows("SELECT state FROM agent_approval WHERE code = ?", code) == [
        {"state": "waiting"}
    ]
    assert live.lines("transfers") == []


async def test_commands_and_limits_are_those_of_a_stranger(live, model, bot):
    group = fresh_id()
    assert "silent here" in await say(bot, "/off 5m", group)
    assert "speak here again" in await say(bot, "/on", group)
    assert "without a limit" in await say(bot, "/status", group)
    await arrange(live, ann=OWNER_OF_CHATS)
    for refused in ("/off", "/on", "/allow 5", "/persona x", "/model x", "/budget 5"):
        assert "Only owners" in await say(bot, refused, group)
    assert "Only my owners" in await say(bot, "/reset", group)
    assert "a minute" in await say(bot, "/status", group)


async def test_a_user_without_tools_may_still_play_for_himself(live, model, bot):
    await arrange(live, ann=OWNER_OF_CHATS)
    model.script(["hello"])
    await bot.say_private(ME, "hi")
    assert spoken(await bot.next_action()) == "hello"
    await bot.say_private(ME, "/reset")
    assert "Nothing was deleted" in spoken(await bot.next_action())
