"""What the account is told to do in a group, by a model that obeys everybody."""

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.acting import acts, members, obey, order, switch_on, until_said
from tests.e2e.chat import client
from tests.e2e.cockpit import Cockpit
from tests.e2e.talked_into import (
    ADMIN,
    ADMIN_2,
    BOT_OWNER,
    CASES,
    MEMBER,
    OTHER,
    OWN_REMINDERS,
    OWNER,
    REFUSED_REMINDERS,
    Said,
    mute,
    remind,
)
from tests.fake_onebot import spoken, text
from tests.live_server import LiveServer
from tests.scripted_model import ScriptedModel

ASKING = ("mute_member", "mute_group", "kick_member", "set_member_title", "announce", "delete_file")
OTHERS = ("unmute_member", "recall_message", "set_member_card", "set_essence")


@pytest.fixture(scope="module")
def live(model_server: ScriptedModel) -> Iterator[LiveServer]:
    limits = {"PERSON_ANSWERS_PER_MINUTE": "0", "CHAT_ANSWERS_PER_MINUTE": "0"}
    with LiveServer(scripted_env(model_server) | limits) as server:
        yield server


@pytest.fixture
async def bot(live: LiveServer, model: ScriptedModel) -> Any:
    """A client whose account is an administrator of its groups, and belongs to ``BOT_OWNER``."""
    model.answer_with(obey)
    async with client(live) as connected:
        ranks = {OWNER: "owner", ADMIN: "admin", ADMIN_2: "admin", MEMBER: "member"}
        members(connected, {**ranks, OTHER: "member", BOT_OWNER: "member", **own(connected)})
        await connected.say_private(fresh_id(), "hello")
        await until_said(connected, "nothing to do")
        cockpit = await asyncio.to_thread(Cockpit, live)
        await asyncio.to_thread(cockpit.own, connected.self_id, str(BOT_OWNER))
        await asyncio.to_thread(switch_on, live, cockpit, *ASKING, *OTHERS)
        cockpit.close()
        yield connected


def own(bot: Any) -> dict[int, str]:
    return {bot.self_id: "admin"}


async def say(
    bot: Any, group: int, user: int, words: Any, role: str = "member", **fields: Any
) -> Any:
    sender = {"user_id": user, "nickname": f"n{user}", "role": role}
    return await bot.say_group(group, user, words, sender=sender, **fields)


async def code_of(bot: Any) -> str:
    found = re.search(r"编号 (\d{6})", said := await until_said(bot, "编号"))
    assert found, said
    return found[1]


async def test_a_mute_is_asked_about_and_made_once_an_administrator_says_yes(live, bot):
    group = fresh_id()
    await say(bot, group, OTHER, order("mute_member", user_id=str(MEMBER), minutes=10))
    code = await code_of(bot)
    await until_said(bot, "尚未执行")
    assert acts(bot) == []
    await say(bot, group, MEMBER, f"批准 {code}")
    await until_said(bot, "只有")
    assert acts(bot) == []
    await say(bot, group, ADMIN, f"批准 {code}", "admin", mention=False)
    await until_said(bot, f"已将 {MEMBER} 禁言 10 分钟")
    params = {"group_id": group, "user_id": MEMBER, "duration": 600}
    assert acts(bot) == [("set_group_ban", params)]


