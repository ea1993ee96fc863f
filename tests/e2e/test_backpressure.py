"""A client that tells more than can be put on record is made to wait; nothing that it told is
lost."""

import asyncio
import contextlib
import json
import sqlite3

import pytest

from tests.cast import fresh_id
from tests.conftest import TOKEN
from tests.fake_onebot import FakeOneBot

#: What the record lets wait, what one socket lets wait behind it, and more than the kernel holds
#: for both ends.
WRITES, FRAMES, REST = 5_000, 256, 300
LARGE = "x" * 100_000


def notice(account: int, number: int, words: str = "") -> str:
    told = {
        "time": 1,
        "self_id": account,
        "post_type": "notice",
        "notice_type": "test",
        "number": number,
        "words": words,
    }
    return json.dumps(told)


async def test_a_socket_is_read_no_further_while_too_much_waits_for_the_database(live):
    server, account = live, fresh_id()
    told = [notice(account, number) for number in range(WRITES + 10)]
    told += [notice(account, WRITES + 10 + number, LARGE) for number in range(FRAMES + REST)]
    count = len(told)
    async with FakeOneBot(server.ws_url, account, token=TOKEN) as bot:
        await server.row("SELECT 1 FROM onebot_bot WHERE self_id = ?", str(account))
        with contextlib.closing(
            sqlite3.connect(server.data_dir / "frostagent.sqlite3", timeout=10)
        ) as other:
            other.execute("BEGIN EXCLUSIVE")
            telling = asyncio.create_task(tell(bot, told))
            await until_it_stands_still(telling, told)
            other.rollback()
        await telling
        await server.row(
            "SELECT 1 FROM onebot_clientevent WHERE self_id = ? "
            "GROUP BY self_id HAVING count(*) = ?",
            *(str(account), count),
        )


async def tell(bot: FakeOneBot, frames: list[str]) -> None:
    """Send ``frames``; those that were sent are gone from it."""
    while frames:
        await bot.send_raw(frames[0])
        del frames[0]


async def until_it_stands_still(telling: asyncio.Task[None], left: list[str]) -> None:
    """Wait until nothing of what is left was sent for a while."""
    before = 0
    while len(left) != before:
        before = len(left)
        done, _ = await asyncio.wait([telling], timeout=1.5)
        assert not done


def heartbeat(account: int, number: int, words: str = "") -> str:
    status = {"online": True, "good": True}
    told = {
        "time": number,
        "self_id": account,
        "post_type": "meta_event",
        "meta_event_type": "heartbeat",
        "interval": 5_000,
    }
    return json.dumps(told | {"status": status, "words": words})


def late_answer(_account: int, number: int, words: str = "") -> str:
    return json.dumps(
        {
            "status": "ok",
            "retcode": 0,
            "data": {"message_id": 1},
            "echo": f"late-{number}",
            "words": words,
        }
    )


@pytest.mark.parametrize("frame", [heartbeat, late_answer])
async def test_nor_is_it_while_what_waits_are_no_messages(live, frame):
    server, account = live, fresh_id()
    told = [frame(account, number) for number in range(WRITES + 10)]
    told += [frame(account, number, LARGE) for number in range(FRAMES + REST)]
    async with FakeOneBot(server.ws_url, account, token=TOKEN) as bot:
        await server.row("SELECT 1 FROM onebot_bot WHERE self_id = ?", str(account))
        with contextlib.closing(
            sqlite3.connect(server.data_dir / "frostagent.sqlite3", timeout=10)
        ) as other:
            other.execute("BEGIN EXCLUSIVE")
            telling = asyncio.create_task(tell(bot, told))
            await until_it_stands_still(telling, told)
            other.rollback()
        await telling
