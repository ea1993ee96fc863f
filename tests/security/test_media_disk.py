"""What a chat or a client can put on the disk is bounded."""

import asyncio
import base64
import json
import random
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from agent.domain.types import MediaUnavailable
from agent.media import downloads
from agent.media.downloads import DAY_OVER, DailyQuota
from agent.media.pipeline import LOW_DISK
from onebot.protocol.frames import KEPT_FRAME_BYTES, decode_frame
from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.chat import client
from tests.e2e.cockpit import Cockpit
from tests.fake_onebot import FakeOneBot
from tests.file_server import FileServer, sends
from tests.live_server import LiveServer, free_port
from tests.scripted_model import ScriptedModel, text_of
from tests.test_doctor import doctor

Start = Callable[..., LiveServer]
KIB, MIB = 2**10, 2**20


def noise(size: int, seed: int) -> bytes:
    return random.Random(seed).randbytes(size)


def file_part(url: str) -> list[dict[str, Any]]:
    return [{"type": "file", "data": {"name": "a.bin", "file": "a.bin", "url": url}}]


def stored(server: LiveServer) -> int:
    return sum(
        path.stat().st_size for path in (server.data_dir / "received").rglob("*") if path.is_file()
    )


async def within(server: LiveServer, limit: int) -> None:
    """Wait until the copies take no more than ``limit`` bytes."""
    async with asyncio.timeout(60):
        while stored(server) > limit:  # noqa: ASYNC110 - nothing says when
            await asyncio.sleep(0.05)


async def sent(bot: FakeOneBot, model: ScriptedModel, person: int, url: str) -> None:
    """Have ``person`` send a file, and wait for the answer."""
    model.script(["seen"])
    await bot.say_private(person, file_part(url))
    await bot.next_action()


def media(server: LiveServer) -> list[str]:
    """The reason of each medium on record, "" for one that was had."""
    return [
        row["reason"] for row in server.rows("SELECT reason FROM agent_messagemedia ORDER BY id")
    ]


# --- All together -------------------------------------------------------------------


async def test_a_flood_of_files_takes_no_more_than_the_limit(
    start_server: Start, model, file_server: FileServer
):
    server = start_server(MEDIA_KEEP_GIB="0.002")
    limit = int(0.002 * 2**30)
    async with client(server) as bot:
        for number in range(6):
            url = file_server.serve(f"/{number}", sends(noise(MIB, number)))
            await sent(bot, model, fresh_id(), url)
        await within(server, limit)
        assert server.rows(
            "SELECT max(kept_id) IS NOT NULL AS kept FROM agent_messagemedia WHERE id = 6"
        )[0]["kept"]
        assert server.rows("SELECT count(*) AS n FROM agent_keptfile")[0]["n"] <= 2
        for number in range(4):  # nobody is answered, so that no row names them
            content = base64.b64encode(noise(MIB, 100 + number)).decode()
            parts = [{"type": "image", "data": {"file": f"base64://{content}"}}]
            await bot.say_group(fresh_id(), fresh_id(), parts, mention=False)
        await bot.no_action()
        await within(server, limit)
    server.restart()
    await within(server, limit)


# --- One person ---------------------------------------------------------------------


async def test_one_person_gets_so_much_a_day_also_after_a_restart(
    start_server: Start, model, file_server: FileServer
):
    server = start_server(MEDIA_PERSON_MIB_PER_DAY="1")
    urls = [file_server.serve(f"/{number}", sends(noise(700 * KIB, number))) for number in range(6)]
    person = fresh_id()
    async with client(server) as bot:
        await sent(bot, model, person, urls[0])
        await sent(bot, model, person, urls[1])
        await sent(bot, model, fresh_id(), urls[2])
        assert media(server) == ["", DAY_OVER, ""]
        cockpit = await asyncio.to_thread(Cockpit, server)
        await asyncio.to_thread(cockpit.own, bot.self_id, str(person))
        cockpit.close()
        await sent(bot, model, person, urls[3])
        await sent(bot, model, person, urls[4])
        assert media(server) == ["", DAY_OVER, "", "", ""]
        cockpit = await asyncio.to_thread(Cockpit, server)
        await asyncio.to_thread(cockpit.own, bot.self_id, "")
        cockpit.close()
    await asyncio.to_thread(server.restart)
    async with client(server, int(bot.self_id)) as bot:
        await sent(bot, model, person, urls[5])
        assert media(server)[-1] == DAY_OVER


async def test_downloads_of_one_person_at_once_share_the_day():
    day = DailyQuota(100)
    granted = []

    async def download(wanted: int, taken: int) -> None:
        async with day.promise(wanted) as bytes_given:
            granted.append(bytes_given)
            await asyncio.sleep(0)
            day.note(min(taken, bytes_given))

    results = await asyncio.gather(*(download(60, 30) for _ in range(5)), return_exceptions=True)
    assert sum(isinstance(result, MediaUnavailable) for result in results) == 1
    assert granted == [60, 60, 40, 10]
    assert day.left == 0


