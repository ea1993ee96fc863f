"""A OneBot client beside a browser: on a thread, for tests that are not async."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from tests.cast import fresh_id
from tests.conftest import TOKEN
from tests.environment import PATIENCE
from tests.fake_onebot import FakeOneBot, Frame, Message, spoken
from tests.live_server import LiveServer

Result = TypeVar("Result")


class Dialled:
    """A connected client. Every method blocks."""

    def __init__(self, bot: FakeOneBot, loop: asyncio.AbstractEventLoop) -> None:
        self.bot, self._loop = bot, loop

    @property
    def account(self) -> str:
        return str(self.bot.self_id)

    def say_private(self, user: int, message: Message, **fields: Any) -> Frame:
        return self._done(self.bot.say_private(user, message, **fields))

    def say_group(self, group: int, user: int, message: Message, **fields: Any) -> Frame:
        return self._done(self.bot.say_group(group, user, message, **fields))

    def tell(self, post_type: str, **fields: Any) -> Frame:
        return self._done(self.bot.tell(post_type, **fields))

    def next_action(self) -> Frame:
        """The next action that asks for more than information."""
        return self._done(self.bot.next_action())

    def heard(self) -> str:
        """The words of the next message that the server sends."""
        return spoken(self.next_action())

    def wait(self, work: Coroutine[Any, Any, Result]) -> Result:
        """What ``work`` returns, on the thread of the client."""
        return self._done(work)

    def _done(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)


@contextmanager
def dial(
    server: LiveServer, account: int | None = None, token: str = TOKEN, nickname: str = "bot"
) -> Iterator[Dialled]:
    """Connect as ``account``, or as one that no other test uses."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="onebot-client", daemon=True)
    thread.start()
    bot = FakeOneBot(server.ws_url, account or fresh_id(), token=token, nickname=nickname)
    one = Dialled(bot, loop)
    try:
        one._done(bot.__aenter__())
        yield one
        one._done(bot.__aexit__(None))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE)
        loop.close()
