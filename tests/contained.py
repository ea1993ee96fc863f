"""What ``.ci/container`` asks the image, and what it gives it.

``python -m tests.contained URL TOKEN`` dials a server as a OneBot client and wants an answer, from
the built-in demo model. Without arguments it is a PostgreSQL and a Redis for containers of this
machine's network: it prints the folder of the socket and both addresses, and ends with its input.
"""

import asyncio
import sys
import time

from tests.cast import OWNER
from tests.commit_cutter import CommitCutter
from tests.fake_onebot import FakeOneBot, handshake_status, spoken
from tests.services import PostgresServer, RedisServer


async def ask(url: str, token: str) -> None:
    assert await handshake_status(url, token="not the token") == 403
    async with FakeOneBot(url, token=token) as bot:
        await bot.say_private(OWNER, "北京天气", message_id=int(time.time()))
        answer = spoken(await bot.next_action())
    assert "北京" in answer, answer


async def serve() -> None:
    with PostgresServer() as postgres, RedisServer() as redis:
        # Its own socket is in a folder that is closed to the user of the image.
        async with CommitCutter(postgres.socket_folder) as proxy:
            for path in (proxy.folder, *proxy.folder.iterdir()):
                path.chmod(0o777)
            url = proxy.through(postgres.new_database())
            sys.stdout.write(f"{proxy.folder}\n{url}\n{redis.url}\n")
            sys.stdout.flush()
            await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(ask(*sys.argv[1:]) if sys.argv[1:] else serve())
