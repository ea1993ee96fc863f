"""The folder of plugins, as it is watched."""

import asyncio

from tests.tools.plugins.hosting import PATIENCE, plugin
from tools.plugins.folder import scan_folder, watch_folder


async def test_what_changes_while_the_folder_is_first_looked_at_is_seen(tmp_path):
    plugin(tmp_path, "first")
    seen = asyncio.Event()

    async def look() -> None:
        found = [each.folder for each in scan_folder(tmp_path)]
        if "second" in found:
            seen.set()
        else:
            plugin(tmp_path, "second")

    watching = asyncio.create_task(watch_folder(tmp_path, look))
    try:
        async with asyncio.timeout(PATIENCE):
            await seen.wait()
    finally:
        watching.cancel()
        await asyncio.wait([watching])
