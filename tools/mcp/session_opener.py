"""Loads the library that makes connections to servers, at first use."""

from tools.fetch.destinations import DestinationResolver
from tools.mcp.listing import SessionOpener
from tools.processes.threads import run_in_thread


async def load_session_opener(destinations: DestinationResolver) -> SessionOpener:
    """A function that connects to servers; ``destinations`` checks their addresses.

    The library is imported at first use, in a thread: it takes half a second and 30 MiB, which most
    installations save.
    """

    def load() -> SessionOpener:
        from tools.mcp.connection import open_session

        return lambda settings, callbacks, is_old: open_session(
            settings, destinations, callbacks, is_old=is_old
        )

    return await run_in_thread(load)
