"""Users of the admin at their playgrounds: a browser session, and the socket that it opens."""

import asyncio
import re
from typing import Any

from tests.fake_onebot import FakeOneBot
from tests.live_server import LiveServer
from tests.security.people import Person


class Player(Person):
    """Somebody who may use the playground, whose browser session and account are known."""

    def __init__(self, server: LiveServer, name: str) -> None:
        super().__init__(server, name)
        self.session = self._browser.cookies["sessionid"]
        found = re.search(r'data-account="(\d+)"', self.page("/admin/playground/"))
        assert found
        self.account = found[1]


async def sign_in(server: LiveServer, name: str) -> Player:
    return await asyncio.to_thread(Player, server, name)


async def fetch_token(person: Player) -> str:
    answer = await asyncio.to_thread(person.send, "/admin/playground/token/")
    return str(answer.json()["token"])


def dialling(person: Player | None, token: str, **headers: str | None) -> dict[str, Any]:
    """What a browser's handshake has: the token in the address, and the cookie of its session."""
    cookie = f"sessionid={person.session}" if person else None
    plain = {"X-Self-ID": None, "X-Client-Role": None, "User-Agent": "Mozilla/5.0"}
    return {"headers": plain | {"Cookie": cookie, **headers}}


def playground(server: LiveServer, person: Player, token: str) -> FakeOneBot:
    url = f"{server.ws_url}?access_token={token}"
    return FakeOneBot(url, person.account, origin=server.url, **dialling(person, token))
