"""Backups of a real server under load, and of the day; what was restored goes on elsewhere."""

import asyncio
import sqlite3
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from tests import zygote
from tests.cast import fresh_id
from tests.conftest import TOKEN
from tests.e2e.chat import client, tell, words
from tests.environment import PATIENCE
from tests.fake_onebot import FakeOneBot, spoken
from tests.live_server import LiveServer
from tests.pictures import picture
from tests.scripted_model import says, text_of
from tests.tools.plugins.hosting import becomes

PASSPHRASE = {"FROST_BACKUP_PASSPHRASE": "correct horse battery"}
#: Seconds for a process that starts, and steps back for all others.
SLOW = 4 * PATIENCE
TABLES = ("agent_message", "agent_run", "agent_step", "agent_chatsession", "auth_user")


def command(server: LiveServer, *arguments: str) -> str:
    """What ``manage.py`` prints for the installation of ``server``. It succeeds."""
    made = [sys.executable, "manage.py", *arguments]
    done = zygote.run(made, server._environment(), check=False, timeout=SLOW)
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


def find_failure(folder: Path) -> str:
    """What is written down of a backup that failed; empty where there is nothing."""
    with suppress(FileNotFoundError):
        return (folder / "failed.txt").read_text()
    return ""


async def flood(bot: FakeOneBot, group: int, said: list[str]) -> None:
    """Talk in a group as fast as the server takes it."""
    while True:
        said.append(f"so many words {len(said)}")
        await tell(bot, said[-1], user=fresh_id(), group=group)
        await asyncio.sleep(0.001)


def as_recorded(server: LiveServer, table: str, until: int) -> list[dict[str, Any]]:
    return server.rows(f"SELECT * FROM {table} WHERE id <= ? ORDER BY id", until)


async def test_a_server_under_load_is_backed_up_and_goes_on_in_another_folder(
    start_server, model, tmp_path
):
    model.answer_with(lambda request: says(f"to: {words(request)[:40]}"))
    content = picture("PNG")
    old = await asyncio.to_thread(start_server, VISUAL_MODEL_NAME="", **PASSPHRASE)
    (old.data_dir / "media").mkdir(exist_ok=True)
    (old.data_dir / "media" / "fox.png").write_bytes(content)
    file, user, group, said = tmp_path / "a.zip", fresh_id(), fresh_id(), list[str]()
    async with client(old, account := fresh_id()) as bot:
        await tell(bot, "before", user=user)
        assert spoken(await bot.next_action()) == "to: before"
        flooding = asyncio.create_task(flood(bot, group, said))
        await old.row("SELECT id FROM agent_message WHERE text LIKE 'so many words 50%'")
        await asyncio.to_thread(command, old, "backup", str(file))
        count = len(said)
        await old.row("SELECT id FROM agent_message WHERE text = ?", said[-1])
        flooding.cancel()
        with suppress(asyncio.CancelledError):
            await flooding
    assert len(said) >= count > 50
    await asyncio.to_thread(old.terminate)

    new = LiveServer(old.env)
    try:
        await asyncio.to_thread(command, new, "restore", str(file))
        for table in TABLES:
            (last,) = new.rows(f"SELECT max(id) AS id, count(*) AS count FROM {table}")
            theirs = as_recorded(new, table, last["id"])
            assert len(theirs) == last["count"] > 0
            settled = [row for row in as_recorded(old, table, last["id"]) if row in theirs]
            assert len(settled) >= len(theirs) - 20  # but for what was just being written
        texts = [row["text"] for row in new.rows("SELECT text FROM agent_message ORDER BY id")]
        heard = [text for text in texts if text.startswith("so many")]
        assert heard == said[: len(heard)]
        assert len(heard) >= 50
        assert (new.data_dir / "media" / "fox.png").read_bytes() == content
        assert (new.data_dir / "secret_key").read_text() == (
            old.data_dir / "secret_key"
        ).read_text()
        await asyncio.to_thread(new.start)
        async with FakeOneBot(new.ws_url, account, token=TOKEN) as bot:
            await tell(bot, "after", user=user)
            assert spoken(await bot.next_action()) == "to: after"
        history = [text_of(one) for one in model.requests[-1].messages]
        assert any(text.endswith("to: before") for text in history)
    finally:
        await asyncio.to_thread(new.remove)


async def test_a_server_without_a_client_makes_the_backup_of_the_day_and_says_when_it_cannot():
    limits = {"first_expiry": 0.1, "next_expiry": 1.0, "heartbeat": 0.2}
    env = {"ONEBOT_ACCESS_TOKEN": TOKEN, "DAILY_BACKUP": "true", "BACKUP_KEEP_GIB": "0.000001"}
    server = LiveServer(env, limits=limits)
    folder = server.data_dir / "backups"
    try:
        await asyncio.to_thread(server.start)
        await server.logged("The daily backup failed", SLOW)
        await becomes(lambda: find_failure(folder))  # the line in the log comes first
        assert "MiB" in find_failure(folder)
        assert list(folder.glob("daily-*")) == []
        await asyncio.to_thread(server.terminate)
        with closing(sqlite3.connect(server.data_dir / "frostagent.sqlite3")) as rows, rows:
            rows.execute("UPDATE agent_installation SET daily_backup = 1")
        changed = {"DAILY_BACKUP": "false", "BACKUP_KEEP_GIB": "1"}
        await asyncio.to_thread(server.restart, **changed)
        await server.logged("The daily backup was made", SLOW)
        (made,) = folder.glob("daily-*.zip")
        await becomes(lambda: not find_failure(folder))
        assert oct(made.stat().st_mode)[-3:] == "600"
    finally:
        await asyncio.to_thread(server.remove)
