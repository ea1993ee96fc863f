"""The connection to a loaded plugin: calls go out; its logs and requests come in."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self

from django.utils.translation import gettext

from tools.contract import ToolExecutionContext, ToolInvocation
from tools.plugin_sdk.calls import RpcError, RpcErrorCode
from tools.plugins.capabilities import CallInFlight
from tools.plugins.peer import RpcPeer
from tools.plugins.process import ProcessExit, ProcessLimits, ProcessUsage, RunnerProcess
from tools.plugins.rows import PluginSettings

logger = logging.getLogger(__name__)

#: Time limits of a plugin: to load, to apply a new configuration, and to answer a health check.
LOAD_SECONDS, CONFIGURE_SECONDS, HEALTH_SECONDS = 30.0, 10.0, 5.0
#: A plugin may take so long to tidy up; its process, to end after that.
UNLOAD_SECONDS, PARTING_SECONDS = 2.0, 0.5
#: The longest a call can be waited for; its own limit is the registry's.
CALL_SECONDS = 7_200.0
#: Requests of a plugin: how many at the same time, and how long each may take.
ASKED_AT_ONCE, ASKED_SECONDS = 8, 120.0
#: Between two words of one call about how far it is.
PROGRESS_SECONDS = 0.1
#: Words that are left out, one after another, until a plugin is read more slowly; how long it waits
#: for each so many.
PATIENCE, PAUSE_SECONDS = 50, 0.01


class LoadFailed(Exception):  # noqa: N818 - it says what happened
    """A plugin could not be loaded: why, in words for the operator, and what else is known."""

    def __init__(self, reason: str, details: str = "") -> None:
        super().__init__(reason)
        self.details = details


class LinkListener(Protocol):
    """Receives the logs of plugins, and answers their requests."""

    def line(self, plugin_pk: int, level: str, text: str) -> bool: ...

    async def run_capability(
        self, plugin: PluginSettings, call: CallInFlight | None, name: str, arguments: object
    ) -> object: ...


@dataclass(slots=True, eq=False)
class PluginCall:
    """A call under way, with the processor time that is laid to it and what the plugin has asked
    for in it."""

    flight: CallInFlight
    cpu_seconds: float = 0.0
    told_at: float = 0.0
    asked: set[asyncio.Task[object]] = field(default_factory=set)


class PluginLink:
    """One process of one plugin; :meth:`open` makes one. ``plugin`` gives its settings as they are
    now.

    Belongs to the event loop's thread. Once the process is gone, or has sent what is no
    message, every call fails and :attr:`over` is done.
    """

    def __init__(
        self, process: RunnerProcess, plugin: Callable[[], PluginSettings], listener: LinkListener
    ) -> None:
        self.process = process
        self.declarations: list[object] = []
        self.runner_pid = process.pid
        self.is_retired = False
        """Whether it is being ended because it is no longer wanted, and not because of something
        that it did."""
        self._plugin = plugin
        self._listener = listener
        self._calls: dict[str, PluginCall] = {}
        self._asked = 0
        self._left_out = 0
        self._number = 0
        self._cpu_seconds: float | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._peer = RpcPeer(*process.streams, self._handle)
        self.over: asyncio.Task[ProcessExit] = asyncio.create_task(
            self._serve(), name=f"plugin {plugin().plugin_id}"
        )

    @classmethod
    async def open(
        cls,
        folder: Path,
        plugin: Callable[[], PluginSettings],
        limits: ProcessLimits,
        listener: LinkListener,
    ) -> Self:
        """Start a process and have it load the plugin in ``folder``.

        Raises :class:`LoadFailed` when that does not succeed within its time, and OSError
        when no process can be started; nothing is left of it then, nor after cancellation.
        """
        settings = plugin()
        process = await RunnerProcess.spawn(
            folder, lambda level, text: listener.line(settings.pk, level, text)
        )
        link = cls(process, plugin, listener)
        payload = {
            "plugin_id": settings.plugin_id,
            "config": dict(settings.config),
            "limits": limits.payload(),
        }
        try:
            answer = await link._peer.request("load", payload, LOAD_SECONDS)
        except RpcError as error:
            ending = await link.kill()
            raise _load_failure(error, ending) from error
        except BaseException:
            await asyncio.shield(link.kill())
            raise
        tools = answer.get("tools") if isinstance(answer, dict) else None
        link.declarations = tools if isinstance(tools, list) else []
        link.runner_pid = process.runner_pid()
        return link

    @property
    def is_open(self) -> bool:
        """Whether the plugin can still be reached."""
        return self._peer.is_open

    async def call(
        self, name: str, invocation: ToolInvocation, context: ToolExecutionContext
    ) -> object:
        """What the plugin's tool ``name`` returns. Raises :class:`RpcError`; when cancelled, the
        plugin is notified."""
        self._number += 1
        token = f"{self._number}"
        call = self._calls[token] = PluginCall(CallInFlight(invocation, context))
        self._idle.clear()
        try:
            answer = await self._peer.request(
                "invoke", _payload(name, invocation, context, token), CALL_SECONDS
            )
        finally:
            del self._calls[token]
            if not self._calls:
                self._idle.set()
            for task in call.asked:
                task.cancel()
        return answer.get("value") if isinstance(answer, dict) else None

    async def configure(self, config: dict[str, object]) -> None:
        """Hand on a new configuration. Raises :class:`RpcError` when the plugin does not take
        it."""
        await self._peer.request("configure", {"config": config}, CONFIGURE_SECONDS)

    async def check_health(self) -> bool:
        """Whether the plugin answers a health check in time; it gets two tries."""
        for _ in range(2):
            try:
                await self._peer.request("health", {}, HEALTH_SECONDS)
            except RpcError as error:
                if error.code != RpcErrorCode.TIMEOUT:
                    return self._peer.is_open
            else:
                return True
        return False

    def charge(self, usage: ProcessUsage) -> float:
        """Lay the processor time used since the last time to the calls under way; the most that one
        has, in seconds."""
        before = (
            usage.cpu_seconds if self._cpu_seconds is None else self._cpu_seconds
        )  # loading belongs to no call
        spent, self._cpu_seconds = max(0.0, usage.cpu_seconds - before), usage.cpu_seconds
        for call in self._calls.values():
            call.cpu_seconds += spent / len(self._calls)
        return max((call.cpu_seconds for call in self._calls.values()), default=0.0)

    async def drain_and_close(self, drain_seconds: float) -> None:
        """Let the calls under way finish in that time, have the plugin tidy up, and end its
        process. No new calls may come."""
        self.is_retired = True
        try:
            async with asyncio.timeout(drain_seconds):
                await self._idle.wait()
        except TimeoutError:
            logger.warning(
                "plugin %s: %d calls did not finish in time",
                self._plugin().plugin_id,
                len(self._calls),
            )
        try:
            await self._peer.request("shutdown", {}, UNLOAD_SECONDS)
        except RpcError as error:
            logger.info("plugin %s did not tidy up: %s", self._plugin().plugin_id, error)
        self._peer.close()
        await asyncio.wait([self.over])

    async def kill(self, reason: str = "") -> ProcessExit:
        """Kill the process immediately, for ``reason``."""
        await self.process.kill(reason)
        return await asyncio.shield(self.over)

    async def _serve(self) -> ProcessExit:
        """See the process to its end; what sends no messages is ended."""
        served = asyncio.create_task(self._peer.run())
        try:
            await asyncio.wait([served, self.process.ended], return_when=asyncio.FIRST_COMPLETED)
            if self.process.ended.done():  # what it wrote last may still be in the pipe
                await asyncio.wait([served], timeout=PARTING_SECONDS)
                return self.process.ended.result()
            if (error := served.result()).code not in (
                RpcErrorCode.PLUGIN_CRASHED,
                RpcErrorCode.SHUTTING_DOWN,
            ):
                return await self.process.kill(error.message)
            await asyncio.wait([self.process.ended], timeout=PARTING_SECONDS)
            return await self.process.terminate(gettext("It closed its connection to the server."))
        finally:
            self._peer.close()
            await asyncio.wait([served])

    async def _handle(self, method: str, payload: Any) -> Any:
        match method, payload:
            case "log", {"level": str(level), "text": str(text)}:
                was_taken = self._listener.line(self._plugin().pk, level, text)
                return await self._slow_down(was_taken=was_taken)
            case "progress", {"call": str(token), "text": str(text)}:
                return await self._progress(token, text, tell=payload.get("tell") is True)
            case "capability", {"name": str(name), "arguments": arguments}:
                return await self._answer(
                    name, arguments, self._calls.get(str(payload.get("call")))
                )
        raise RpcError(
            RpcErrorCode.METHOD_NOT_ALLOWED, f"{method} is not known, or not in that form"
        )

    async def _progress(self, token: str, text: str, *, tell: bool) -> None:
        call, now = self._calls.get(token), time.monotonic()
        is_due = call is not None and (tell or now >= call.told_at + PROGRESS_SECONDS)
        if call is not None and is_due:
            call.told_at = now
            call.flight.context.report_progress(text, tell=tell)
        await self._slow_down(was_taken=is_due)

    async def _slow_down(self, *, was_taken: bool) -> None:
        """A plugin that sends far more than is read has to wait, without delaying the others."""
        self._left_out = 0 if was_taken else self._left_out + 1
        if self._left_out % PATIENCE == PATIENCE - 1:
            await asyncio.sleep(PAUSE_SECONDS)

    async def _answer(self, name: str, arguments: object, call: PluginCall | None) -> object:
        """Answer a request of the plugin. It is cancelled when the call that it belongs to ends."""
        if self._asked >= ASKED_AT_ONCE:
            raise RpcError(
                RpcErrorCode.HOST_OVERLOADED, f"{ASKED_AT_ONCE} requests are under way already"
            )
        work = asyncio.create_task(
            self._listener.run_capability(
                self._plugin(), call.flight if call else None, name, arguments
            )
        )
        if call is not None:
            call.asked.add(work)
        self._asked += 1
        try:
            await asyncio.wait([work], timeout=ASKED_SECONDS)
            if not work.done():
                raise RpcError(RpcErrorCode.TIMEOUT, f"{name} took longer than {ASKED_SECONDS:g} s")
            if work.cancelled():
                raise RpcError(
                    RpcErrorCode.CAPABILITY_FAILED, "the call that this belongs to has ended"
                )
            return work.result()
        finally:
            self._asked -= 1
            work.cancel()
            if call is not None:
                call.asked.discard(work)


def _load_failure(error: RpcError, ending: ProcessExit) -> LoadFailed:
    """For a process that ended while loading, the reason is its exit; for a reported error, the
    first line."""
    if error.code in (RpcErrorCode.PLUGIN_CRASHED, RpcErrorCode.PROTOCOL_MISMATCH):
        return LoadFailed(ending.reason, ending.last_words)
    words, _, details = error.message.partition("\n")
    return LoadFailed(words, details or ending.last_words)


def _payload(
    name: str, invocation: ToolInvocation, context: ToolExecutionContext, token: str
) -> dict[str, object]:
    told = {
        "session_id": context.session_id,
        "stream_id": context.stream_id,
        "is_group_chat": context.is_group_chat,
        "group_id": context.group_id,
        "user_id": context.user_id,
        "platform": context.platform,
        "reasoning": invocation.reasoning or context.reasoning,
        "call_id": invocation.call_id,
    }
    return {"name": name, "arguments": invocation.arguments, "context": told, "call": token}
