"""What a plugin's process does for the server: load, call, configure, answer health checks, end.

All code of the plugin runs here: asynchronous tools on the event loop, synchronous ones in threads.
"""

import asyncio
import contextlib
import contextvars
import inspect
import logging
import os
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from tools.error_boundary import capture_error, contain
from tools.errors import ToolError
from tools.plugin_sdk import SDK_VERSION, Plugin
from tools.plugin_sdk.calls import CURRENT, Call, RpcError, RpcErrorCode
from tools.plugin_sdk.context import LOGGER, ctx
from tools.plugins.handlers import ToolHandler, to_jsonable
from tools.plugins.loading import PACKAGE, PluginLoadError, describe_load_error, load_plugin
from tools.plugins.peer import RpcPeer, open_pipe_streams
from tools.plugins.rlimits import CpuTimeLimit, apply_rlimits

T = TypeVar("T")

THREADS = 16
"""The most synchronous tools that run at the same time; others wait."""
STACK_BYTES = 4 * 1024 * 1024
"""Of each thread; they count against the memory that the plugin may take."""
UNLOAD_SECONDS, PARTING_SECONDS = 2.0, 1.0
"""For ``on_unload``; for the server to close the pipes after that."""


LOG_TEXT_CHARS = 8_000
LOG_LINES_WAITING = 1_000
"""The most lines queued for the event loop; more are dropped, and their number is reported."""


def serve_plugin(folder: Path, reads: int, writes: int) -> None:
    """Serve, and end the process; threads of the plugin's that still run do not keep it."""
    status = 1
    try:
        asyncio.run(PluginService(folder).run(reads, writes))
        status = 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


