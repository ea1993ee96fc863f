"""What the model hears of messages that are quoted and forwarded, over a real socket."""

import json

import pytest

from tests.cast import fresh_id
from tests.e2e.chat import client
from tests.fake_onebot import failed, ok, text
from tests.scripted_model import Request

NODE = {"user_id": 20002, "nickname": "Ann"}
CONTENT = [text("a"), {"type": "face", "data": {"id": "1"}}]
SHAPES = {
    "NapCat": {"messages": [{"sender": NODE, "message": CONTENT, "message_format": "array"}]},
    "LLBot": {"messages": [{"sender": NODE, "content": CONTENT}]},
    "standard": {
        "message": [{"type": "node", "data": {**NODE, "user_id": "20002", "content": CONTENT}}]
    },
    "go-cqhttp": {"messages": [{"sender": NODE, "content": "a[CQ:face,id=1]"}]},
}


def answers(**by_name):
    def answering(action):
        name = action["action"]
        if name in by_name:
            return ok(by_name[name])
        return failed(1404) if name.startswith("get_") else ok()

    return answering


def reply(message_id: object) -> dict:
    return {"type": "reply", "data": {"id": str(message_id)}}


def forward(forward_id: str) -> dict:
    return {"type": "forward", "data": {"id": forward_id}}


def fenced(request: Request) -> list[dict]:
    """The values in the fences after the last words."""
    _, _, rest = request.last_text.partition("\n⟦")
    return [json.loads(line) for line in rest.split("\n") if line.startswith("{")]


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_forward_has_the_same_words_in_every_dialect(live, model, shape):
    """Checklist 103."""
    model.script(["ok"])
    async with client(live) as bot:
        bot.answer_with(answers(get_forward_msg=SHAPES[shape]))
        await bot.say_private(fresh_id(), [forward("7412345678901234567")])
        await bot.next_action()
        asked = [one["params"] for one in bot.actions if one["action"] == "get_forward_msg"]
    assert asked == [{"id": "7412345678901234567", "message_id": "7412345678901234567"}]
    sender = {"user_id": "20002", "name": "Ann"}
    assert fenced(model.requests[-1]) == [{"sender": sender, "text": "a[表情:1]"}]


@pytest.mark.parametrize("here", [True, False])
async def test_a_quoted_message_that_is_of_another_chat_is_not_shown(live, model, here):
    model.script(["ok"])
    group = fresh_id()
    said = {
        "message_type": "group",
        "group_id": group if here else group + 1,
        "sender": NODE,
        "message": [text("words")],
    }
    async with client(live) as bot:
        bot.answer_with(answers(get_msg=said))
        await bot.say_group(group, fresh_id(), [reply(5), text(" what is this?")])
        await bot.next_action()
    (shown,) = fenced(model.requests[-1])
    assert shown.get("text") == ("words" if here else None)
    assert shown.get("note") == (None if here else "客户端没有给出被引用的消息")


async def test_a_quoted_message_of_which_the_client_names_no_chat_is_of_the_chat_that_asks(
    live, model
):
    model.script(["ok"])
    async with client(live) as bot:
        bot.answer_with(answers(get_msg={"sender": NODE, "message": [text("words")]}))
        await bot.say_group(fresh_id(), fresh_id(), [reply(5), text(" what is this?")])
        await bot.next_action()
    assert [one["text"] for one in fenced(model.requests[-1])] == ["words"]


async def test_quoted_words_stand_in_later_requests_as_in_the_first(live, model):
    group, person = fresh_id(), fresh_id()
    model.script(["one", "two"])
    async with client(live) as bot:
        earlier = await bot.say_group(group, person, "今晚吃火锅", mention=False)
        await bot.say_group(group, person, [reply(earlier["message_id"]), text(" 好吗？")])
        await bot.next_action()
        await bot.say_group(group, person, "谢谢")
        await bot.next_action()
    first, second = model.requests
    assert "今晚吃火锅" in first.last_text
    assert second.messages[1] == first.messages[-1]


async def test_what_is_written_by_hand_is_history(live, model):
    """Checklist 70."""
    user = fresh_id()
    model.script(["周五"])
    async with client(live) as bot:
        await bot.tell(
            "message_sent",
            message_type="private",
            message_id=77,
            user_id=bot.self_id,
            target_id=user,
            sender={"user_id": bot.self_id, "nickname": "me"},
            message=[text("我周五回来")],
        )
        await bot.say_private(user, "什么时候回来？")
        await bot.next_action()
    roles = [(one["role"], one["content"]) for one in model.requests[-1].messages]
    assert ("assistant", "我周五回来") in roles


async def test_a_mention_without_words_is_answered_with_the_messages_before_it_in_view(live, model):
    group = fresh_id()
    model.script(["火锅", "不客气"])
    async with client(live) as bot:
        await bot.say_group(group, fresh_id(), "今晚吃什么", mention=False)
        await bot.say_group(group, fresh_id(), [])
        await bot.next_action(20)
        await bot.say_group(group, fresh_id(), "谢谢")
        await bot.next_action()
    first, second = model.requests
    assert "今晚吃什么" in first.messages[-2]["content"]
    assert first.messages[-2]["content"].startswith("⟦以下是群里的其他消息⟧")
    assert "今晚吃什么" not in json.dumps(second.messages, ensure_ascii=False)
