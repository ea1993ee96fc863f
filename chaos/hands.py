"""The operator, who writes as the bot on the pages of chats all the time, and now and then takes
one over."""

import asyncio
import itertools
import random
import sqlite3
import uuid
from dataclasses import dataclass
from typing import Any

import psycopg
import requests

from chaos import marks
from chaos.marks import Mark
from chaos.process import ChaosServer
from tests.e2e.cockpit import Cockpit

#: Most seconds between two messages.
PAUSE_SECONDS = 1.0
#: Chats that are written in: the newest of all.
CHATS = 12
_CHATS = "SELECT id, account, kind, peer_id FROM agent_chatsession ORDER BY id DESC LIMIT ?"
#: How often the next thing that he does is to take a chat over, or to hand it back.
TAKES, HANDS_BACK = 0.3, 0.25
#: What the page of a chat says of a message that it took.
_TAKEN = ('class="success"', "It is sent if it connects")


@dataclass(frozen=True, slots=True)
class Written:
    """What the operator sent off. ``is_accepted``: the page said that it took it."""

    mark: Mark
    account: str
    is_accepted: bool = True


@dataclass(slots=True)
class TakeOver:
    """A chat that the operator took over, once. He wrote ``first`` when he had it, ``last`` before
    he handed it back, and ``back`` after that, if he did."""

    pk: int
    account: str
    first: Mark
    last: Mark | None = None
    back: Mark | None = None


class Operator:
    """Writes through the pages of ``servers``, whichever answers."""

    def __init__(self, servers: list[ChaosServer], seed: str) -> None:
        self.written: list[Written] = []
        self.taken: list[TakeOver] = []
        self._current: TakeOver | None = None
        self._servers, self._chance = servers, random.Random(f"{seed}/hands")
        self._numbers = itertools.count(1)
        self._cockpits: dict[ChaosServer, Cockpit] = {}
        self._task = asyncio.create_task(self._live(), name="operator")

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        for cockpit in self._cockpits.values():
            cockpit.close()

    async def _live(self) -> None:
        while True:
            await asyncio.sleep(self._chance.uniform(0, PAUSE_SECONDS))
            await asyncio.to_thread(self._act, self._chance.choice(self._servers))

    def _act(self, server: ChaosServer) -> None:
        chat, cockpit = self._chat(server), self._at(server)
        if chat is None or cockpit is None:
            return
        chance = self._chance.random()
        if self._current and chance < HANDS_BACK:
            self._hand_back(cockpit, self._current)
        elif self._current is None and chance < TAKES:
            self._take_over(cockpit, chat)
        else:
            self._write(cockpit, chat)

    def _take_over(self, cockpit: Cockpit, chat: dict[str, Any]) -> None:
        if any(one.pk == chat["id"] for one in self.taken):
            return
        mark = self._mark(chat["kind"], int(chat["peer_id"]))
        taken = TakeOver(chat["id"], chat["account"], mark)
        self.taken.append(taken)  # it may be taken over though the page does not get to say so
        if self._send(cockpit, taken.pk, "take-over", {"hours": "1"}):
            self._current = taken
            self._say(cockpit, taken.pk, mark, taken.account)

    def _hand_back(self, cockpit: Cockpit, taken: TakeOver) -> None:
        taken.last = self._mark(taken.first.kind, taken.first.peer)
        self._say(cockpit, taken.pk, taken.last, taken.account)
        if self._send(cockpit, taken.pk, "hand-back", {}):
            self._current = None
            back = self._mark(taken.first.kind, taken.first.peer)
            if self._say(cockpit, taken.pk, back, taken.account):
                taken.back = back

    def _write(self, cockpit: Cockpit, chat: dict[str, Any]) -> None:
        mark = self._mark(chat["kind"], int(chat["peer_id"]))
        self._say(cockpit, chat["id"], mark, chat["account"])

    def _mark(self, kind: str, peer: int) -> Mark:
        return Mark(kind, peer, next(self._numbers), "hand")

    def _say(self, cockpit: Cockpit, pk: int, mark: Mark, account: str) -> bool:
        form = {"text": marks.by_hand(mark), "token": uuid.uuid4().hex}
        is_accepted = self._send(cockpit, pk, "answer", form)
        self.written.append(Written(mark, account, is_accepted))
        return is_accepted

    @staticmethod
    def _send(cockpit: Cockpit, pk: int, act: str, form: dict[str, str]) -> bool:
        """Whether the page of the chat says that it was done."""
        page = f"/admin/agent/chatsession/{pk}"
        try:
            cockpit.send_form(f"{page}/act/{act}/", form, page=f"{page}/change/")
            said = cockpit.page(f"{page}/change/")
        except (AssertionError, requests.RequestException):
            return False
        return any(words in said for words in _TAKEN)

    def _chat(self, server: ChaosServer) -> dict[str, Any] | None:
        """A chat to write in; None while there is none, or the server or the database is away."""
        if not server.is_running:
            return None
        try:
            return self._chance.choice(server.rows(_CHATS, CHATS))
        except (IndexError, psycopg.Error, sqlite3.Error):
            return None

    def _at(self, server: ChaosServer) -> Cockpit | None:
        """Signed in at ``server``; None while it is away."""
        if server not in self._cockpits:
            try:
                self._cockpits[server] = Cockpit(server)
            except (AssertionError, requests.RequestException):
                return None
        return self._cockpits[server]