class PluginService:
    """One plugin and the server's end of its pipes. Used from the event loop's thread, except where
    noted."""

    def __init__(self, folder: Path) -> None:
        self.loop: asyncio.AbstractEventLoop
        self._folder = folder
        self._peer: RpcPeer
        self._plugin: Plugin | None = None
        self._tools: dict[str, ToolHandler] = {}
        self._calls: set[asyncio.Task[Any] | None] = set()
        self._is_ending = False
        self._over = asyncio.Event()
        self._processor_time = CpuTimeLimit({})
        threading.stack_size(STACK_BYTES)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="tool")
        self._left: set[Future[Any]] = set()

    async def run(self, reads: int, writes: int) -> None:
        """Serve until the server closes the pipes or has said ``shutdown``, or no thread is left to
        work in."""
        self.loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._peer = RpcPeer(*await open_pipe_streams(reads, writes), self._handle)
        _start_logging(PeerLog(self._peer, self.loop))
        served = asyncio.create_task(self._peer.run())
        over = asyncio.create_task(self._over.wait())
        await asyncio.wait([served, over], return_when=asyncio.FIRST_COMPLETED)
        if not served.done():
            await asyncio.wait([served], timeout=PARTING_SECONDS)

    async def capability(self, token: str, name: str, arguments: dict[str, Any]) -> Any:
        return await self._peer.request(
            "capability", {"name": name, "arguments": to_jsonable(arguments), "call": token}
        )

    def progress(self, token: str, text: str, tell: bool) -> None:
        payload = {"call": token, "text": str(text), "tell": bool(tell)}
        if (
            threading.get_ident() == self._thread
        ):  # immediately, or the answer of a tool that ends now would be sent before it
            self._peer.notify("progress", payload)
        else:
            self.loop.call_soon_threadsafe(self._peer.notify, "progress", payload)

    async def _handle(self, method: str, payload: Any) -> Any:
        match method, payload:
            case "invoke", {
                "name": str(name),
                "arguments": dict(arguments),
                "context": dict(context),
                "call": str(token),
            }:
                return await self._invoke(name, arguments, Call.of(token, context))
            case "health", _:
                if not self._calls:
                    self._processor_time.renew()
                return {"calls": len(self._calls), "is_loaded": self._plugin is not None}
            case "load", {
                "plugin_id": str(plugin_id),
                "config": dict(config),
                "limits": dict(limits),
            }:
                return await self._load(plugin_id, config, limits)
            case "configure", {"config": dict(config)}:
                return await self._configure(config)
            case "shutdown", dict():
                return await self._shut_down(float(payload.get("seconds") or 0))
        raise RpcError(
            RpcErrorCode.METHOD_NOT_ALLOWED, f"{method} is not known, or not in that form"
        )

    async def _load(
        self, plugin_id: str, config: dict[str, Any], limits: Mapping[str, Any]
    ) -> dict[str, Any]:
        if self._plugin is not None:
            raise RpcError(
                RpcErrorCode.RELOAD_IN_PROGRESS,
                "a plugin is loaded already; another edition has another process",
            )
        apply_rlimits(limits)
        self._processor_time = CpuTimeLimit(limits)
        ctx.attach(self, plugin_id, config)
        try:
            plugin, tools = load_plugin(self._folder)
        except PluginLoadError as fault:
            raise RpcError(RpcErrorCode.PLUGIN_FAILED, str(fault)) from None
        await self._own(plugin.on_load)
        self._plugin, self._tools = plugin, tools
        return {"tools": [tool.declared for tool in tools.values()], "sdk_version": SDK_VERSION}

    async def _invoke(self, name: str, arguments: dict[str, Any], call: Call) -> dict[str, Any]:
        if self._is_ending:
            raise RpcError(RpcErrorCode.SHUTTING_DOWN, "the plugin is being ended")
        if (tool := self._tools.get(name)) is None:
            raise RpcError(RpcErrorCode.METHOD_NOT_ALLOWED, f"there is no tool {name[:64]!r}")
        self._processor_time.renew()
        CURRENT.set(call)
        task = asyncio.current_task()
        self._calls.add(task)
        try:
            return {
                "value": await self._own(
                    partial(tool.call, arguments, call), tool.is_async, is_tool=True
                )
            }
        except asyncio.CancelledError:
            if self._is_ending:
                raise RpcError(RpcErrorCode.SHUTTING_DOWN, "the plugin was ended") from None
            raise
        finally:
            self._calls.discard(task)

    async def _configure(self, config: dict[str, Any]) -> None:
        if self._plugin is None:
            raise RpcError(RpcErrorCode.PLUGIN_NOT_FOUND, "no plugin is loaded")
        ctx.config = config
        update: Callable[..., Any] = self._plugin.on_config_update
        wants = [
            p
            for p in inspect.signature(update).parameters.values()
            if p.default is p.empty and p.kind is not p.VAR_KEYWORD
        ]
        given = (
            ("self", config, "")
            if len(wants) >= len(("scope", "config_data", "version"))
            else (config,)
        )
        await self._own(partial(update, *given), inspect.iscoroutinefunction(update))

    async def _shut_down(self, seconds: float) -> dict[str, int]:
        """Let calls finish, stop those that do not, and let the plugin tidy up; then the process
        ends."""
        self._is_ending = True
        calls = {call for call in self._calls if call is not None}
        if calls:
            await asyncio.wait(calls, timeout=seconds)
        stopped = [call for call in calls if not call.done()]
        for call in stopped:
            call.cancel()
        if self._plugin is not None:
            with capture_error():
                await asyncio.wait_for(self._own(self._plugin.on_unload), UNLOAD_SECONDS)
        self.loop.call_soon(self._over.set)
        return {"stopped": len(stopped)}

    async def _own(
        self, call: Callable[[], Any], is_async: bool | None = None, *, is_tool: bool = False
    ) -> Any:
        """The result of the plugin's own code, as JSON if it is a tool's. Raises :class:`RpcError`
        for every error of that code; cancellation passes through.

        The message of the error is for the model, which gets only the text, or for the operator.
        """
        with capture_error() as attempt:
            value = await contain(
                self._called(
                    call, inspect.iscoroutinefunction(call) if is_async is None else is_async
                )
            )
            return to_jsonable(value) if is_tool else None
        error = attempt.error or RuntimeError("it ended without a result")
        if isinstance(error, RpcError):  # a capability's, which the plugin did not catch
            raise RpcError(error.code, error.message)
        words = describe_load_error(error, self._folder)
        if not is_tool:
            raise RpcError(RpcErrorCode.PLUGIN_FAILED, words)
        if not isinstance(error, ToolError):
            LOGGER.error("%s", words)
        raise RpcError(RpcErrorCode.PLUGIN_FAILED, str(error).strip() or type(error).__name__)

    async def _called(self, call: Callable[[], Any], is_async: bool) -> Any:
        if is_async:
            return await call()
        work = self._threads.submit(contextvars.copy_context().run, _without_stop_iteration, call)
        try:
            value = await asyncio.wrap_future(work)
        finally:
            if not work.done():
                self._leave(work)
        return await value if inspect.isawaitable(value) else value

    def _leave(self, work: Future[Any]) -> None:
        """``work`` was given up, and its thread keeps running. When all threads were given up, the
        process ends and a new one starts."""
        self._left.add(work)
        work.add_done_callback(self._left.discard)
        if len(self._left) >= THREADS:
            LOGGER.error("%d calls were given up and never ended: the process ends", THREADS)
            self.loop.call_soon(self._over.set)


class PeerLog(logging.Handler):
    """Sends each record as a notice ``log {level, text}``, from whatever thread it comes."""

    def __init__(self, peer: RpcPeer, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._peer = peer
        self._loop = loop
        self._waiting = 0
        self._left_out = 0

    def emit(self, record: logging.LogRecord) -> None:
        if self._waiting >= LOG_LINES_WAITING:
            self._left_out += 1
            return
        payload = {
            "level": record.levelname.lower()[:8],
            "text": self.format(record)[:LOG_TEXT_CHARS],
        }
        self._waiting += 1
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._send, payload)

    def _send(self, payload: dict[str, str]) -> None:
        self._waiting -= 1
        left_out, self._left_out = self._left_out, 0
        # The server may be gone or not reading: then the error cannot be reported.
        with contextlib.suppress(RpcError):
            self._peer.notify("log", payload)
            if left_out:
                text = f"{left_out} lines were left out"
                self._peer.notify("log", {"level": "warning", "text": text})


def _without_stop_iteration(call: Callable[[], T]) -> T:
    """A future cannot hold a StopIteration: awaiting it would never end."""
    try:
        return call()
    except StopIteration as error:
        raise RuntimeError("StopIteration") from error


def _start_logging(handler: logging.Handler) -> None:
    """The logs of the plugin and its libraries go to the server, and so do warnings about
    deprecated names."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=[handler], force=True)
    logging.captureWarnings(True)
    warnings.filterwarnings("default", category=DeprecationWarning, module=PACKAGE)
