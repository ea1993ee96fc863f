"""Asking a client, once a connection, who it is and what its account is called.

What a client says of itself and of its account.

Rules: https://github.com/botuniverse/onebot-11/blob/master/api/public.md (get_login_info,
get_version_info). Pure.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial

from agent.domain.types import ChatAddress, is_playground
from agent.record.chats.sessions import find_title, name_chat
from agent.record.record import Record
from onebot.connections.client import OneBotClient
from onebot.protocol.actions import ActionResponse
from onebot.protocol.segments import id_number, value_text
from tools.error_boundary import KeptTasks, LogLimit, log_errors
from tools.text.storable import make_storable

LOGIN, VERSION = "get_login_info", "get_version_info"
#: Characters that are kept of the name of an account, and of a client.
NICKNAME_LIMIT, CLIENT_LIMIT = 100, 200


def parse_client_name(response: ActionResponse | None) -> str:
    """``NapCat.Onebot/4.8.0``; "" where the client did not say."""
    parts = (_name(response, "app_name"), _name(response, "app_version"))
    return "/".join(filter(None, parts))[:CLIENT_LIMIT] if parts[0] else ""


def _name(response: ActionResponse | None, name: str) -> str:
    """One line of text, as far as a database can hold it."""
    said: object = response.data if response is not None and response.is_success else None
    words = said.get(name) if isinstance(said, dict) else ""
    text = words[: 2 * CLIENT_LIMIT] if isinstance(words, str) else ""
    return " ".join(str(make_storable(text)).split())


logger = logging.getLogger(__name__)
LogLimit(logger)


# The names of groups that clients leave out of their messages, as Lagrange and go-cqhttp do: asked
# for in the background, once a chat and connection.

#: The pause before the next group is asked for, in seconds.
PAUSE_SECONDS = 0.5
#: Groups of one connection that are asked for, and names of all accounts that are remembered.
MOST_ASKED, MOST_NAMES = 2_000, 10_000
TITLE_LIMIT = 200


class GroupNames:
    """Asks the clients of this process what groups are called. Used from one event loop."""

    def __init__(self, client: OneBotClient, record: Record) -> None:
        self._client = client
        self._record = record
        self._asked: dict[str, set[ChatAddress]] = {}
        self._waiting: dict[str, deque[ChatAddress]] = {}
        self._names: dict[ChatAddress, str] = {}
        self._tasks = KeptTasks()
        self._is_closed = False

    def connected(self, account: str) -> None:
        """What was asked on the connection before may be asked again."""
        self._asked.pop(account, None)

    def find(self, chat: ChatAddress) -> str:
        """The name of a group as its client gave it; "" where it was not asked, or gave none."""
        return self._names.get(chat, "")

    def ask(self, chat: ChatAddress) -> None:
        """Have the name of ``chat`` found out, some time. Returns at once."""
        asked = self._asked.setdefault(chat.account, set())
        if chat in asked or chat in self._names or len(asked) >= MOST_ASKED:
            return
        asked.add(chat)
        # Together with the message that came from there.
        self._record.submit(find_title, chat).add_done_callback(partial(self._on_found, chat))

    def _on_found(self, chat: ChatAddress, found: "asyncio.Future[str]") -> None:
        if self._is_closed or found.cancelled() or found.exception() or found.result():
            return
        self._waiting.setdefault(chat.account, deque()).append(chat)
        if chat.account not in self._tasks:
            self._tasks.begin(self._work(chat.account), "names", chat.account)

    async def close(self) -> None:
        """Ask no more."""
        self._is_closed = True
        await self._tasks.close()

    async def _work(self, account: str) -> None:
        try:
            waiting = self._waiting[account]
            while waiting:
                chat = waiting.popleft()
                with log_errors(logger, "The name of a group could not be found out"):
                    await self._ask(chat)
                    await asyncio.sleep(PAUSE_SECONDS)
        finally:
            del self._tasks[account]
            self._waiting.pop(account, None)

    async def _ask(self, chat: ChatAddress) -> None:
        response = await self._client.call_optional(
            chat.account, "get_group_info", {"group_id": id_number(chat.peer_id)}, ASK_SECONDS
        )
        data = response.data if response is not None and response.is_success else None
        if isinstance(data, dict) and (
            name := str(make_storable(value_text(data.get("group_name")))).strip()[:TITLE_LIMIT]
        ):
            if len(self._names) >= MOST_NAMES:
                del self._names[next(iter(self._names))]
            self._names[chat] = name
            await self._record.submit(name_chat, chat, name)


#: Time for a client to say who it is, or to name a group, in seconds.
ASK_SECONDS = 5.0


class Introductions:
    """Nobody waits for them. A client that does not answer is not asked again before it
    connects anew."""

    def __init__(self, client: OneBotClient, save: Callable[[str, str, str], None]) -> None:
        """``save`` is given the account, its nickname and the name of the client."""
        self._client = client
        self._save = save
        self._tasks = KeptTasks()

    def connected(self, self_id: str) -> None:
        """A client has connected. Playgrounds are known."""
        if is_playground(self_id):
            return
        if earlier := self._tasks.get(self_id):
            earlier.cancel()
        self._tasks.begin(self._ask(self_id), "introduction", self_id)

    async def close(self) -> None:
        """End all questions."""
        await self._tasks.close()

    async def _ask(self, self_id: str) -> None:
        with log_errors(logger, "A client could not be asked who it is"):
            login, version = await asyncio.gather(
                self._client.call_optional(self_id, LOGIN, {}, ASK_SECONDS),
                self._client.call_optional(self_id, VERSION, {}, ASK_SECONDS),
            )
            self._save(
                self_id, _name(login, "nickname")[:NICKNAME_LIMIT], parse_client_name(version)
            )
