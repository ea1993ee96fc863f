"""A runner as a real process over real pipes, and the server's end of them."""

import asyncio
import contextlib
import os
import sys
import textwrap
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from tools.plugin_sdk.calls import RpcError
from tools.plugins import runner
from tools.plugins.peer import RpcPeer, open_pipe_streams
from tools.processes.process_reaper import keeper_command

PATIENCE = 30.0


class Runner:
    """The server's side of one plugin's process. What it asks for is answered from ``gives``:
    values, or functions of the arguments."""

    def __init__(self, process: Process, gives: dict[str, Any]) -> None:
        self.process = process
        self.gives = gives
        self.asked: list[dict[str, Any]] = []
        self.logged: list[dict[str, Any]] = []
        self.progress: list[dict[str, Any]] = []
        self.heard = asyncio.Event()
        self.peer: RpcPeer

    async def handle(self, method: str, payload: Any) -> Any:
        self.heard.set()
        match method:
            case "log":
                self.logged.append(payload)
            case "progress":
                self.progress.append(payload)
            case "capability":
                self.asked.append(payload)
                if payload["name"] in self.gives:
                    given = self.gives[payload["name"]]
                    return given(**payload["arguments"]) if callable(given) else given
                raise RpcError("E_CAPABILITY_DENIED", f"{payload['name']} is not granted")
        return None

    async def request(self, method: str, payload: Any = None) -> Any:
        return await self.peer.request(method, payload or {}, PATIENCE)

    async def load(
        self, config: dict[str, Any] | None = None, **limits: int
    ) -> list[dict[str, Any]]:
        loaded = await self.request(
            "load", {"plugin_id": "test.plugin", "config": config or {}, "limits": limits}
        )
        return list(loaded["tools"])

    async def invoke(
        self, name: str, arguments: dict[str, Any] | None = None, **context: Any
    ) -> Any:
        told = {
            "session_id": "s1",
            "stream_id": "s1",
            "user_id": "42",
            "group_id": "7",
            "platform": "qq",
            **context,
        }
        payload = {"name": name, "arguments": arguments or {}, "context": told, "call": "c1"}
        return (await self.request("invoke", payload))["value"]

    async def has_logged(self, text: str) -> bool:
        """Whether a line with ``text`` comes before long."""
        async with asyncio.timeout(PATIENCE):
            while not any(text in line["text"] for line in self.logged):
                self.heard.clear()
                await self.heard.wait()
        return True


@contextlib.asynccontextmanager
async def started(folder: Path, **gives: Any) -> AsyncIterator[Runner]:
    """A runner for the plugin in ``folder``, not yet loaded; it is gone at the end."""
    (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
    command = keeper_command(
        sys.executable, "-I", runner.__file__, str(folder), str(theirs_in), str(theirs_out)
    )
    process = await asyncio.create_subprocess_exec(
        *command, stdout=PIPE, stderr=PIPE, pass_fds=(theirs_in, theirs_out)
    )
    os.close(theirs_in)
    os.close(theirs_out)
    made = Runner(process, {name.replace("_", "."): value for name, value in gives.items()})
    made.peer = RpcPeer(*await open_pipe_streams(ours_in, ours_out), made.handle)
    run = asyncio.create_task(made.peer.run())
    try:
        yield made
    finally:
        made.peer.close()
        await run
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        async with asyncio.timeout(PATIENCE):
            await process.communicate()


def write_plugin(folder: Path, source: str, **files: str) -> Path:
    """A plugin folder with ``plugin.py`` and other modules."""
    folder.mkdir(exist_ok=True)
    for name, text in {"plugin": source, **files}.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(text), encoding="utf-8")
    return folder
