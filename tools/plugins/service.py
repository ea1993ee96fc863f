"""What a plugin's process does for the server: load, call, configure, answer health checks, end.

All code of the plugin runs here: asynchronous tools on the event loop, synchronous ones in threads.
"""

import asyncio
import contextlib
import contextvars
import importlib
import importlib.util
import inspect
import linecache
import logging
import math
import os
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import tools.plugin_sdk
import tools.plugin_sdk.types
from tools.contract import InvalidDeclaration, ToolError
from tools.error_boundary import capture_error, contain
from tools.plugin_sdk import SDK_VERSION, Plugin
from tools.plugin_sdk.calls import CURRENT, Call, RpcError, RpcErrorCode
from tools.plugin_sdk.context import LOGGER, ctx
from tools.plugin_sdk.declarations import declaration_of
from tools.plugins.handlers import ToolHandler, build_handler, to_jsonable
from tools.plugins.peer import RpcPeer, open_pipe_streams

# What the kernel lets a plugin's process take. Where it has no such limits, only the server looks
# after it.

try:
    import resource
except ImportError:  # not a Unix
    resource = None  # type: ignore[assignment]


def apply_rlimits(limits: Mapping[str, object]) -> None:
    """Set ``memory_bytes`` and ``open_files``, each if it is given, for this process and its
    children, and disable core dumps.

    The server counts processes itself: the kernel counts all processes of a user.
    """
    if resource is None:
        return
    _set(resource.RLIMIT_CORE, 0)
    # Not RLIMIT_AS: libraries reserve far more addresses than they use memory.
    _set(resource.RLIMIT_DATA, _whole(limits.get("memory_bytes")))
    _set(resource.RLIMIT_NOFILE, _whole(limits.get("open_files")))


class CpuTimeLimit:
    """How many seconds of processor time the process may use until :meth:`renew` is called again;
    0: any number.

    A process that uses more is ended by SIGXCPU.
    """

    def __init__(self, limits: Mapping[str, object]) -> None:
        self._seconds = _whole(limits.get("cpu_seconds")) or 0
        self.renew()

    def renew(self) -> None:
        if resource is None or not self._seconds:
            return
        used = resource.getrusage(resource.RUSAGE_SELF)
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        soft = math.ceil(used.ru_utime + used.ru_stime) + self._seconds
        if hard == resource.RLIM_INFINITY or soft <= hard:
            resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def _set(kind: int, limit: int | None) -> None:
    """As far down as ``limit``; a lower limit that was there before stays."""
    if limit is None:
        return
    _, hard = resource.getrlimit(kind)
    most = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(kind, (most, most))


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


# A plugin's folder, loaded in the plugin's own process.

PACKAGE = "loaded_plugin"
"""The folder's name as a package: ``from .words import greet`` finds ``words.py`` next to
``plugin.py``."""
ENTRY = "plugin"
OLD_NAMES = {"maibot_sdk": tools.plugin_sdk, "maibot_sdk.types": tools.plugin_sdk.types}
"""What plugins for MaiBot import, where that is not installed."""


class PluginLoadError(Exception):
    """A plugin cannot be loaded; the text is the reason, first in one line, for its author and the
    operator."""


def load_plugin(folder: Path) -> tuple[Plugin, dict[str, ToolHandler]]:
    """The plugin in ``folder`` and its tools, by name. All of it, or :class:`PluginLoadError`."""
    with capture_error() as attempt:
        plugin, functions = _found(_module(folder))
        handlers = [build_handler(function, declaration_of(function)) for function in functions]  # type: ignore[arg-type]
    if attempt.error is not None:
        raise PluginLoadError(describe_load_error(attempt.error, folder)) from attempt.error
    if not handlers:
        raise PluginLoadError(
            f"{ENTRY}.py declares no tool: put @Tool above a function or a method of the plugin"
        )
    names = [handler.name for handler in handlers]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise PluginLoadError(f"two tools have the name {', '.join(twice)}")
    return plugin, dict(zip(names, handlers, strict=True))


def describe_load_error(error: BaseException, folder: Path) -> str:
    """What went wrong, in one line, and below it where: the traceback without our own part of
    it."""
    words = traceback.format_exception_only(error)[-1].strip()
    linecache.checkcache()
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(folder)
    ]
    if isinstance(error, SyntaxError) and error.filename:
        words = f"{Path(error.filename).name}, line {error.lineno}: {words}"
    elif frames:
        words = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}: {words}"
    return "\n".join([words, *(line.rstrip() for line in traceback.format_list(frames))])


