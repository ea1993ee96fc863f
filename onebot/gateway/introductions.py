"""Asking a client, once a connection, who it is and what its account is called."""

import asyncio
import logging
from collections.abc import Callable

from agent.domain.playground import is_playground
from onebot.connections.client import OneBotClient
from onebot.protocol.introductions import LOGIN, VERSION, parse_client_name, parse_nickname
from tools.error_boundary import log_errors
from tools.log_limit import LogLimit

logger = logging.getLogger(__name__)
LogLimit(logger)

#: Time for a client to say who it is, in seconds.
ASK_SECONDS = 5.0


class Introductions:
    """Nobody waits for them. A client that does not answer is not asked again before it
    connects anew."""

    def __init__(self, client: OneBotClient, save: Callable[[str, str, str], None]) -> None:
        """``save`` is given the account, its nickname and the name of the client."""
        self._client = client
        self._save = save
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def connected(self, self_id: str) -> None:
        """A client has connected. Playgrounds are known."""
        if is_playground(self_id):
            return
        if earlier := self._tasks.get(self_id):
            earlier.cancel()
        task = asyncio.get_running_loop().create_task(self._ask(self_id), name="introduction")
        self._tasks[self_id] = task
        task.add_done_callback(lambda done: self._forget(self_id, done))

    async def close(self) -> None:
        """End all questions."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, self_id: str) -> None:
        with log_errors(logger, "A client could not be asked who it is"):
            login, version = await asyncio.gather(
                self._client.call_optional(self_id, LOGIN, {}, ASK_SECONDS),
                self._client.call_optional(self_id, VERSION, {}, ASK_SECONDS),
            )
            self._save(self_id, parse_nickname(login), parse_client_name(version))

    def _forget(self, self_id: str, task: "asyncio.Task[None]") -> None:
        if self._tasks.get(self_id) is task:
            del self._tasks[self_id]
