"""Pictures that the client has to be asked for: behind expired links, in quoted and in forwarded
messages."""

import base64

import pytest

from tests.cast import fresh_id
from tests.e2e.chat import client, words
from tests.e2e.seeing import VISION, answered, image, shown, text
from tests.fake_onebot import Frame, failed, ok
from tests.file_server import FileServer, sends
from tests.pictures import BLUE, GREEN, colour_of, picture

EXPIRED = sends(b'{"retcode":-5503007}', "application/json", status=400)


def asked(bot) -> list[str]:
    return [action["action"] for action in bot.actions if action["action"].startswith("get_")]


def answers(**by_name):
    """Answer the actions of these names with this data; every other ``get_`` fails, everything else
    succeeds."""

    def answering(action):
        name = action["action"]
        if name in by_name:
            return ok(by_name[name])
        return failed(1404) if name.startswith("get_") else ok()

    return answering


@pytest.mark.parametrize("form", ["url", "base64"])
async def test_an_expired_link_is_refreshed_through_get_image(
    live, model, file_server: FileServer, form
):
    old, new = (
        file_server.serve("/old", EXPIRED),
        file_server.serve("/new", sends(picture("PNG", BLUE))),
    )
    fresh = {
        "url": {"url": new},
        "base64": {"base64": base64.b64encode(picture("PNG", BLUE)).decode()},
    }[form]
    model.script(["蓝"], model=VISION)
    model.script(["ok"])
    async with client(live) as bot:
        bot.answer_with(answers(get_image={"file": "/root/.config/QQ/a.png", **fresh}))
        seen, _ = await answered(bot, model, [text(f"{form}?"), image(old)])
        assert asked(bot) == ["get_image"]
        assert bot.actions[0]["params"] == {"file": "a.png"}
    assert colour_of(shown(seen)[0][1]) == "blue"


async def test_an_expired_link_is_refreshed_through_get_msg_when_get_image_is_of_no_use(
    live, model, file_server: FileServer
):
    old, new = (
        file_server.serve("/old", EXPIRED),
        file_server.serve("/new", sends(picture("PNG", GREEN))),
    )
    message = [text("x"), image(old, file="other.png"), image(new)]
    model.script(["绿"], model=VISION)
    model.script(["ok"])
    async with client(live) as bot:
        bot.answer_with(answers(get_image={"file": "/etc/passwd"}, get_msg={"message": message}))
        seen, _ = await answered(bot, model, [text("fresh?"), image(old)], message_id=-1287653344)
        assert asked(bot) == ["get_image", "get_msg"]
        assert bot.actions[1]["params"] == {"message_id": -1287653344}
    assert colour_of(shown(seen)[0][1]) == "green"


async def test_a_client_that_knows_no_fresh_link_costs_only_the_picture(
    live, model, file_server: FileServer
):
    model.script(["sorry"])
    async with client(live) as bot:
        (request,) = await answered(
            bot, model, [text("see"), image(file_server.serve("/old", EXPIRED))]
        )
    assert words(request) == "see[图片]"


async def test_a_picture_in_a_quoted_message_is_seen(live, model, file_server: FileServer):
    group, url = fresh_id(), file_server.serve("/a", sends(picture("PNG", BLUE)))
    model.script(["蓝"], model=VISION)
    model.script(["it is blue"])
    async with client(live) as bot:
        earlier = await bot.say_group(group, fresh_id(), [image(url)], mention=False)
        quote = {"type": "reply", "data": {"id": str(earlier["message_id"])}}
        await bot.say_group(group, fresh_id(), [quote, text(" quoted?")])
        await bot.next_action(20)
        assert asked(bot) == []  # the message is on record
    seen, request = model.requests
    assert colour_of(shown(seen)[0][1]) == "blue"
    assert words(request).endswith(f"[回复:{earlier['message_id']}] quoted? 【图片内容】: 蓝")