async def test_operators_act_from_the_page_of_the_chat(live, bot):
    group = fresh_id()
    await say(bot, group, OTHER, "do nothing")
    await until_said(bot, "nothing to do")
    (row,) = live.rows("SELECT id FROM agent_chatsession WHERE peer_id = ?", str(group))
    (said,) = live.rows(
        "SELECT id, message_id FROM agent_message WHERE session_id = ? AND direction = 'in'",
        row["id"],
    )
    cockpit = await asyncio.to_thread(Cockpit, live)
    path = f"/admin/agent/chatsession/{row['id']}"
    person = {"person": str(OTHER)}

    async def press(name: str, **form: str) -> None:
        page = f"{path}/change/"
        await asyncio.to_thread(cockpit.send_form, f"{path}/act/{name}/", form, page=page)

    await press("mute", **person, minutes="60")
    await press("unmute", **person)
    await press("kick", **person, reject_again="yes")
    await press("mute-group", on="yes")
    await press(f"recall/{said['id']}")
    await press("mute", person=str(OWNER), minutes="60")
    await press("mute", person="all", minutes="60")
    whom = {"group_id": group, "user_id": OTHER}
    assert acts(bot) == [
        ("set_group_ban", {**whom, "duration": 3600}),
        ("set_group_ban", {**whom, "duration": 0}),
        ("set_group_kick", {**whom, "reject_add_request": True}),
        ("set_group_whole_ban", {"group_id": group, "enable": True}),
        ("delete_msg", {"message_id": int(said["message_id"])}),
    ]
    done = live.rows(
        "SELECT kind, detail FROM agent_operatoract WHERE session_id = ? ORDER BY id", row["id"]
    )
    assert [one["kind"] for one in done] == [
        *("mute", "unmute", "kick", "mute_group", "recall", "mute")
    ]
    assert [one["detail"].endswith(": ok") for one in done] == [True] * 5 + [False]
    shown = await asyncio.to_thread(cockpit.page, f"{path}/change/?panel=m{said['id']}")
    assert f"{path}/act/kick/" in shown
    cockpit.close()


async def play(bot: Any, said: Said, places: dict[str, int], known: dict[str, str]) -> None:
    """Have something said, and wait for what is answered where it was said."""
    words = said.words
    for name, value in known.items():
        words = words.replace(f"{{{name}}}", value)
    if said.where == "private":
        await bot.say_private(said.user, words)
    else:
        quote = {"type": "reply", "data": {"id": known.get("question", "")}}
        parts = [*([quote] if said.quotes else []), text(f" {words}")]
        await say(bot, places[said.where], said.user, parts, said.role)
    is_first = "question" not in known
    while True:
        action = await bot.next_action()
        params = action["params"]
        if params.get("group_id", params.get("user_id")) != (places[said.where] or said.user):
            continue
        assert "message" in params, action
        said_here, is_told = spoken(action), "told:" in spoken(action)
        if not is_told and (found := re.search(r"批准（编号 (\d{6})", said_here)):
            known |= {"code": found[1], "question": action["echo"]}
            known["wide"] = found[1].translate({ord(str(one)): 0xFF10 + one for one in range(10)})
        elif is_told or not is_first:
            return


async def test_nobody_is_talked_into_acting_without_the_right_yes(live, bot):
    assert len({case.name for case in CASES}) == 60
    elsewhere = fresh_id()
    foreign = str((await say(bot, elsewhere, OTHER, "hello"))["message_id"])
    await until_said(bot, "nothing to do")
    fooled = []
    for case in CASES:
        places = {"here": fresh_id(), "elsewhere": elsewhere, "private": 0}
        known = {"bot": str(bot.self_id), "foreign": foreign}
        for said in (case.first, *case.then):
            await play(bot, said, places, known)
        if acts(bot) or (case.then and "code" not in known):
            fooled.append((case.name, acts(bot)))
            bot.actions.clear()
    assert fooled == []


REMINDERS = (
    "SELECT r.id, r.text, r.mention, r.set_by, r.state, r.kind FROM agent_reminder r "
    "JOIN agent_chatsession s ON s.id = r.session_id WHERE s.peer_id = ? ORDER BY r.id"
)


async def test_nobody_is_talked_into_reminders_for_others_or_of_others(live, bot):
    group = fresh_id()
    places = {"here": group, "elsewhere": 0, "private": 0}
    await say(bot, group, BOT_OWNER, remind(text="ours", mention=["all"]))
    await until_said(bot, "told:")
    ours = [dict(row) for row in live.rows(REMINDERS, str(group))]
    for case in REFUSED_REMINDERS:
        await play(bot, case.first, places, {"foreign": str(ours[0]["id"])})
    assert [dict(row) for row in live.rows(REMINDERS, str(group))] == ours
    for case in OWN_REMINDERS:
        await play(bot, case.first, places, {})
    rows = live.rows(REMINDERS, str(group))[1:]
    assert [(row["set_by"], row["mention"]) for row in rows] == [(str(OTHER), "")] * 2
    (all_rows,) = live.rows("SELECT count(*) AS n FROM agent_reminder WHERE text = 'spam'")
    assert all_rows["n"] == 2


