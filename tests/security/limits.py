"""What the tests of limits ask again and again: messages with their ends, what was heard, a page
that is changed."""

import asyncio
import contextlib
from collections import Counter
from typing import Any

from tests.e2e.cockpit import Cockpit
from tests.fake_onebot import FakeOneBot, spoken
from tests.live_server import LiveServer

#: A server's limits as they are when nobody says anything; the suite's own environment has none.
DEFAULTS = dict.fromkeys(
    (
        "PERSON_ANSWERS_PER_MINUTE",
        "PERSON_ANSWERS_PER_DAY",
        "CHAT_ANSWERS_PER_MINUTE",
        "CHAT_ANSWERS_PER_DAY",
        "TOKENS_PER_DAY",
    ),
    "",
)
MANNERS = "/admin/agent/manners/"
Rows = list[dict[str, Any]]

SAID = (
    "SELECT m.state, m.reason, m.detail FROM agent_message m JOIN agent_chatsession s ON s.id "
    "= m.session_id "
    "WHERE m.direction = 'in' AND s.peer_id = ? ORDER BY m.id"
)


async def settled(server: LiveServer, peer: int | str, count: int) -> Rows:
    """The messages in the chats with ``peer``, once there are ``count`` and all have come to an
    end."""
    async with asyncio.timeout(60):
        while True:
            rows = server.rows(SAID, str(peer))
            if len(rows) >= count and all(
                row["state"] not in ("waiting", "running") for row in rows
            ):
                return rows
            await asyncio.sleep(0.02)


def reasons(rows: Rows) -> dict[str, int]:
    """Why how many of ``rows`` were not answered."""
    return dict(Counter(row["reason"] for row in rows if row["state"] != "answered"))


def answered(rows: Rows) -> int:
    return sum(row["state"] == "answered" for row in rows)


async def heard(bot: FakeOneBot) -> list[str]:
    """Everything that was sent, once nothing more comes."""
    words = []
    try:
        while True:
            words.append(spoken(await bot.next_action(0.3)))
    except (TimeoutError, AssertionError):
        return words


async def override(server: LiveServer, bot: FakeOneBot, owners: str = "", **changes: Any) -> None:
    """Save the bot's page with ``owners``, and the row of manners for it with ``changes``."""
    account = str(bot.self_id)
    if owners:
        row = await server.row("SELECT id FROM onebot_bot WHERE self_id = ?", account)
        await fill(server, f"/admin/onebot/bot/{row['id']}/change/", owners=owners)
    if changes:
        rows = server.rows("SELECT id FROM agent_manners WHERE name = ?", account)
        place = f"{rows[0]['id']}/change/" if rows else "add/"
        await fill(server, f"{MANNERS}{place}", name=account, account=account, **changes)


async def fill(server: LiveServer, path: str, **changes: Any) -> None:
    """Save the page at ``path`` with ``changes``."""

    def filled() -> None:
        with contextlib.closing(Cockpit(server)) as cockpit:
            cockpit.fill(path, **changes)

    await asyncio.to_thread(filled)


async def page(server: LiveServer, path: str) -> str:
    """The page at ``path``, as the administrator sees it."""

    def read() -> str:
        with contextlib.closing(Cockpit(server)) as cockpit:
            return cockpit.page(path)

    return await asyncio.to_thread(read)
