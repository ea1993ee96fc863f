"""What is remembered in one chat, and shown there and nowhere else, through the whole server."""

import json
from typing import Any

from tests.cast import fresh_id
from tests.e2e.chat import client
from tests.fake_onebot import spoken
from tests.scripted_model import Call, Request, ScriptedModel, call, calls


def reminded(request: Request) -> list[str]:
    """The notes that the model was reminded of."""
    blocks = [
        m["content"]
        for m in request.messages
        if m["role"] == "user" and m["content"].startswith("⟦以下是记忆⟧")
    ]
    return [
        json.loads(line)["text"]
        for block in blocks
        for line in block.splitlines()
        if line.startswith("{")
    ]


async def ask(bot: Any, user: int, group: int, words: str) -> str:
    """What the bot answers in a group, without its mention of who asked."""
    await bot.say_group(group, user, words)
    return spoken(await bot.next_action())


async def test_a_wish_is_kept_in_its_group_and_out_of_another(live, model: ScriptedModel):
    user, group, other = fresh_id(), fresh_id(), fresh_id()
    model.script(
        [call("remember", text="希望被叫作船长"), "好的，船长", "船长你好", "你好", "你好"]
    )
    async with client(live) as bot:
        await ask(bot, user, group, "以后叫我船长")
        await ask(bot, user, group, "早上好")
        await ask(bot, user, other, "叫我什么？船长？")
        await bot.say_private(user, "船长")
        await bot.next_action()
    first, second, same_group, other_group, private = model.requests
    assert "已记住" in second.messages[-1]["content"]
    assert reminded(same_group) == ["希望被叫作船长"]
    assert [reminded(request) for request in (first, other_group, private)] == [[], [], []]
    (note,) = live.rows("SELECT * FROM agent_note WHERE owner_id = ?", str(user))
    assert (note["chat"], note["visibility"], note["said_by"]) == (
        f"group:{group}",
        "chat",
        str(user),
    )
    (said,) = live.rows("SELECT text FROM agent_message WHERE id = ?", note["message_id"])
    assert "以后叫我船长" in said["text"]


async def test_no_tool_brings_into_a_group_what_was_said_in_private_or_in_another_group(
    live, model: ScriptedModel
):
    user, group, other, secret = fresh_id(), fresh_id(), fresh_id(), fresh_id()
    async with client(live) as bot:
        model.script(
            [
                call("remember", text="暗号是芝麻", visibility="person"),
                "好",
                call("remember", text="暗号是绿豆"),
                "好",
            ]
        )
        await bot.say_private(user, "暗号是芝麻", message_id=secret)
        await bot.next_action()
        await ask(bot, user, other, "暗号是绿豆")
        notes = live.rows("SELECT id FROM agent_note WHERE said_by = ?", str(user))
        asked = [
            Call("query_memory", {"query": "暗号", "person_name": str(user)}),
            Call("query_memory", {"time_start": "2020-01-01"}),
            Call("query_person_profile", {"person_id": str(user)}),
            Call("fetch_history", {"num": 50}),
            Call("fetch_history", {"before": str(secret)}),
            Call("view_complex_message", {"msg_id": str(secret)}),
            *(Call("forget", {"note_id": note["id"]}) for note in notes),
        ]
        model.script([calls(*asked), "不知道"])
        await ask(bot, user, group, "我的暗号是什么")
    assert len(notes) == 2
    told = [str(message["content"]) for message in model.requests[-1].messages]
    assert len(told) == 3 + len(asked)
    assert not [words for words in told if "芝麻" in words or "绿豆" in words]
    assert live.rows("SELECT id FROM agent_note WHERE said_by = ?", str(user)) == notes


async def test_the_last_message_of_a_request_is_still_the_users(live, model: ScriptedModel):
    user = fresh_id()
    model.script([call("remember", text="爱吃苹果"), "好", "好"])
    async with client(live) as bot:
        for words in ("我爱吃苹果", "吃苹果吗"):
            await bot.say_private(user, words)
            await bot.next_action()
    request = model.requests[-1]
    assert request.last_text.endswith("吃苹果吗")
    assert request.messages[-2]["content"].startswith("⟦以下是记忆⟧")


async def test_a_person_is_looked_up_and_a_note_forgotten(live, model: ScriptedModel):
    user = fresh_id()
    model.script([call("remember", text="爱吃苹果"), "好"])
    async with client(live) as bot:
        await bot.say_private(user, "我爱吃苹果")
        await bot.next_action()
        (note,) = live.rows("SELECT id FROM agent_note WHERE owner_id = ?", str(user))
        wanted = [
            call("query_person_profile", person_id=str(user)),
            call("forget", note_id=note["id"]),
            call("query_memory", query="苹果"),
        ]
        model.script([*wanted, "忘了"])
        await bot.say_private(user, "忘掉它")
        await bot.next_action()
    told = [m["content"] for m in model.requests[-1].messages if m["role"] == "tool"]
    assert "爱吃苹果" in told[0]
    assert told[1:] == [f"已忘记编号 {note['id']} 的内容。", "没有找到相关的记忆。"]


async def test_what_falls_out_of_the_window_is_summarised_and_stays_on_record(
    start_server, model: ScriptedModel
):
    server = start_server(MAX_CONTEXT_MESSAGES="6", SUMMARY_AFTER_MESSAGES="2")
    user, answers = fresh_id(), 5
    summaries = []

    def answer(request: Request) -> Any:
        if "滚动摘要" in request.messages[0]["content"]:
            summaries.append(json.loads(request.messages[1]["content"]))
            return "他们数到了几"
        return "嗯"

    model.answer_with(answer)
    async with client(server) as bot:
        for number in range(answers):
            await bot.say_private(user, f"第{number}句")
            await bot.next_action()
        await server.row("SELECT * FROM agent_digest WHERE kind = 'summary'")
        await bot.say_private(user, "然后呢")
        await bot.next_action()
    assert summaries[0]["summary"] == ""
    assert summaries[0]["messages"][0]["text"] == "第0句"
    assert sum("他们数到了几" in str(m["content"]) for m in model.requests[-1].messages) == 1
    (count,) = server.rows("SELECT count(*) AS n FROM agent_message WHERE direction = 'in'")
    assert count["n"] == answers + 1


async def test_with_memory_off_nothing_is_added_to_a_request(start_server, model: ScriptedModel):
    server = start_server(MEMORY_CHARS="0")
    model.script([call("remember", text="爱吃苹果"), "好", "好"])
    user = fresh_id()
    async with client(server) as bot:
        for words in ("我爱吃苹果", "吃苹果吗"):
            await bot.say_private(user, words)
            await bot.next_action()
    assert reminded(model.requests[-1]) == []
