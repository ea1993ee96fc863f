"""The one thread in which large files are hashed, written and read.

Only one, because several would compete with the event loop for the processor when the pictures of a
message arrive together: on a single core, everything else would wait.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

_thread = ThreadPoolExecutor(1, thread_name_prefix="media")


async def run_on_disk_thread(call: Callable[[], T]) -> T:
    """The result of ``call``, which should take milliseconds. When cancelled, it may still be
    done."""
    return await asyncio.get_running_loop().run_in_executor(_thread, call)
