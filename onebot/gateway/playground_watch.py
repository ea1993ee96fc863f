"""Closing the socket of a playground once its user may use it no more."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from onebot.connections.handshake import Handshake, PlaygroundDoor
from tools.error_boundary import capture_error
from tools.time_limits import TIME_LIMITS

logger = logging.getLogger(__name__)

#: How often it is asked whether a socket may stay open, in seconds.
CHECK_SECONDS = TIME_LIMITS.playground_check


async def is_open(door: PlaygroundDoor, account: str, handshake: Handshake) -> bool:
    """Whether a browser may speak for ``account`` now; False too where nobody knows."""
    return await _ask(door, account, handshake) is True


async def watch(
    door: PlaygroundDoor, account: str, handshake: Handshake, close: Callable[[], Awaitable[None]]
) -> None:
    """Ask again and again, and ``close`` once it may not. While the database cannot be read, what
    it said last counts."""
    while True:
        await asyncio.sleep(CHECK_SECONDS)
        if await _ask(door, account, handshake) is False:
            logger.info("Closed playground %s: its user may use it no more", account)
            await close()
            return


async def _ask(door: PlaygroundDoor, account: str, handshake: Handshake) -> bool | None:
    with capture_error() as attempt:
        return await door.is_open(account, handshake)
    logger.warning("Whether playground %s may be open is not known: %s", account, attempt.error)
    return None
