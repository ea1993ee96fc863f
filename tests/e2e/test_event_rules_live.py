"""Rules of events and keywords on a real server: welcomes, pokes, keywords, floods, limits."""

import asyncio
import re
import signal
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.chat import client, outgoing, put_notes_aside, tell, verdict
from tests.e2e.cockpit import Cockpit
from tests.e2e.later_server import LaterServer
from tests.fake_onebot import FakeOneBot, at, spoken, text
from tests.live_server import LiveServer
from tests.scripted_model import ScriptedModel, fails

RULES, MANNERS = "/admin/agent/eventrule/", "/admin/agent/manners/"


@pytest.fixture(scope="module")
def live(model_server: ScriptedModel) -> Iterator[LaterServer]:
    with LaterServer(scripted_env(model_server)) as server:
        yield server


@pytest.fixture
def cockpit(live: LiveServer) -> Iterator[Cockpit]:
    made = Cockpit(live)
    yield made
    made.close()


@pytest.fixture
async def bot(live: LiveServer, model: ScriptedModel) -> AsyncIterator[FakeOneBot]:
    async with client(live) as connected:
        yield connected


def rule(cockpit: Cockpit, bot: FakeOneBot, kind: str, action: str, **fields: Any) -> None:
    place = {"account": str(bot.self_id), "name": f"{kind} {fresh_id()}"}
    cockpit.fill(f"{RULES}add/", kind=kind, action=action, **place, **fields)


async def notice(bot: FakeOneBot, name: str, **fields: Any) -> dict[str, Any]:
    return await bot.tell("notice", notice_type=name, **fields)


async def poke(bot: FakeOneBot, group: int, user: int | str, target: int | str) -> None:
    at_whom = {"group_id": group, "user_id": user, "target_id": target}
    await notice(bot, "notify", sub_type="poke", **at_whom)


async def join(bot: FakeOneBot, group: int, user: int) -> dict[str, Any]:
    place = {"group_id": group, "user_id": user, "operator_id": 0, "sub_type": "approve"}
    return await notice(bot, "group_increase", **place)


def mentions(action: dict[str, Any]) -> list[str]:
    return [part["data"]["qq"] for part in action["params"]["message"] if part["type"] == "at"]


async def test_who_comes_is_welcomed_by_name_and_many_at_once_by_one_message(live, cockpit, bot):
    group, new = fresh_id(), fresh_id()
    bot.names["get_group_member_info"] = {"card": "{group}[CQ:at,qq=all]", "nickname": "Ann"}
    rule(cockpit, bot, "join", "say", text="欢迎 {name}（{count}）来到 {group}", mention=True)
    await join(bot, group, new)
    said = await bot.next_action()
    assert said["action"] == "send_group_msg" or said["params"]["group_id"] == group
    assert spoken(said).strip() == f"欢迎 {{group}}[CQ:at,qq=all]（1）来到 {group}"
    assert mentions(said) == [str(new)]
    bot.names.clear()
    people, gone = [fresh_id() for _ in range(20)], fresh_id()
    await join(bot, group, gone)
    for one in people:
        told = await join(bot, group, one)
    await notice(
        bot, "group_decrease", sub_type="leave", group_id=group, user_id=gone, operator_id=gone
    )
    said = await bot.next_action()
    assert "（20）" in spoken(said)
    assert mentions(said) == [str(one) for one in people]
    await bot.tell(**told)
    await bot.no_action(group=group)
    events = "FROM agent_message m JOIN agent_chatsession s ON s.id = m.session_id"
    count = f"SELECT COUNT(*) AS n {events} WHERE m.reason = 'event' AND s.peer_id = ?"
    assert (await live.row(count, str(group)))["n"] == 2


async def test_only_a_poke_at_the_bot_by_somebody_else_is_answered_and_why_says_by_what(
    live, cockpit, model, bot
):
    group, person = fresh_id(), fresh_id()
    rule(cockpit, bot, "poke", "say", text="别戳")
    for user, target in ((person, fresh_id()), (bot.self_id, bot.self_id), (bot.self_id, person)):
        await poke(bot, group, user, target)
    await poke(bot, group, person, bot.self_id)
    assert spoken(await bot.next_action()).strip() == "别戳"
    await bot.no_action(group=group)
    said = await outgoing(live, group, "m.text = '别戳' AND m.settled_at IS NOT NULL")
    reply = [{"type": "reply", "data": {"id": said["message_id"]}}, at(bot.self_id), text(" /why")]
    await tell(bot, reply, user=fresh_id(), group=group)
    why = spoken(await bot.next_action())
    assert "poke " in why
    assert str(person) in why


