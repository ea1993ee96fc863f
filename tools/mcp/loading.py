"""The library for MCP, loaded when somebody needs it: it takes half a second and 30 MiB, which most
installations save."""

import importlib
from functools import partial

from tools.fetch.destinations import DestinationResolver
from tools.mcp.listing import SessionOpener
from tools.processes.threads import run_in_thread

_MODULE = "tools.mcp.connection"


async def load_session_opener(destinations: DestinationResolver) -> SessionOpener:
    """What connects to servers whose addresses ``destinations`` judges. The loop goes on
    meanwhile."""
    module = await run_in_thread(partial(importlib.import_module, _MODULE))
    return lambda settings, callbacks, is_old: module.open_session(
        settings, destinations, callbacks, is_old=is_old
    )
