"""``python -m tests.contained URL TOKEN``: dials a server as a OneBot client and wants an answer.

What ``.ci/container`` asks the image; the server answers from its built-in demo model.
"""

import asyncio
import sys

from tests.cast import OWNER
from tests.fake_onebot import FakeOneBot, handshake_status, spoken


async def main(url: str, token: str) -> None:
    assert await handshake_status(url, token="not the token") == 403
    async with FakeOneBot(url, token=token) as bot:
        await bot.say_private(OWNER, "北京天气")
        answer = spoken(await bot.next_action())
    assert "北京" in answer, answer


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
