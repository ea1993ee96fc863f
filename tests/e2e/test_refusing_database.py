"""A database that takes nothing for a while: everybody waits, is answered once and in the own chat,
and the operator is told."""

import asyncio
import contextlib
import json
import resource
import sqlite3
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import requests

from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.chat import client, words
from tests.e2e.cockpit import Cockpit
from tests.environment import PATIENCE
from tests.fake_onebot import FakeOneBot, Frame, spoken
from tests.live_server import LiveServer
from tests.scripted_model import ScriptedModel, says

#: Seconds that no write would wait which is given up after a few tries.
OUTLASTING = 5.0
BANNER = "The database cannot be written since"
FILED = (
    "SELECT m.text, m.state, s.kind, s.peer_id FROM agent_message m JOIN agent_chatsession s "
    "ON s.id = m.session_id "
    "WHERE m.direction = 'in'"
)


@pytest.fixture
def server(model_server: ScriptedModel) -> Iterator[LiveServer]:
    """A server with the embedded database that has answered nobody yet."""
    with LiveServer(scripted_env(model_server) | {"LANGUAGE_CODE": "en"}) as server:
        yield server


class Newcomers:
    """Chats that nobody has spoken in before; whose words are whose can be told from the words."""

    def __init__(self, bot: FakeOneBot) -> None:
        self.told: dict[str, str] = {}
        """The peer of the chat in which each text was said."""
        self._bot = bot

    async def speak(self, count: int) -> None:
        """So many people and groups begin to talk, and those who have talked before go on."""
        for peer in list(self.told.values()):
            await self._say(peer, "more")
        for _ in range(count):
            await self._say(f"private {fresh_id()}", "secret")
            await self._say(f"group {fresh_id()}", "hello")

    async def _say(self, peer: str, word: str) -> None:
        kind, number = peer.split()
        text = f"{word} {len(self.told)} of {number}"
        self.told[text] = peer
        if kind == "group":
            await self._bot.say_group(int(number), fresh_id(), text)
        else:
            await self._bot.say_private(int(number), text)

    async def hear(self) -> None:
        """Everybody is answered once, in the own chat, and nobody else is spoken to."""
        heard = [heard_by(await self._bot.next_action()) for _ in self.told]
        assert sorted(heard) == sorted((peer, f"re {text}") for text, peer in self.told.items())
        await self._bot.no_action()


def heard_by(action: Frame) -> tuple[str, str]:
    """The chat that an action sends to, and the words."""
    params = action["params"]
    kind = "group" if params.get("group_id") else "private"
    return f"{kind} {params.get('group_id') or params['user_id']}", spoken(action).strip()


def own_words_only(model: ScriptedModel, told: dict[str, str]) -> bool:
    """Whether no request to the model holds words of two chats."""
    for request in model.requests:
        said = json.dumps(request.messages, ensure_ascii=False)
        if len({peer for text, peer in told.items() if text in said}) > 1:
            return False
    return True


async def ready(server: LiveServer, status: int, reason: str = "") -> dict[str, Any]:
    """What ``/ready`` says, once that is ``status`` with ``reason`` in it."""
    async with asyncio.timeout(40):
        while True:
            answer = await asyncio.to_thread(requests.get, f"{server.url}/ready", timeout=PATIENCE)
            if answer.status_code == status and reason in answer.text:
                return dict(answer.json())
            await asyncio.sleep(0.1)


@contextlib.asynccontextmanager
async def full_disk(server: LiveServer) -> AsyncIterator[None]:
    """No file of the server can grow any more."""
    size = (server.data_dir / "frostagent.sqlite3-wal").stat().st_size
    usual = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (size, usual[1]))
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, usual)


@contextlib.asynccontextmanager
async def locked(server: LiveServer) -> AsyncIterator[None]:
    """Another program writes, and does not come to an end."""
    with contextlib.closing(
        sqlite3.connect(server.data_dir / "frostagent.sqlite3", isolation_level=None)
    ) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")


@pytest.mark.parametrize(
    ("trouble", "reason"), [(full_disk, "the disk reports an error"), (locked, "")]
)
async def test_new_chats_that_speak_meanwhile_are_answered_afterwards_each_in_its_own(
    server, model, trouble, reason
):
    model.answer_with(lambda request: says(f"re {words(request)}"))
    async with client(server) as bot:
        newcomers = Newcomers(bot)
        await newcomers.speak(1)
        await newcomers.hear()
        newcomers.told.clear()
        async with trouble(server):
            await newcomers.speak(2)
            said = await ready(server, 503, reason)
            assert said["missing"] == ["database"]
            assert said["reasons"]["database"]
            await newcomers.speak(2)
            await asyncio.sleep(OUTLASTING)
            assert all(text not in json.dumps(bot.actions) for text in newcomers.told)
        await newcomers.hear()
        await ready(server, 200)
        filed = {row["text"]: row for row in server.rows(FILED)}
        for text, peer in newcomers.told.items():
            row = filed[text]
            assert (f"{row['kind']} {row['peer_id']}", row["state"]) == (peer, "answered")
        assert own_words_only(model, newcomers.told)
        assert "is lost" not in server.log


async def test_the_operator_sees_in_the_admin_what_is_wrong_and_when_it_is_over(server, model):
    model.script(["before", "after"])
    cockpit = await asyncio.to_thread(Cockpit, server)
    async with client(server) as bot:
        await bot.say_private(fresh_id(), "hi")
        assert spoken(await bot.next_action()) == "before"
        assert BANNER not in await asyncio.to_thread(cockpit.page, "/admin/")
        async with full_disk(server):
            await bot.say_private(fresh_id(), "hi")
            await ready(server, 503, "the disk reports an error")
            page = await asyncio.to_thread(cockpit.page, "/admin/")
            assert BANNER in page
            assert "the disk reports an error" in page
            stranger = await asyncio.to_thread(
                requests.get, f"{server.url}/admin/login/", timeout=PATIENCE
            )
            assert BANNER not in stranger.text
        assert spoken(await bot.next_action()) == "after"
        assert BANNER not in await asyncio.to_thread(cockpit.page, "/admin/")
    await asyncio.to_thread(cockpit.close)