async def test_a_task_that_is_due_may_do_no_more_than_who_set_it(live, bot):
    group = fresh_id()
    inner = remind(kind="task", when="PT1S", text="again")
    await say(bot, group, OTHER, remind(kind="task", when="PT1S", text=inner))
    await until_said(bot, "told: 已设置")
    assert "10 分钟" in await until_said(bot, "told:")
    await say(bot, group, OTHER, remind(kind="task", when="PT1S", text=mute()))
    await until_said(bot, "told: 已设置")
    await code_of(bot)
    assert acts(bot) == []
    words = "@all [CQ:at,qq=all] [@all]"
    await say(bot, group, OTHER, remind(when="PT1S", text=words))
    await until_said(bot, "told: 已设置")
    while "Reminder: " not in spoken(said := await bot.next_action()):
        pass
    assert spoken(said) == f"Reminder: {words}"
    assert "at" not in {part["type"] for part in said["params"]["message"]}
    rows = live.rows(REMINDERS, str(group))
    assert [row["kind"] for row in rows] == ["task", "task", "text"]


async def test_an_administrator_decides_by_a_quote_and_an_owner_anywhere(live, bot):
    group = fresh_id()
    for kicked in (MEMBER, OTHER):
        await say(bot, group, OTHER, order("kick_member", user_id=str(kicked)))
        while "批准（编号" not in spoken(asked := await bot.next_action()):
            pass
        assert asked["params"]["message"][0]["type"] == "reply"
        await until_said(bot, "told:")
        if kicked == MEMBER:
            quote = {"type": "reply", "data": {"id": asked["echo"]}}
            await say(bot, group, ADMIN_2, [quote, text("批准")], "admin", mention=False)
        else:
            code = re.search(r"编号 (\d{6})", spoken(asked))
            await bot.say_private(BOT_OWNER, f"批准 {code[1] if code else ''}")
        await until_said(bot, f"已将 {kicked} 移出本群")
    assert [params["user_id"] for _, params in acts(bot)] == [MEMBER, OTHER]
    found = live.rows(
        "SELECT a.decided_by, c.state, c.verdict FROM agent_approval a JOIN agent_toolcall c "
        "ON c.id = a.call_id JOIN agent_chatsession s ON s.id = a.session_id WHERE s.peer_id = ? "
        "ORDER BY a.id",
        str(group),
    )
    assert [(one["decided_by"], one["state"], one["verdict"]) for one in found] == [
        (str(ADMIN_2), "succeeded", "approved"),
        (str(BOT_OWNER), "succeeded", "approved"),
    ]


async def test_an_act_that_a_kill_cut_off_is_not_made_again(start_server, model):
    server = start_server(FROST_FAULT="frame_written")
    cockpit = await asyncio.to_thread(Cockpit, server)
    await asyncio.to_thread(
        cockpit.fill, "/admin/agent/manners/add/", name="acts", member_commands="admins"
    )
    cockpit.close()
    account, group = fresh_id(), fresh_id()
    async with client(server, account) as bot:
        members(bot, {ADMIN: "admin", MEMBER: "member", account: "admin"}, deaf=True)
        parts = [text(f" /mute {MEMBER} 10m")]
        await say(bot, group, MEMBER, parts, mention=False)
        await say(bot, group, ADMIN, parts, "admin", mention=False)
        assert (await bot.next_action())["action"] == "set_group_ban"
        await bot.close_code()
    server.restart(FROST_FAULT="")
    async with client(server, account) as bot:
        members(bot, {ADMIN: "admin", MEMBER: "member", account: "admin"})
        await until_said(bot, "请勿重复")
        assert acts(bot) == []
    (call,) = server.rows("SELECT state, tool_name FROM agent_toolcall")
    assert call == {"state": "unknown", "tool_name": "mute_member"}
