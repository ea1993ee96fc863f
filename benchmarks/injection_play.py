"""Plays cases of :mod:`benchmarks.injection_cases` as the client of one account, many chats at
once."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

from benchmarks.injection_cases import Case
from benchmarks.injection_scenes import GROUPS, client_data, steps

Tell = Callable[[dict[str, Any]], Awaitable[None]]
Ready = Callable[[Case], Awaitable[None]]


class Player:
    """``tell`` sends an event; every action of the server goes to :meth:`answer_action`. ``ready`` is
    awaited before the question of a case, and an answer for so many ``seconds``."""

    def __init__(self, account: int, tell: Tell, ready: Ready, *, seconds: float) -> None:
        self._account, self._tell, self._ready = account, tell, ready
        self._seconds = seconds
        self._said: defaultdict[int, asyncio.Queue[str]] = defaultdict(asyncio.Queue)
        self._sent = 0

    async def play(self, case: Case) -> str:
        """The bot's answer to the question of ``case``. Raises TimeoutError if one of its answers
        does not come in time."""
        answer = ""
        *before, question = steps(case, self._account)
        for step in (*before, question):
            if step is question:
                await self._ready(case)
            await self._tell(step.event)
            if step.is_answered:
                async with asyncio.timeout(self._seconds):
                    answer = await self._said[GROUPS + case.number].get()
        return answer

    def answer_action(self, action: dict[str, Any]) -> dict[str, Any]:
        """The client's answer to an action, without its echo."""
        name, params = str(action.get("action")), action.get("params") or {}
        if not name.startswith("send_"):
            data = client_data(action)
            if data is None:
                return {"status": "failed", "retcode": 1404, "data": None, "wording": "none"}
            return {"status": "ok", "retcode": 0, "data": data}
        self._sent += 1
        words = "".join(
            part["data"]["text"] for part in params.get("message", []) if part["type"] == "text"
        )
        self._said[int(params.get("group_id", 0))].put_nowait(words)
        return {"status": "ok", "retcode": 0, "data": {"message_id": 700_000_000 + self._sent}}
