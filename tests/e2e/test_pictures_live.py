"""Pictures in messages, seen through a vision model: real files, real HTTP, a real socket."""

import base64
import json

import pytest

from tests.cast import fresh_id
from tests.e2e.chat import client, tell, words
from tests.e2e.seeing import OF_USER, VISION, answered, image, medium, run_notes, shown, text
from tests.file_server import FileServer, redirects, sends
from tests.pictures import BLUE, HEIC, animated, colour_of, noise, opened, picture, saved
from tests.scripted_model import fails, held, says


async def test_a_picture_is_described_and_the_words_follow_the_users(
    live, model, file_server: FileServer
):
    content = picture("PNG")
    file_server.serve("/a", sends(content, "image/jpeg"))
    model.script(["一张红色的图"], model=VISION)
    model.script(["red it is"])
    async with client(live) as bot:
        seen, asked = await answered(bot, model, [text("look"), image(f"{file_server.url}/a")])
    assert seen.messages[-1]["content"][0] == {"type": "text", "text": "look"}
    assert shown(seen) == [("image/png", content)]  # by its content, whatever the server claims
    assert seen.tool_names == []
    assert words(asked) == "look[图片] 【图片内容】: 一张红色的图"


async def test_all_pictures_of_a_message_are_described_in_one_call_in_their_order(
    live, model, file_server: FileServer
):
    for name, colour in (("a", (200, 0, 0)), ("b", BLUE)):
        file_server.serve(f"/{name}", sends(picture("JPEG", colour)))
    model.script(["两张图"], model=VISION)
    model.script(["ok"])
    async with client(live) as bot:
        seen, asked = await answered(
            bot, model, [image(f"{file_server.url}/a"), image(f"{file_server.url}/b")]
        )
    assert [colour_of(content) for _, content in shown(seen)] == ["red", "blue"]
    assert seen.messages[-1]["content"][0]["text"] == "请详细描述这张图片的内容"
    assert words(asked) == "[图片][图片] 【图片内容】: 两张图"


async def test_the_history_keeps_the_description(live, model, file_server: FileServer):
    file_server.serve("/a", sends(picture()))
    model.script(["红色"], model=VISION)
    model.script(["one", "two"])
    user = fresh_id()
    async with client(live) as bot:
        await answered(bot, model, [image(f"{file_server.url}/a")], user)
        (later,) = await answered(bot, model, "and?", user)
    assert words_of(later.messages[1]) == "[图片] 【图片内容】: 红色"


def words_of(message: dict) -> str:
    return str(message["content"]).partition("\n")[2]


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
async def test_an_animation_is_seen_by_its_first_frame(live, model, file_server: FileServer, kind):
    file_server.serve("/a", sends(animated(kind)))
    model.script(["动图"], model=VISION)
    model.script(["ok"])
    async with client(live) as bot:
        seen, _ = await answered(
            bot, model, [text(f"first of {kind}"), image(f"{file_server.url}/a")]
        )
    ((mime, content),) = shown(seen)
    assert mime in ("image/png", "image/jpeg")
    assert colour_of(content) == "red"
    assert getattr(opened(content), "n_frames", 1) == 1


@pytest.mark.parametrize(
    ("kind", "content"), [("BMP", picture("BMP")), ("HEIC", HEIC), ("AVIF", picture("AVIF"))]
)
async def test_a_format_that_endpoints_do_not_take_is_sent_as_one_they_do(
    live, model, file_server: FileServer, kind, content
):
    file_server.serve("/a", sends(content))
    model.script(["图"], model=VISION)
    model.script(["ok"])
    async with client(live) as bot:
        seen, _ = await answered(bot, model, [text(kind), image(f"{file_server.url}/a")])
    ((mime, content),) = shown(seen)
    assert (mime, colour_of(content)) == ("image/jpeg", "red")


async def test_a_large_picture_is_made_smaller(live, model, file_server: FileServer):
    file_server.serve("/a", sends(saved(noise((4000, 1000)), "JPEG", quality=50)))
    model.script(["大图"], model=VISION)
    model.script(["ok"])
    async with client(live) as bot:
        seen, _ = await answered(bot, model, [image(f"{file_server.url}/a")])
    width, height = opened(shown(seen)[0][1]).size
    assert max(width, height) <= 2048
    assert abs(width / height - 4) < 0.05


async def test_base64_in_the_segment_is_taken(live, model):
    content = picture("PNG", BLUE)
    model.script(["蓝"], model=VISION)
    model.script(["ok"])
    async with client(live) as bot:
        segment = {
            "type": "image",
            "data": {"file": f"base64://{base64.b64encode(content).decode()}"},
        }
        seen, asked = await answered(bot, model, [segment])
    assert shown(seen) == [("image/png", content)]
    assert words(asked) == "[图片] 【图片内容】: 蓝"


async def test_local_paths_are_never_opened(live, model, tmp_path):
    secret = tmp_path / "secret.png"
    secret.write_bytes(picture())
    model.script(["nothing seen"] * 2)
    async with client(live) as bot:
        for path in (f"file://{secret}", str(secret)):
            (asked,) = await answered(
                bot, model, [{"type": "image", "data": {"file": path, "url": path}}]
            )
            assert words(asked) == "[图片]"