def _module(folder: Path) -> ModuleType:
    if importlib.util.find_spec("maibot_sdk") is None:
        sys.modules.update(OLD_NAMES)
    try:
        _as_package(folder)
        return importlib.import_module(f"{PACKAGE}.{ENTRY}")
    except SystemExit as error:
        raise ImportError(
            f"it ended the process while it was imported: SystemExit {error}"
        ) from error


def _as_package(folder: Path) -> None:
    """Make ``folder`` the package ``PACKAGE``, whatever its own name, and run its ``__init__.py``
    if it has one."""
    start = folder / "__init__.py"
    spec = ModuleSpec(PACKAGE, None, is_package=True)
    if start.is_file():
        found = importlib.util.spec_from_file_location(
            PACKAGE, start, submodule_search_locations=[str(folder)]
        )
        spec = found or spec
    spec.submodule_search_locations = [str(folder)]
    package = sys.modules[PACKAGE] = importlib.util.module_from_spec(spec)
    if spec.loader is not None:
        spec.loader.exec_module(package)


def _found(module: ModuleType) -> tuple[Plugin, list[object]]:
    """The plugin that ``module`` makes, and every function in it that was declared a tool."""
    plugin = _made(module)
    functions = [
        thing
        for thing in vars(module).values()
        if str(getattr(thing, "__module__", "")).startswith(PACKAGE)
    ]
    return plugin, [each for each in (*_methods(plugin), *functions) if declaration_of(each)]


def _made(module: ModuleType) -> Plugin:
    make = getattr(module, "create_plugin", None)
    if callable(make):
        if not isinstance(made := make(), Plugin):
            raise InvalidDeclaration(
                f"create_plugin() returns {type(made).__name__}; a Plugin is wanted"
            )
        return made
    kinds = [thing for thing in vars(module).values() if _is_plugin(thing, module)]
    if len(kinds) > 1:
        names = ", ".join(kind.__name__ for kind in kinds)
        raise InvalidDeclaration(
            f"{ENTRY}.py has several plugins: {names}; say which with create_plugin()"
        )
    return kinds[0]() if kinds else Plugin()


def _is_plugin(thing: object, module: ModuleType) -> bool:
    return (
        isinstance(thing, type)
        and issubclass(thing, Plugin)
        and thing.__module__ == module.__name__
    )


def _methods(plugin: Plugin) -> Iterator[object]:
    """The methods of ``plugin``, each once, those of its bases first, in source order."""
    names = dict.fromkeys(name for kind in reversed(type(plugin).__mro__) for name in vars(kind))
    for name in names:
        if declaration_of(getattr(type(plugin), name, None)):
            yield getattr(plugin, name)


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
        self._calls: set[asyncio.Task[object] | None] = set()
        self._is_ending = False
        self._over = asyncio.Event()
        self._processor_time = CpuTimeLimit({})
        threading.stack_size(STACK_BYTES)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="tool")
        self._left: set[Future[object]] = set()

    async def run(self, reads: int, writes: int) -> None:
        """Serve until the server closes the pipes or has said ``shutdown``, or no thread is left to
        work in."""
        self.loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._peer = RpcPeer(*await open_pipe_streams(reads, writes), self._handle)
        # The logs of the plugin and its libraries go to the server, and so do warnings about
        # deprecated names.
        log = PeerLog(self._peer, self.loop)
        logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=[log], force=True)
        logging.captureWarnings(True)
        warnings.filterwarnings("default", category=DeprecationWarning, module=PACKAGE)
        served = asyncio.create_task(self._peer.run())
        over = asyncio.create_task(self._over.wait())
        await asyncio.wait([served, over], return_when=asyncio.FIRST_COMPLETED)
        if not served.done():
            await asyncio.wait([served], timeout=PARTING_SECONDS)

    async def capability(self, token: str, name: str, arguments: dict[str, object]) -> object:
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

    async def _handle(self, method: str, payload: object) -> Any:
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
        self, plugin_id: str, config: dict[str, object], limits: Mapping[str, object]
    ) -> dict[str, object]:
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

    async def _invoke(
        self, name: str, arguments: dict[str, object], call: Call
    ) -> dict[str, object]:
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

    async def _configure(self, config: dict[str, object]) -> None:
        if self._plugin is None:
            raise RpcError(RpcErrorCode.PLUGIN_NOT_FOUND, "no plugin is loaded")
        ctx.config = config
        update: Callable[..., object] = self._plugin.on_config_update
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
        self, call: Callable[[], object], is_async: bool | None = None, *, is_tool: bool = False
    ) -> object:
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

    def _leave(self, work: Future[object]) -> None:
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