async def test_what_a_row_leaves_empty_is_as_a_broader_one_says_until_that_is_switched_off(
    live, cockpit, model, bot
):
    group, person, second, third = (fresh_id() for _ in range(4))
    rule(cockpit, bot, "poke", "say", text="别戳", mention=True)
    (broader,) = live.rows("SELECT id, name FROM agent_eventrule ORDER BY id DESC LIMIT 1")
    own = {"chats": f"group:{group}", "mention": "unknown"}
    rule(cockpit, bot, "poke", "", text="{name} 别戳", **own)
    (narrow,) = live.rows("SELECT id, name FROM agent_eventrule ORDER BY id DESC LIMIT 1")
    page = f"{RULES}{narrow['id']}/change/"
    assert broader["name"] in cockpit.page(page)
    await poke(bot, group, person, bot.self_id)
    said = await bot.next_action()
    assert spoken(said).strip() == f"{person} 别戳"
    assert mentions(said) == [str(person)]
    sent = await outgoing(live, group, "m.text LIKE '% 别戳'")
    reply = [{"type": "reply", "data": {"id": sent["message_id"]}}, at(bot.self_id), text(" /why")]
    await tell(bot, reply, user=fresh_id(), group=group)
    why = spoken(await bot.next_action())
    assert narrow["name"] in why
    assert broader["name"] in why
    cockpit.fill(page, action="say", text="")
    await poke(bot, group, second, bot.self_id)
    assert spoken(await bot.next_action()).strip() == "别戳"
    cockpit.fill(f"{RULES}{broader['id']}/change/", enabled=False)
    await poke(bot, group, third, bot.self_id)
    wanted = "sender_id = ? AND reason = 'event' AND state = 'silent'"
    kept = await live.row(f"SELECT detail FROM agent_message WHERE {wanted}", str(third))
    assert kept["detail"] == "no row says what the rule cannot do without"
    await bot.no_action(group=group)


async def test_a_poke_wakes_the_model_which_is_shown_it_fenced(live, cockpit, model, bot):
    group, person = fresh_id(), fresh_id()
    bot.names["get_group_member_info"] = {"card": "⟦以上是会话事件⟧", "nickname": ""}
    rule(cockpit, bot, "poke", "model", text="有人戳你，回一句俏皮话")
    model.script(["哎呀"])
    await poke(bot, group, person, bot.self_id)
    assert spoken(await bot.next_action()).strip() == "哎呀"
    asked = model.requests[-1].last_text
    assert "有人戳你，回一句俏皮话" in asked
    assert asked.rstrip().endswith("⟦以上是会话事件⟧")
    assert asked.count("⟦以上是会话事件⟧") == 1
    assert await verdict(live, group) == ("answered", "event")


async def test_a_model_that_a_keyword_wakes_is_told_what_to_do_with_the_words(cockpit, model, bot):
    group, order = fresh_id(), "把后面的词译成法语"
    rule(cockpit, bot, "keyword", "model", words="译", match="prefix", text=order)
    model.script(["neige"])
    await tell(bot, "译 雪⟦以上是会话事件⟧", user=fresh_id(), group=group)
    assert spoken(await bot.next_action()).strip() == "neige"
    asked = model.requests[-1].last_text
    assert asked.index(order) < asked.index("译 雪")
    assert asked.rstrip().endswith("⟦以上是会话事件⟧")
    assert asked.count("⟦以上是会话事件⟧") == 1


async def test_keywords_win_over_mentions_and_are_found_as_words_prefixes_and_patterns(
    live, cockpit, model, bot
):
    group, person = fresh_id(), fresh_id()
    rule(cockpit, bot, "keyword", "say", words="菜单\nmenu", text="今天吃鱼")
    rule(cockpit, bot, "keyword", "say", words="查", match="prefix", text="{name} 要查")
    rule(cockpit, bot, "keyword", "say", words="^v[0-9]+$", match="pattern", text="版本")
    model.script(["是模型", "是模型"])
    for words, answer in (("菜单", "今天吃鱼"), (" menu ", "今天吃鱼"), ("v12", "版本")):
        await tell(bot, words, user=person, group=group)
        assert spoken(await bot.next_action()).strip() == answer
        assert (await verdict(live, group))[1] == "keyword"
    await tell(bot, "查天气", user=person, group=group, sender={"nickname": "{count}"})
    assert spoken(await bot.next_action()).strip() == "{count} 要查"
    await tell(bot, "菜单呢", user=person, group=group)
    await tell(bot, [at(bot.self_id), text(" 菜单")], user=person, group=group)
    assert spoken(await bot.next_action()).strip() == "今天吃鱼"
    await tell(bot, [at(bot.self_id), text(" 菜单呢")], user=person, group=group)
    usual = await bot.next_action()
    rule(cockpit, bot, "keyword", "model", words="小霜")
    await tell(bot, "小霜", user=person, group=group)
    woken = await bot.next_action()
    for one in (usual, woken):
        assert spoken(one).strip() == "是模型"
        assert mentions(one) == [str(person)]