async def test_a_picture_that_cannot_be_had_leaves_its_placeholder_and_a_reason(
    live, model, file_server: FileServer
):
    file_server.serve("/gone", sends(b'{"retcode": -5503007}', status=400))
    model.script(["I cannot see it"])
    user = fresh_id()
    async with client(live) as bot:
        (asked,) = await answered(
            bot, model, [text("look"), image(f"{file_server.url}/gone")], user
        )
    assert words(asked) == "look[图片]"
    assert "could not be had" in await run_notes(live, user)
    assert "400" in (await medium(live, user))["reason"]


async def test_the_others_are_described_when_one_is_missing(live, model, file_server: FileServer):
    file_server.serve("/gone", sends(status=404))
    file_server.serve("/text", sends(b"no picture at all", "image/png"))
    file_server.serve("/inside", redirects("http://169.254.169.254/latest/meta-data"))
    file_server.serve("/a", sends(picture()))
    model.script(["一张"], model=VISION)
    model.script(["ok"])
    async with client(live) as bot:
        message = [image(f"{file_server.url}/{name}") for name in ("gone", "text", "inside", "a")]
        seen, asked = await answered(bot, model, [text("which?"), *message])
    assert len(shown(seen)) == 1
    assert words(asked) == "which?[图片][图片][图片][图片] 【图片内容】: 一张"


@pytest.mark.parametrize("answer", [fails(400, message="bad image sk-test"), says(""), says(None)])
async def test_what_goes_wrong_with_the_vision_model_stays_out_of_the_chat(
    live, model, file_server: FileServer, answer
):
    file_server.serve("/a", sends(picture()))
    model.script([answer], model=VISION)
    model.script(["fine"])
    user = fresh_id()
    async with client(live) as bot:
        await tell(bot, [text(f"see {user}"), image(f"{file_server.url}/a")], user=user)
        action = await bot.next_action(20)
    assert action["params"]["message"][0]["data"]["text"] == "fine"
    assert words(model.requests[-1]) == f"see {user}[图片]"
    assert "were not described" in await run_notes(live, user)


async def test_the_same_picture_is_described_once(live, model, file_server: FileServer):
    file_server.serve("/a", sends(picture("PNG", (1, 2, 3))))
    file_server.serve("/b", sends(picture("PNG", (1, 2, 3))))
    model.script(["黑"], model=VISION)
    model.script(["one", "two"])
    async with client(live) as bot:
        await answered(bot, model, [image(f"{file_server.url}/a")])
        (asked,) = await answered(bot, model, [image(f"{file_server.url}/b")])
    assert words(asked) == "[图片] 【图片内容】: 黑"


async def test_two_who_send_the_same_picture_at_the_same_time_share_one_description(
    live, model, file_server: FileServer
):
    file_server.serve("/a", sends(picture("PNG", (4, 5, 6))))
    model.script([held("灰")], model=VISION)
    model.script(["one", "two"])
    async with client(live) as bot:
        for _ in range(2):
            await tell(bot, [image(f"{file_server.url}/a")], user=fresh_id())
        await model.wait_for_requests(1)
        await file_server.wait_for_requests(2)
        model.release()
        for _ in range(2):
            await bot.next_action()
    assert [words(request) for request in model.requests[1:]] == ["[图片] 【图片内容】: 灰"] * 2


async def test_the_same_picture_is_looked_at_again_for_another_question(
    live, model, file_server: FileServer
):
    file_server.serve("/a", sends(picture("PNG", (7, 8, 9))))
    model.script(["黑的", "没有字"], model=VISION)
    model.script(["one", "two"])
    async with client(live) as bot:
        await answered(bot, model, [text("colour?"), image(f"{file_server.url}/a")])
        _, asked = await answered(bot, model, [text("letters?"), image(f"{file_server.url}/a")])
    assert words(asked) == "letters?[图片] 【图片内容】: 没有字"


async def test_pictures_of_messages_that_are_not_answered_are_not_fetched(
    live, model, file_server: FileServer
):
    group = fresh_id()
    async with client(live) as bot:
        await bot.say_group(group, fresh_id(), [image(f"{file_server.url}/a")], mention=False)
        await bot.no_action(group=group)
    assert file_server.requests == []


async def test_a_picture_is_fetched_when_it_arrives_and_not_when_its_turn_comes(
    live, model, file_server: FileServer
):
    user = fresh_id()
    model.script([held("first"), "second"], model="scripted")
    model.script(["绿"], model=VISION)
    async with client(live) as bot:
        await tell(bot, "wait for it", user=user)
        await model.wait_for_requests(1)
        await tell(
            bot,
            [text(f"later {user}"), image(file_server.serve("/a", sends(picture())))],
            user=user,
        )
        await file_server.wait_for_requests(1)
        assert len(model.requests) == 1
        model.release()
        for _ in range(2):
            await bot.next_action()


async def test_nothing_of_the_picture_itself_is_on_record(live, model, file_server: FileServer):
    content = saved(noise((300, 200)))
    file_server.serve("/a", sends(content))
    model.script(["杂"], model=VISION)
    model.script(["ok"])
    user = fresh_id()
    async with client(live) as bot:
        await answered(bot, model, [image(f"{file_server.url}/a")], user)
    steps = (
        f"SELECT s.request FROM agent_step s JOIN agent_run r ON r.id = s.run_id "
        f"{OF_USER.format('r.message_id')}"
    )
    row = await live.row(steps, str(user))
    assert len(json.dumps(row["request"])) < 5_000
