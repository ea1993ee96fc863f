"""Who is shown a picture, and what survives the process that fetched it."""

from tests.cast import fresh_id
from tests.e2e.chat import client, tell, words
from tests.e2e.seeing import OF_USER, VISION, answered, image, run_notes, shown, text
from tests.file_server import FileServer, drips, sends, sends_endlessly
from tests.pictures import BLUE, colour_of, noise, picture, saved
from tests.scripted_model import call, held


async def test_natively_the_chat_model_is_shown_the_picture_and_no_other_is_asked(
    start_server, model, file_server: FileServer
):
    server, content = start_server(VISION_MODE="native"), picture("PNG", BLUE)
    model.script([call("get_weather", city="Oslo"), "blue"])
    async with client(server) as bot:
        asked, after = await answered(
            bot, model, [text("look"), image(file_server.serve("/a", sends(content)))]
        )
    assert words(asked) == "look[图片]"
    assert shown(asked) == [("image/png", content)]
    assert after.messages[: len(asked.messages)] == asked.messages


async def test_in_both_ways_the_description_stands_beside_the_picture(
    start_server, model, file_server: FileServer
):
    server, user = start_server(VISION_MODE="both"), fresh_id()
    model.script(["蓝"], model=VISION)
    model.script(["one", "two"])
    async with client(server) as bot:
        _, asked = await answered(
            bot, model, [image(file_server.serve("/a", sends(picture("PNG", BLUE))))], user
        )
        (later,) = await answered(bot, model, "and now?", user)
    assert words(asked) == "[图片] 【图片内容】: 蓝"
    assert len(shown(asked)) == 1
    assert later.messages[1]["content"].endswith(
        "[图片] 【图片内容】: 蓝"
    )  # the history holds words alone


async def test_without_a_vision_model_nothing_is_fetched_and_the_run_says_so(
    start_server, model, file_server: FileServer
):
    server, user = start_server(VISUAL_MODEL_NAME=""), fresh_id()
    model.script(["unseen"])
    async with client(server) as bot:
        (asked,) = await answered(
            bot, model, [image(file_server.serve("/a", sends(picture())))], user
        )
    assert words(asked) == "[图片]"
    assert "VISUAL_MODEL_NAME is empty" in await run_notes(server, user)
    assert file_server.requests == []


async def test_what_was_fetched_is_described_after_a_restart_although_the_link_has_expired(
    start_server, model, file_server: FileServer, tmp_path
):
    url, user, account = (
        file_server.serve("/a", sends(picture("PNG", BLUE))),
        fresh_id(),
        fresh_id(),
    )
    database = {"FROST_DATA_DIR": str(tmp_path)}
    model.script([held("lost")], model=VISION)
    server = start_server(**database)
    async with client(server, account) as bot:
        await tell(bot, [image(url)], user=user)
        await model.wait_for_requests(1)
        server.kill()
    file_server.serve("/a", sends(status=400))
    model.reset()
    model.script(["蓝"], model=VISION)
    model.script(["blue"])
    async with client(start_server(**database), account) as bot:
        await bot.next_action(20)
    assert words(model.requests[-1]) == "[图片] 【图片内容】: 蓝"


async def test_a_description_outlives_the_process_and_is_given_in_every_chat(
    start_server, model, file_server: FileServer
):
    url = file_server.serve("/a", sends(picture("PNG", BLUE)))
    model.script(["蓝"], model=VISION)
    model.script(["one", "two"])
    server = start_server()
    async with client(server) as bot:
        await answered(bot, model, [image(url)])
    server.restart()
    async with client(server) as bot:
        (asked,) = await answered(bot, model, [image(url)])
    assert words(asked) == "[图片] 【图片内容】: 蓝"


async def test_a_message_gets_no_more_time_and_bytes_than_it_may_have(
    start_server, model, file_server: FileServer
):
    server, user = start_server(MEDIA_FETCH_SECONDS="4", MEDIA_FETCH_MIB="1"), fresh_id()
    file_server.serve("/slow", drips())
    file_server.serve("/endless", sends_endlessly())
    file_server.serve("/large", sends(saved(noise((1200, 900)), "BMP")))
    file_server.serve("/a", sends(picture()))
    model.script(["红"], model=VISION)
    model.script(["ok"])
    async with client(server) as bot:
        pictures = [
            image(f"{file_server.url}/{name}") for name in ("slow", "endless", "large", "a")
        ]
        seen, asked = await answered(bot, model, pictures, user)
    assert colour_of(shown(seen)[0][1]) == "red"
    assert words(asked) == "[图片][图片][图片][图片] 【图片内容】: 红"
    rows = (
        f"SELECT group_concat(x.reason, '|') AS why FROM agent_messagemedia x "
        f"{OF_USER.format('x.message_id')}"
    )
    why = (await server.row(rows, str(user)))["why"]
    assert "in time" in why
    assert why.count("more than may be fetched") == 2