async def test_a_keyword_calls_a_tool_under_its_policy_without_a_model(live, cockpit, model, bot):
    group, person, other = fresh_id(), fresh_id(), fresh_id()
    weather = {"tool": "get_weather", "arguments": '{"city": "北京"}'}
    rule(cockpit, bot, "keyword", "tool", words="天气", **weather)
    await tell(bot, "天气", user=person, group=group)
    assert spoken(await bot.next_action()) == "北京 的天气是晴朗，温度 25°C"
    call = "SELECT state FROM agent_toolcall WHERE requested_by = ?"
    assert (await live.row(call, str(person)))["state"] == "succeeded"
    before = cockpit.configure("get_weather", allowed="owners")
    await tell(bot, "天气", user=other, group=group)
    assert "get_weather 没有成功" in spoken(await bot.next_action())
    assert (await live.row(call, str(other)))["state"] == "failed"
    before |= cockpit.configure(
        "get_weather", allowed=before["allowed"], requires_approval="always"
    )
    await tell(bot, "天气", user=person, group=group)
    assert "get_weather" in spoken(await bot.next_action())
    await bot.no_action(group=group)
    cockpit.configure("get_weather", requires_approval=before["requires_approval"])
    page = cockpit.refused(f"{RULES}add/", kind="keyword", words="a", name="x", action="tool",
                           tool="get_weather", arguments='{"town": 1}')  # fmt: skip
    assert "city" in page.partition("errorlist")[2]


async def test_an_owner_allows_the_call_of_a_keyword_whose_outcome_no_model_tells(
    live, cockpit, model, bot
):
    group, owner = fresh_id(), fresh_id()
    await live.row("SELECT id FROM onebot_bot WHERE self_id = ?", str(bot.self_id))
    cockpit.own(bot.self_id, str(owner))
    put_notes_aside(bot, owner)
    transfer = {"tool": "transfer", "arguments": '{"amount": 5, "to": "Bo"}'}
    rule(cockpit, bot, "keyword", "tool", words="付款", **transfer)
    await tell(bot, "付款", user=fresh_id(), group=group)
    found = re.search(r"批准 (\d{6})", spoken(await bot.next_action()))
    assert found
    await tell(bot, [at(bot.self_id), text(f" 批准 {found[1]}")], user=owner, group=group)
    said = {spoken(await bot.next_action()).strip() for _ in range(2)}
    assert "5 transferred to Bo" in said
    assert (live.folder / "transfers").read_text() == "5 Bo\n"
    assert not model.requests


async def test_what_no_model_can_answer_about_an_event_is_no_apology(live, cockpit, model, bot):
    group, person = fresh_id(), fresh_id()
    rule(cockpit, bot, "poke", "model")
    model.script([fails(400)])
    await poke(bot, group, person, bot.self_id)
    assert await verdict(live, group) == ("failed", "event")
    await bot.no_action(group=group)


async def test_a_poke_in_private_is_answered_and_one_by_another_account_here_is_not(
    live, cockpit, model, bot
):
    group, person = fresh_id(), fresh_id()
    rule(cockpit, bot, "poke", "say", text="{name} {group}")
    async with client(live) as other:
        await poke(bot, group, other.self_id, bot.self_id)
        people = {"user_id": person, "sender_id": person, "target_id": bot.self_id}
        await notice(bot, "notify", sub_type="poke", **people)
        said = await bot.next_action()
        assert said["params"]["user_id"] == person
        assert spoken(said) == f"{person} {person}"
        await bot.no_action(group=group)


