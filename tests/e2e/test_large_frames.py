"""Frames of many MiB over a real socket: what they cost, and that nothing of them is lost in a
crash."""

import asyncio
import base64
import os
from pathlib import Path

import pytest

from tests.cast import fresh_id
from tests.e2e.chat import client, words
from tests.e2e.seeing import VISION, answered, image, shown, text
from tests.fake_onebot import ok, spoken
from tests.pictures import noise, saved

pytestmark = pytest.mark.slow

MIB = 2**20
SIZE = 40 * MIB


def in_mib(pid: int, name: str) -> float:
    """A figure of ``/proc/PID/status``."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def forget_peak(pid: int) -> None:
    """``VmHWM`` counts from here."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


MESSAGES = {
    "letters": lambda: [text("x" * SIZE)],
    "words": lambda: [text("吃“什么”？😀\n" * (SIZE // 40))],
    "a picture": lambda: [
        image("", file=f"base64://{base64.b64encode(os.urandom(SIZE * 3 // 4)).decode()}")
    ],
    "many values": lambda: [text("x")] * (SIZE // 45),
}


@pytest.mark.may_block("the test itself makes and sends 40 MiB")
@pytest.mark.parametrize("kind", MESSAGES)
async def test_a_large_frame_costs_no_more_than_three_times_its_size(start_server, model, kind):
    model.script(["warm"] + ["heard"] * (kind != "many values") + ["still here"])
    server = start_server()
    async with client(server) as bot:
        await answered(bot, model, [text("warm up")])
        before = in_mib(server.pid, "VmRSS")
        forget_peak(server.pid)
        await bot.say_private(fresh_id(), MESSAGES[kind](), raw_message="")
        if kind != "many values":
            assert spoken(await bot.next_action(30)) == "heard"
        await answered(bot, model, [text("and now?")])
    assert in_mib(server.pid, "VmHWM") - before <= 3 * SIZE / MIB


@pytest.mark.may_block("the test itself makes and sends a picture of 1 MiB")
async def test_a_picture_in_a_large_frame_is_seen_also_after_a_crash(start_server, model):
    content = saved(noise((1000, 800)), "PNG")
    account = fresh_id()
    server = start_server(FROST_FAULT="message_committed")
    async with client(server, account) as bot:
        await bot.say_private(
            fresh_id(), [image("", file=f"base64://{base64.b64encode(content).decode()}")]
        )
        assert await asyncio.to_thread(server.exit_code, 20) is not None
    model.script(["一张图"], model=VISION)
    model.script(["seen"])
    await asyncio.to_thread(server.restart, FROST_FAULT="")
    async with client(server, account) as bot:
        assert spoken(await bot.next_action(20)) == "seen"
    assert shown(model.requests[0]) == [("image/png", content)]


@pytest.mark.may_block("the test itself makes a picture of 1 MiB")
async def test_a_large_file_that_a_client_answers_with_is_read(live, model):
    content = saved(noise((1000, 800)), "PNG")
    model.script(["一张图"], model=VISION)
    model.script(["seen"])
    async with client(live) as bot:
        bot.answer_with(lambda action: ok({"base64": base64.b64encode(content).decode()}))
        seen, _ = await answered(bot, model, [image("")])
    assert shown(seen) == [("image/png", content)]


async def test_a_name_that_only_looks_like_a_kept_file_opens_nothing(live, model):
    model.script(["nothing seen"] * 2)
    async with client(live) as bot:
        for name in ("../../frostagent.sqlite3", "0" * 64):
            (asked,) = await answered(bot, model, [image("", file=f"kept://{name}")])
            assert words(asked) == "[图片]"
