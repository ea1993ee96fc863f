"""The tools that look into a chat and send from it: a real server, a real socket, real pictures."""

import base64
from collections.abc import Callable
from typing import Any

from tests.cast import fresh_id
from tests.e2e.chat import client, outgoing, tell
from tests.e2e.seeing import image, text
from tests.fake_onebot import FakeOneBot, Frame, failed, ok
from tests.file_server import FileServer, sends
from tests.live_server import LiveServer
from tests.pictures import BLUE, GREEN, RED, colour_of, picture
from tests.scripted_model import ScriptedModel, call

THE_END = "the end"


def answering(**by_name: Any) -> Callable[[Frame], Frame]:
    """Answer the questions of these names with this data; no other question, and every send."""

    def answer(action: Frame) -> Frame:
        name = action["action"]
        return (
            ok(by_name[name])
            if name in by_name
            else failed(1404)
            if name.startswith("get_")
            else ok()
        )

    return answer


async def told(
    bot: FakeOneBot, model: ScriptedModel, message: Any, tool: str, *, user: int, **arguments: Any
) -> str:
    """What the model is told of one call, made in answer to a message in private."""
    model.script([call(tool, **arguments), THE_END])
    before = len(model.requests)
    await tell(bot, message, user=user)
    while (await bot.next_action(20))["params"].get("message") != [text(THE_END)]:
        pass
    return str(model.requests[before + 1].messages[-1]["content"])


def sent_pictures(bot: FakeOneBot) -> list[str]:
    """The colours of the pictures that the client was given to send."""
    segments = [
        one
        for action in bot.actions
        for one in action["params"].get("message") or ()
        if one["type"] == "image"
    ]
    return [
        colour_of(base64.b64decode(one["data"]["file"].removeprefix("base64://")))
        for one in segments
    ]


async def test_a_sticker_dropped_into_the_folder_is_sent_with_the_next_message(model, start_server):
    server: LiveServer = start_server(VISUAL_MODEL_NAME="")
    user = fresh_id()
    async with client(server) as bot:
        assert "send_emoji" in await told(
            bot, model, "hi", "send_emoji", user=user, words="开心"
        )  # not there yet
        (server.data_dir / "media" / "stickers").mkdir()
        (server.data_dir / "media" / "stickers" / "开心的猫.png").write_bytes(picture(colour=GREEN))
        server.restart()
    async with client(server) as bot:
        assert (
            await told(bot, model, "hi", "send_emoji", user=user, words="开心")
            == "已发送[表情：开心的猫]"
        )
        assert sent_pictures(bot) == ["green"]
    row = await server.row("SELECT use_count FROM agent_sticker WHERE use_count > 0")
    assert row["use_count"] == 1


async def test_a_picture_of_the_chat_is_sent_again_from_our_own_copy(
    live, model, file_server: FileServer
):
    url, user, message_id = (
        file_server.serve("/a", sends(picture(colour=BLUE))),
        fresh_id(),
        fresh_id(),
    )
    model.script(["蓝"], model="scripted-vision")
    async with client(live) as bot:
        model.script(["seen"])
        await tell(bot, [text("look"), image(url)], user=user, message_id=message_id)
        await bot.next_action(20)
        file_server.serve("/a", sends(picture(colour=RED)))
        assert (
            await told(bot, model, "again", "send_image", user=user, msg_id=str(message_id))
            == "图片已发送"
        )
        assert sent_pictures(bot) == ["blue"]
        stranger = fresh_id()
        assert "本会话中没有" in await told(
            bot, model, "mine?", "send_image", user=stranger, msg_id=str(message_id)
        )
    row = await outgoing(live, user, "m.text = '[图片]'")
    assert row["state"] == "delivered"


async def test_a_forward_is_opened_and_a_picture_in_it_is_sent(live, model):
    user, message_id = fresh_id(), fresh_id()
    inline = image("", base64=base64.b64encode(picture(colour=GREEN)).decode())
    nodes = [{"message": [text("早"), inline], "sender": {"user_id": 5, "nickname": "Bob"}}]
    async with client(live) as bot:
        bot.answer_with(answering(get_forward_msg={"messages": nodes}))
        model.script(["绿"], model="scripted-vision")
        model.script(["ok"])
        await tell(
            bot,
            [{"type": "forward", "data": {"id": "9007199254740993"}}],
            user=user,
            message_id=message_id,
        )
        while (await bot.next_action(20))["action"].startswith("get_"):
            pass
        listed = await told(
            bot, model, "open it", "view_complex_message", user=user, msg_id=str(message_id)
        )
        assert f'"pictures": ["message:{message_id}:1:1"]' in listed
        await told(
            bot, model, "send it", "send_image", user=user, media_index=f"message:{message_id}:1:1"
        )
        assert sent_pictures(bot) == ["green"]


async def test_earlier_messages_of_the_chat_are_fetched_and_the_current_one_is_not(live, model):
    user = fresh_id()
    async with client(live) as bot:
        assert "没有更早的消息" in await told(bot, model, "first words", "fetch_history", user=user)
        history = await told(bot, model, "second words", "fetch_history", user=user, num=10)
        assert "first words" in history
        assert THE_END in history
        assert "second words" not in history