async def test_a_quoted_message_that_is_not_on_record_is_asked_for(
    live, model, file_server: FileServer
):
    url = file_server.serve("/a", sends(picture("PNG", GREEN)))
    model.script(["绿"], model=VISION)
    model.script(["ok"])
    async with client(live) as bot:
        bot.answer_with(answers(get_msg={"message": f"[CQ:image,file=a.png,url={url}]"}))
        seen, _ = await answered(
            bot, model, [{"type": "reply", "data": {"id": "77"}}, text("old one?")]
        )
        assert asked(bot) == ["get_msg"]
    assert colour_of(shown(seen)[0][1]) == "green"


async def test_a_picture_of_another_chat_is_not_seen(live, model, file_server: FileServer):
    said = {"message_type": "private", "sender": {"user_id": fresh_id()}}
    url = file_server.serve("/a", sends(picture("PNG", GREEN)))
    model.script(["ok"])
    async with client(live) as bot:
        bot.answer_with(answers(get_msg=said | {"message": [image(url)]}))
        quote = {"type": "reply", "data": {"id": "77"}}
        (request,) = await answered(bot, model, [quote, text("what is it?")])
    assert words(request).split("\n")[0] == "[回复:77]what is it?"
    assert "客户端没有给出被引用的消息" in words(request)


NODES = {
    "napcat": lambda message: {"messages": [{"message": message, "sender": {}}]},
    "llbot": lambda message: {"messages": [{"content": message, "sender": {}}]},
    "standard": lambda message: {
        "message": [{"type": "node", "data": {"user_id": "1", "content": message}}]
    },
    "nested": lambda message: {
        "messages": [
            {
                "message": [
                    {"type": "forward", "data": {"id": "2", "content": [{"message": message}]}}
                ]
            }
        ]
    },
}


@pytest.mark.parametrize("dialect", NODES)
async def test_pictures_in_a_forward_are_seen(live, model, file_server: FileServer, dialect):
    url = file_server.serve("/a", sends(picture("PNG", BLUE)))
    model.script(["蓝"], model=VISION)
    model.script(["ok"])
    async with client(live) as bot:
        bot.answer_with(answers(get_forward_msg=NODES[dialect]([text(dialect), image(url)])))
        message = [
            text(f"in {dialect}"),
            {"type": "forward", "data": {"id": "7412345678901234567"}},
        ]
        seen, _ = await answered(bot, model, message)
        assert bot.actions[0]["params"] == {
            "id": "7412345678901234567",
            "message_id": "7412345678901234567",
        }
    assert colour_of(shown(seen)[0][1]) == "blue"


async def test_a_forward_that_came_with_its_content_is_not_asked_for(
    live, model, file_server: FileServer
):
    url = file_server.serve("/a", sends(picture("PNG", GREEN)))
    model.script(["绿"], model=VISION)
    model.script(["ok"])
    async with client(live) as bot:
        inner = [{"message": [image(url)], "sender": {}}]
        await answered(
            bot, model, [text("inline"), {"type": "forward", "data": {"id": "5", "content": inner}}]
        )
        assert asked(bot) == []


async def test_a_forward_in_a_forward_that_has_only_an_id_is_asked_for_too_and_none_twice(
    live, model, file_server: FileServer
):
    url = file_server.serve("/a", sends(picture("PNG", BLUE)))
    inner: Frame = {"type": "forward", "data": {"id": "inner"}}
    content = {
        "outer": [inner, inner],
        "inner": [image(url), {"type": "forward", "data": {"id": "outer"}}],
    }

    def answering(action: Frame) -> Frame:
        if action["action"] != "get_forward_msg":
            return ok()
        return ok({"messages": [{"message": content[action["params"]["id"]]}]})

    model.script(["蓝"], model=VISION)
    model.script(["ok"])
    async with client(live) as bot:
        bot.answer_with(answering)
        seen, _ = await answered(
            bot, model, [text("nested?"), {"type": "forward", "data": {"id": "outer"}}]
        )
        assert [action["params"]["id"] for action in bot.actions[:-1]] == ["outer", "inner"]
    assert [colour_of(content) for _, content in shown(seen)] == ["blue"]