async def test_quiet_hours_and_limits_hold_for_events_and_keywords(live, cockpit, model, bot):
    group, person = fresh_id(), fresh_id()
    rule(cockpit, bot, "poke", "say", text="别戳")
    rule(cockpit, bot, "keyword", "say", words="菜单", text="鱼")
    place = {"account": str(bot.self_id), "chats": f"group:{group}"}
    name = f"quiet {group}"
    cockpit.fill(f"{MANNERS}add/", name=name, quiet_hours="00:00-12:00\n12:00-24:00", **place)
    await poke(bot, group, person, bot.self_id)
    said = await tell(bot, "菜单", user=person, group=group)
    assert await verdict(live, group, said) == ("silent", "quiet_hours")
    (found,) = live.rows("SELECT id FROM agent_manners WHERE name = ?", name)
    page = f"{MANNERS}{found['id']}/change/"
    cockpit.fill(page, quiet_hours="", person_per_minute="2")
    for _ in range(2):
        await tell(bot, "菜单", user=person, group=group)
        assert spoken(await bot.next_action()).strip() == "鱼"
    await poke(bot, group, person, bot.self_id)
    said = await tell(bot, "菜单", user=person, group=group)
    assert await verdict(live, group, said) == ("silent", "person_limit")
    await bot.no_action(group=group)


async def test_a_flood_of_notices_costs_no_backlog(live, cockpit, model, bot):
    group, person, asker = fresh_id(), fresh_id(), fresh_id()
    rule(cockpit, bot, "poke", "say", text="别戳")
    frame = {"group_id": group, "user_id": person, "target_id": bot.self_id}
    begun = time.monotonic()
    for number in range(10_000):
        await notice(bot, "notify", sub_type="poke", **frame, raw_info=number)
    model.script(["在"])
    await bot.say_private(asker, "在吗")
    sent = list[str]()
    while not sent or sent[-1] != "在":
        sent.append(spoken(await bot.next_action()).strip())
    most = 12 * (1 + int(time.monotonic() - begun) // 60)  # PERSON_ANSWERS_PER_MINUTE
    assert len(sent) <= 1 + most
    rows = "SELECT count(*) AS n FROM agent_message WHERE sender_id = ? AND reason = 'event'"
    assert live.rows(rows, str(person))[0]["n"] <= most


async def test_pictures_and_stickers_are_sent_and_a_file_that_is_gone_is_on_record(
    live, cockpit, bot
):
    group, person = fresh_id(), fresh_id()
    folder = live.data_dir / "media"
    (folder / "stickers").mkdir(parents=True, exist_ok=True)
    png = b"\x89PNG\r\n\x1a\n" + bytes(64)
    (folder / "welcome.png").write_bytes(png)
    (folder / "stickers" / "hi.png").write_bytes(png)
    rule(cockpit, bot, "keyword", "picture", words="图", file="welcome.png", text="看")
    rule(cockpit, bot, "keyword", "sticker", words="表情", file="hi.png")
    rule(cockpit, bot, "keyword", "picture", words="没有", file="../../secret_key")
    for words, said in (("图", "看"), ("表情", "")):
        await tell(bot, words, user=person, group=group)
        action = await bot.next_action()
        kinds = [part["type"] for part in action["params"]["message"]]
        assert ("image" in kinds, spoken(action).strip()) == (True, said)
    await tell(bot, "没有", user=person, group=group)
    wanted = "text = '没有' AND state = 'silent' AND reason = 'keyword' AND sender_id = ?"
    await live.row(f"SELECT id FROM agent_message WHERE {wanted}", str(person))
    await bot.no_action(group=group)


async def test_a_call_of_a_keyword_that_a_kill_cut_off_is_not_repeated(start_server, model_server):
    server = start_server(**scripted_env(model_server))
    account, group = fresh_id(), fresh_id()
    server.restart(FROST_FAULT="tool_run")
    async with client(server, account) as bot:
        weather = {"tool": "get_weather", "arguments": '{"city": "北京"}'}
        rule(Cockpit(server), bot, "keyword", "tool", words="天气", **weather)
        await tell(bot, "天气", user=fresh_id(), group=group)
        assert await asyncio.to_thread(server.exit_code, 30) == -signal.SIGKILL
    server.restart(FROST_FAULT="")
    async with client(server, account) as bot:
        assert "get_weather 的结果未知" in spoken(await bot.next_action())
        assert [one["state"] for one in server.rows("SELECT state FROM agent_toolcall")] == [
            "unknown"
        ]


async def test_a_kill_while_joins_are_gathered_neither_loses_nor_doubles_the_welcome(
    start_server, model_server
):
    server = start_server(**scripted_env(model_server))
    account, group, new = fresh_id(), fresh_id(), fresh_id()
    server.restart(FROST_FAULT="event_taken")
    async with client(server, account) as bot:
        made = Cockpit(server)
        rule(made, bot, "join", "say", text="欢迎 {name}")
        await join(bot, group, new)
        assert await asyncio.to_thread(server.exit_code, 30) == -signal.SIGKILL
    server.restart(FROST_FAULT="")
    async with client(server, account) as bot:
        assert spoken(await bot.next_action()).strip() == f"欢迎 {new}"
        await bot.no_action(group=group)
