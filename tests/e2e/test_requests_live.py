"""Requests to be let in on a real server: by rules, from the page, by owners in private, and over a
kill."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from agent.runtime.request_desk import WAIT_SECONDS
from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.brisk import BriskServer
from tests.e2e.chat import client
from tests.e2e.cockpit import Cockpit
from tests.fake_onebot import FakeOneBot, Frame, failed, ok, spoken
from tests.live_server import LiveServer
from tests.scripted_model import ScriptedModel

OWNER, GROUP = 7_000_001, 30_003
LIST = "/admin/agent/joinrequest/"
ANSWERS = ("set_friend_add_request", "set_group_add_request")
ROW = "SELECT * FROM agent_joinrequest WHERE account = ? AND user_id = ? AND state = ?"


@pytest.fixture(scope="module")
def live(model_server: ScriptedModel) -> Iterator[LiveServer]:
    with LiveServer(scripted_env(model_server)) as server:
        yield server


@pytest.fixture
def cockpit(live: LiveServer) -> Iterator[Cockpit]:
    found = Cockpit(live)
    yield found
    found.close()


def obey(bot: FakeOneBot, answer: Frame | None = None) -> None:
    """Answer what is decided over requests with ``answer``, else with success."""
    usual = bot.usual_answer
    bot.answer_with(
        lambda action: (answer or ok({})) if action["action"] in ANSWERS else usual(action)
    )


@pytest.fixture
async def bot(live: LiveServer, cockpit: Cockpit) -> AsyncIterator[FakeOneBot]:
    """A client that lets people in, of an account that belongs to ``OWNER``."""
    async with client(live) as connected:
        obey(connected)
        await live.row("SELECT id FROM onebot_bot WHERE self_id = ?", str(connected.self_id))
        await asyncio.to_thread(cockpit.own, connected.self_id, str(OWNER))
        yield connected


async def ask(bot: FakeOneBot, flag: Any = "f", **fields: Any) -> int:
    """Somebody asks to join; who."""
    user = fields.setdefault("user_id", fresh_id())
    usual = {"request_type": "group", "sub_type": "add", "group_id": GROUP, "comment": "hi"}
    await bot.tell("request", **(usual | {"flag": flag} | fields))
    return int(user)


async def row(live: LiveServer, bot: FakeOneBot, user: int, state: str = "waiting") -> Frame:
    return await live.row(ROW, str(bot.self_id), str(user), state)


def press(cockpit: Cockpit, pk: int, act: str, reason: str = "") -> None:
    cockpit.send_form(f"{LIST}{pk}/act/{act}/", {"reason": reason}, page=f"{LIST}{pk}/change/")


async def decision(bot: FakeOneBot) -> Frame:
    """The next decision that the client is told, whatever notes go before it."""
    while (action := await bot.next_action())["action"] not in ANSWERS:
        pass
    return action


async def note(bot: FakeOneBot) -> tuple[Frame, str]:
    """The next note to the owner."""
    action = await bot.next_action()
    assert action["params"]["user_id"] == OWNER
    return action, spoken(action)


async def quote(live: LiveServer, bot: FakeOneBot, who: int, words: str, told: str) -> None:
    """Quote what was ``told`` last."""
    said = await live.row(
        "SELECT message_id FROM agent_message WHERE text = ? AND message_id != '' "
        "AND direction = 'out' ORDER BY id DESC",
        told,
    )
    reply = {"type": "reply", "data": {"id": said["message_id"]}}
    await bot.say_private(who, [reply, {"type": "text", "data": {"text": words}}])


@pytest.mark.parametrize("flag", [1795228533, "1795228533", "90212|30003|2|false"])
async def test_one_that_waits_is_approved_from_its_page(live, cockpit, bot, flag):
    user = await ask(bot, flag)
    waiting = await row(live, bot, user)
    _, told = await note(bot)
    assert f"#{waiting['id']}" in told
    await asyncio.to_thread(press, cockpit, waiting["id"], "approve")
    action = await bot.next_action()
    assert (action["action"], action["params"]) == (
        "set_group_add_request",
        {"flag": flag, "approve": True, "sub_type": "add", "type": "add", "reason": ""},
    )
    assert type(action["params"]["flag"]) is type(flag)
    decided = await row(live, bot, user, "approved")
    assert decided["decided_by"] == "admin"
    await live.row(
        "SELECT 1 FROM agent_operatoract WHERE kind = 'let_in' AND author_name = 'admin'"
    )
    await ask(bot, flag, user_id=user)  # as clients do once they are back
    await bot.no_action()


async def test_nobody_waits_for_an_account_that_is_away(live, cockpit):
    account = fresh_id()
    async with client(live, account) as bot:
        obey(bot)
        user = await ask(bot)
        waiting = await row(live, bot, user)
    await live.row("SELECT 1 FROM onebot_bot WHERE self_id = ? AND NOT online", str(bot.self_id))
    async with asyncio.timeout(WAIT_SECONDS - 1):
        await asyncio.to_thread(press, cockpit, waiting["id"], "refuse")
    assert (await row(live, bot, user))["decision"] == "refuse"
    async with client(live, account) as bot:
        assert (await bot.next_action())["params"]["flag"] == "f"


async def test_many_are_refused_from_the_list_with_words(live, cockpit, bot):
    users = [await ask(bot, f"m{number}", request_type="friend") for number in range(3)]
    rows = [await row(live, bot, user) for user in users]
    await note(bot)
    form = {"action": "refuse", "reason": "full", "_selected_action": [one["id"] for one in rows]}
    await asyncio.to_thread(cockpit.save, LIST, form)
    for user in users:
        action = await decision(bot)
        assert (action["action"], action["params"]["approve"]) == (ANSWERS[0], False)
        assert (await row(live, bot, user, "refused"))["reason"] == "full"


async def test_a_rule_lets_in_who_knows_the_word(live, cockpit, bot):
    form = {"name": "word", "words": "frost", "action": "approve", "account": bot.self_id}
    rule = {"kind": "join", "chat_kind": "", "enabled": "on", "position": 100}
    await asyncio.to_thread(cockpit.save, "/admin/agent/requestrule/add/", form | rule)
    knows = await ask(bot, "r1", comment="问题：?\n答案：Frost", request_type="group")
    action = await bot.next_action()
    assert (action["params"]["flag"], action["params"]["approve"]) == ("r1", True)
    decided = await row(live, bot, knows, "approved")
    assert (decided["decided_by"], bool(decided["rule_id"])) == ("word", True)
    other = await ask(bot, "r2", comment="问题：frost?\n答案：x")
    await note(bot)
    await row(live, bot, other)


async def test_an_owner_refuses_by_a_quote_and_a_stranger_cannot(live, model, bot):
    user = await ask(bot, "q1", comment="ads")
    waiting = await row(live, bot, user)
    _, told = await note(bot)
    stranger = fresh_id()
    model.script(["who are you?"])
    await bot.say_private(stranger, f"批准 #{waiting['id']}")
    assert spoken(await bot.next_action()) == "who are you?"
    await quote(live, bot, OWNER, "拒绝 广告", told)
    action = await bot.next_action()
    assert (action["params"]["approve"], action["params"]["reason"]) == (False, "广告")
    assert spoken(await bot.next_action()) == f"#{waiting['id']}：{OWNER} 已拒绝。"
    assert (await row(live, bot, user, "refused"))["decided_by"] == str(OWNER)
    await bot.say_private(OWNER, f"批准 #{waiting['id']}")
    assert spoken(await bot.next_action()) == f"#{waiting['id']}：{OWNER} 已拒绝。"
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("answer", "state", "words"),
    [
        (failed(100, "消息已被处理"), "expired", "消息已被处理"),
        (failed(1200, "No such request"), "waiting", "No such request"),
        (failed(1404, "不支持的Api"), "waiting", "cannot answer requests"),
    ],
)
async def test_what_a_client_refuses_is_not_repeated_and_stands_there(
    live, cockpit, bot, answer, state, words
):
    obey(bot, answer)
    user = await ask(bot, str(fresh_id()))
    waiting = await row(live, bot, user)
    await note(bot)
    await asyncio.to_thread(press, cockpit, waiting["id"], "approve")
    await bot.next_action()
    found = await live.row(f"{ROW} AND reason != ''", str(bot.self_id), str(user), state)
    assert (words in found["reason"], found["decision"]) == (True, "")
    await bot.no_action()


async def test_five_hundred_at_once_are_one_row_each_and_few_notes(live, bot):
    begun = time.monotonic()
    for number in range(500):
        await ask(bot, number, user_id=number + 1)
    count = "SELECT count(*) AS n FROM agent_joinrequest WHERE account = ?"
    await live.row(f"{count} HAVING count(*) = 500", str(bot.self_id))
    _, told = await note(bot)
    assert "还有" in told
    await live.row(f"{count} AND told_at IS NULL HAVING count(*) = 0", str(bot.self_id))
    sent = [one for one in bot.actions if one["params"].get("user_id") == OWNER]
    assert 2 ** len(sent) - 2 <= time.monotonic() - begun  # each waits twice as long as the last


async def test_what_cannot_be_answered_and_what_is_over_is_not_approved(live, cockpit, bot):
    odd = await ask(bot, {"a": 1})
    waiting = await row(live, bot, odd)
    huge = await ask(bot, "x" * 2**20)
    assert (await row(live, bot, huge))["flag"] is None
    gone = await ask(bot, "g", group_id=40_004)
    await note(bot)
    await asyncio.to_thread(press, cockpit, waiting["id"], "approve")
    assert (await row(live, bot, odd))["decided_by"] == ""
    await asyncio.to_thread(press, cockpit, waiting["id"], "refuse")
    await row(live, bot, odd, "refused")
    await bot.tell(
        "notice",
        notice_type="group_decrease",
        sub_type="kick_me",
        group_id=40_004,
        user_id=bot.self_id,
    )
    assert "no longer" in (await row(live, bot, gone, "expired"))["reason"]
    late = await ask(bot, "l")
    await row(live, bot, late)
    await bot.tell(
        "notice", notice_type="group_increase", group_id=GROUP, user_id=late, operator_id=1
    )
    assert "elsewhere" in (await row(live, bot, late, "expired"))["reason"]
    assert not any(one["action"] in ANSWERS for one in bot.actions)


async def test_a_kill_between_claim_and_frame_is_said_and_not_repeated(start_server, model_server):
    server = start_server(**scripted_env(model_server))
    cockpit, account = await asyncio.to_thread(Cockpit, server), fresh_id()
    form = {"name": "all", "action": "approve", "enabled": "on", "position": 1, "kind": "friend"}
    await asyncio.to_thread(cockpit.save, "/admin/agent/requestrule/add/", form)
    cockpit.close()
    server.restart(FROST_FAULT="request_claimed")
    async with client(server, account) as bot:
        user = await ask(bot, "k1", request_type="friend")
        assert await asyncio.to_thread(server.exit_code, 30) == -signal.SIGKILL
    server.restart(FROST_FAULT="")
    async with client(server, account) as bot:
        obey(bot)
        found = await server.row(f"{ROW} AND decision = ''", str(account), str(user), "waiting")
        assert "Nobody knows" in found["reason"]
        await bot.no_action()


async def test_a_decision_at_another_process_is_told_by_the_one_that_has_the_account(
    model_server, migrated_url
):
    env = scripted_env(model_server) | {"DATABASE_URL": migrated_url}
    with BriskServer(env) as server, BriskServer(env) as other:
        async with client(server) as bot:
            obey(bot)
            asked = await row(server, bot, await ask(bot, 5))
            cockpit = await asyncio.to_thread(Cockpit, other)
            await asyncio.to_thread(press, cockpit, asked["id"], "refuse", "full")
            cockpit.close()
            told = (await bot.next_action())["params"]
            assert (told["flag"], told["approve"], told["reason"]) == (5, False, "full")