def test_a_day_is_over_after_24_hours(monkeypatch):
    day = DailyQuota(
        10, [(timezone.now() - timedelta(hours=25), 8), (timezone.now() - timedelta(hours=23), 1)]
    )
    assert day.left == 9
    with pytest.raises(MediaUnavailable, match=DAY_OVER):
        day.count(10)
    monkeypatch.setattr(downloads, "DAY", timedelta(hours=22))
    assert day.left == 10


# --- A disk that is nearly full -------------------------------------------------------


async def test_with_little_room_nothing_is_fetched_and_all_goes_on(
    start_server: Start, model, file_server: FileServer
):
    server = start_server(MEDIA_FREE_GIB="1000000")
    content = base64.b64encode(noise(MIB, 1)).decode()
    async with client(server) as bot:
        await sent(bot, model, fresh_id(), file_server.serve("/a", sends(b"text")))
        model.script(["seen"])
        await bot.say_private(
            fresh_id(), [{"type": "file", "data": {"name": "b", "file": f"base64://{content}"}}]
        )
        await bot.next_action()
    assert file_server.requests == []
    assert media(server) == [LOW_DISK, LOW_DISK]
    assert stored(server) == 0
    assert server.log.count("MEDIA_FREE_GIB") == 1
    said = doctor(
        server.data_dir, MEDIA_FREE_GIB="1000000", WS_LISTEN_ADDR=f"127.0.0.1:{free_port()}"
    ).stdout
    assert "MEDIA_FREE_GIB" in said


# --- Events as the client sent them -----------------------------------------------------


async def test_of_a_huge_event_only_the_beginning_is_kept(live: LiveServer):
    group = fresh_id()
    async with client(live) as bot:
        for filling in (
            {"comment": "x" * 3 * MIB},
            {"members": [{"id": n, "名": "群"} for n in range(60_000)]},
            {"comment": "short"},
        ):
            await bot.tell("notice", notice_type="group_card", group_id=group, **filling)
        await bot.no_action()
        rows = live.rows(
            "SELECT raw FROM onebot_clientevent WHERE self_id = ? ORDER BY id", str(bot.self_id)
        )
    long, many, short = (json.loads(row["raw"]) for row in rows)
    assert max(len(row["raw"]) for row in rows) < KEPT_FRAME_BYTES
    assert (long["group_id"], many["group_id"], short["comment"]) == (group, group, "short")
    assert (long["cut"]["bytes"] > 3 * MIB, many["cut"]["bytes"] > MIB, "cut" in short) == (
        True,
        True,
        False,
    )
    assert long["cut"]["beginning"].startswith("{")


async def test_a_long_message_is_answered_as_a_whole_and_its_event_is_cut(live: LiveServer, model):
    model.script(["read"])
    person = fresh_id()
    async with client(live) as bot:
        await bot.say_private(person, "长" * 30_000 + "end")
        await bot.next_action()
    row = await live.row(
        "SELECT text, raw FROM agent_message WHERE sender_id = ? AND direction = 'in'", str(person)
    )
    assert (len(row["text"]), row["text"][-3:], len(row["raw"]) < KEPT_FRAME_BYTES) == (
        30_003,
        "end",
        True,
    )


@pytest.mark.parametrize("filling", ["\u2028", "\\u0000", '"', "é", "😀"])
def test_whatever_it_is_made_of_it_fits(filling):
    fields = {f"{filling * 10}{number}": filling * 20 for number in range(100)}
    event: Any = decode_frame(
        json.dumps(
            {"post_type": "notice", **fields, "comment": filling * 100_000}, ensure_ascii=False
        )
    )
    assert len(json.dumps(event.raw)) < KEPT_FRAME_BYTES


# --- The upkeep ---------------------------------------------------------------------------

#: The server looks for what is too old all the time.
SOON = {"first_expiry": 0.2, "next_expiry": 0.2}


async def test_a_server_erases_old_events_and_messages_and_goes_on_answering(model_server, model):
    settings = {"RECORD_KEEP_DAYS": "1", "EVENT_KEEP_DAYS": "1", "MAX_CONTEXT_MESSAGES": "4"}
    with LiveServer(scripted_env(model_server) | settings, limits=SOON) as server:
        person = fresh_id()
        async with client(server) as bot:
            for number in range(3):
                model.script([f"answer {number}"])
                await bot.say_private(person, f"question {number}")
                await bot.next_action()
            await bot.tell("notice", notice_type="group_card", group_id=1)
            await bot.no_action()
            await asyncio.to_thread(age, server)
            await server.logged("client events were erased")
            await server.logged("messages were erased")
            model.script(["answer 3"])
            await bot.say_private(person, "question 3")
            await bot.next_action()
            assert not server.rows("SELECT 1 FROM agent_message WHERE text = 'question 0'")
    said = [text_of(message) for message in model.requests[-1].messages]
    assert [text for text in said if "answer" in text] == ["answer 2"]


def age(server: LiveServer) -> None:
    """Make everything on record two days older."""
    with sqlite3.connect(server.data_dir / "frostagent.sqlite3", timeout=20) as database:
        for table, column in (
            ("agent_message", "created_at"),
            ("agent_run", "started_at"),
            ("onebot_clientevent", "created_at"),
        ):
            database.execute(f"UPDATE {table} SET {column} = datetime({column}, '-2 days')")
