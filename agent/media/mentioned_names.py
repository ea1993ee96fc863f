"""The names of people whom a message mentions, and whom neither its client nor the record names."""

import asyncio
import contextlib
from typing import Any

from agent.domain.types import IncomingMessage, MediaSource
from tools.text.fences import clean_name

#: Time for a client to give all names of a message, in seconds, and how many are asked for.
NAME_SECONDS, MOST_ASKED = 1.0, 5


def find_unnamed(message: IncomingMessage) -> list[str]:
    """The numbers of the people whom the header of ``message`` mentions without a name."""
    mentions = (message.header or {}).get("mentions", ())
    return [one["user_id"] for one in mentions if not one.get("name")][:MOST_ASKED]


async def name_mentions(source: MediaSource, message: IncomingMessage) -> dict[str, Any] | None:
    """The header of ``message`` with the names that the client gives in time; None where it gives
    none."""
    names: dict[str, str] = {}

    async def ask(user_id: str) -> None:
        names[user_id] = clean_name(await source.fetch_member_name(message.chat, user_id))

    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(NAME_SECONDS):
            await asyncio.gather(*map(ask, find_unnamed(message)))
    if not any(names.values()) or message.header is None:
        return None
    mentions = message.header["mentions"]
    named = [one | {"name": names.get(one["user_id"]) or one["name"]} for one in mentions]
    return message.header | {"mentions": named}
