"""One server, kept connected: a task owns each session from opening to closing; all other code only
makes calls.

The connection status of a server in this process: as a row for the admin, and as text for the
model.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from enum import Enum, auto
from functools import partial
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _, gettext_noop

from tools.error_boundary import LogLimit
from tools.mcp.rate_limits import retry_delay, server_breaker
from tools.mcp.settings import McpServerSettings
from tools.mcp.specs import (
    AnswerTimeoutError,
    CallNotSentError,
    ConnectionLostError,
    Json,
    McpClientError,
    McpSession,
    PermanentFailureError,
    ProgressCallback,
    ProtocolViolationError,
    ServerRefusedError,
    ServerUnavailableError,
    SessionCallbacks,
    SessionOpener,
    ToolCatalogue,
    ToolListing,
    build_catalogue,
)
from tools.models import McpServer, McpServerStatus
from tools.processes.threads import run_in_thread
from tools.text.untrusted import clean_line, clean_quote

State = McpServerStatus.ConnectionState
SHADOWED = gettext_noop("Another server has a tool of that name.")
GONE_SECONDS = 60
"""A process that has not been seen for so long no longer works with any server."""


@dataclass(frozen=True, slots=True)
class ConnectionStatus:
    """One row of :class:`tools.models.McpServerStatus`.

    ``about``: the server's description of itself (``name``, ``title``, ``version``, ``protocol``,
    ``instructions``) and ``left_out``, the number of tools that are not offered. ``tools``: first
    those that are, each with ``name``, ``original`` (the server's own name), ``title`` and
    ``description``; then some of those that are not, each with ``original`` and ``left_out``, the
    reason.
    """

    server_id: int
    process_id: str
    state: str = State.CONNECTING.value
    error: str = ""
    error_at: datetime | None = None
    connected_at: datetime | None = None
    retry_at: datetime | None = None
    latency_ms: float | None = None
    about: dict[str, object] = field(default_factory=dict)
    tools: list[dict[str, Any]] = field(default_factory=list)


def describe_tools(catalogue: ToolCatalogue, shadowed: frozenset[str]) -> list[dict[str, Any]]:
    """``ConnectionStatus.tools`` of a server whose tools in ``shadowed`` belong to another."""
    offered = [
        {
            "name": spec.name,
            "original": clean_line(catalogue.originals[spec.name], 200),
            "title": spec.title,
            "description": spec.description,
        }
        for spec in catalogue.specs
        if spec.name not in shadowed
    ]
    left_out = [
        {"original": clean_line(catalogue.originals[name], 100), "left_out": _(SHADOWED)}
        for name in sorted(shadowed)
    ]
    omitted = [{"original": tool.name, "left_out": tool.reason} for tool in catalogue.left_out]
    return offered + left_out + omitted


def write_statuses(status: ConnectionStatus) -> None:
    """Write a status, unless its server was deleted meanwhile."""
    if McpServer.objects.filter(pk=status.server_id).exists():
        McpServerStatus.objects.update_or_create(
            server_id=status.server_id,
            process_id=status.process_id,
            defaults=asdict(status) | {"seen_at": timezone.now()},
        )


def renew_statuses(process_id: str) -> None:
    """Report that a process still runs, and delete the rows of those that do not."""
    now = timezone.now()
    McpServerStatus.objects.filter(process_id=process_id).update(seen_at=now)
    McpServerStatus.objects.filter(seen_at__lt=now - timedelta(seconds=GONE_SECONDS)).delete()


def delete_statuses(process_id: str, server_id: int | None) -> None:
    """Forget how a process stood with the server, or with all."""
    rows = McpServerStatus.objects.filter(process_id=process_id)
    (rows if server_id is None else rows.filter(server_id=server_id)).delete()


def absence_message(tool: str, server: str, why: str) -> str:
    """The sentence for a model that called ``tool``, which is not there."""
    return (
        f"工具 {tool} 来自 MCP 服务器“{clean_quote(server)}”，{why}。"
        "请先用其他方法，或如实告诉用户。"
    )


def state_message(state: str, seconds: float) -> str:
    """Why a server in ``state`` has no tools now, and when it is tried again."""
    soon = f"约 {max(1, round(seconds))} 秒后自动重试" if seconds else "稍后自动重试"
    match state:
        case State.STOPPED:
            return "该服务器已停止，需要管理员处理后才能使用"
        case State.WAITING:
            return f"该服务器目前连接不上，{soon}"
        case State.CONNECTING:
            return "该服务器正在连接，请稍后再试"
        case _:
            return "该服务器现在没有提供这个工具"


logger = logging.getLogger(__name__)


# The states of a connection to an MCP server, with what belongs to each, and what may be requested
# of the task that owns it.


@dataclass(frozen=True, slots=True)
class Connecting:
    """A session is being opened. Calls wait for it if it replaces one that has just ended."""

    is_replacement: bool = False


@dataclass(slots=True)
class Connected:
    """A session is open; times of the loop's clock say when it last answered and was last read."""

    session: McpSession
    since: datetime
    heartbeat_seconds: float
    heard_at: float = 0.0
    read_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Ended:
    """A session has just ended; calls wait for the decision on what comes next."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Several tries failed; the next one follows."""

    retry_at: datetime


@dataclass(frozen=True, slots=True)
class Stopped:
    """Closed, or unusable until the row is changed or a new connection is requested."""


ConnectionState = Connecting | Connected | Ended | Waiting | Stopped
STATUS_STATES = {
    Connecting: State.CONNECTING.value,
    Connected: State.CONNECTED.value,
    Ended: State.CONNECTING.value,
    Waiting: State.WAITING.value,
    Stopped: State.STOPPED.value,
}
"""As the status of the server names them."""


class Request(Enum):
    """What other code requests of the task that owns the session."""

    CLOSE = auto()
    RECONNECT = auto()
    REREAD = auto()
    """Ask for the list of tools again."""
    REBUILD = auto()
    """Build the tools that are offered again, from the list as it was read."""


END_SESSION = frozenset({Request.CLOSE, Request.RECONNECT})
"""Requests for which an open session is ended."""


LogLimit(logger, named=1)

STABLE_SECONDS = 60
"""A session that lasted so long ended by chance, and is not the next of a row of failures."""
LIST_SECONDS = 900
"""How long a list of tools stays valid when the server does not declare it; a declared time counts
between the next two limits."""
LEAST_LIST_SECONDS, MOST_LIST_SECONDS = 60, 3600
REREAD_SECONDS = 3
"""The least time between two readings that the server requests."""
HEARTBEAT_SECONDS, LONGEST_HEARTBEAT, HEARTBEAT_GROWTH = 60, 180, 1.2
"""How long a server may be silent before it is pinged; longer from time to time while it
answers."""
HEARTBEAT_LIMIT = 10
"""Seconds for its answer."""
ERROR_LIMIT = 1_000


class McpConnection:
    """One enabled server of this process. Made, started and used on one event loop.

    ``load`` gives what connects; ``changed`` is called whenever :meth:`status` or the
    tools are not what they were.
    """

    def __init__(
        self,
        settings: McpServerSettings,
        load: Callable[[], Awaitable[SessionOpener]],
        changed: Callable[["McpConnection"], None],
        reserved: frozenset[str] = frozenset(),
    ) -> None:
        self.settings = settings
        self.catalogue = ToolCatalogue()
        self.about: Json = {}
        self.shadowed: frozenset[str] = frozenset()
        """Names of its tools that belong to an earlier server, and are that one's to offer."""
        self._load, self._changed, self._reserved = load, changed, reserved
        self._breaker = server_breaker()
        self._task: asyncio.Task[None] | None = None
        self._state: ConnectionState = Connecting()
        self._requests: set[Request] = set()
        self._news = asyncio.Event()
        """Set, and replaced by a new one, with each request and each change of the state."""
        self._listing = ToolListing()
        self._error = ""
        self._error_at: datetime | None = None
        self._latency_ms: float | None = None

    # --- For the provider -----------------------------------------------------------

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=f"mcp-{self.settings.pk}")

    async def close(self, seconds: float) -> None:
        """End the session, cancelled where it takes longer than ``seconds``. Calls under way
        fail."""
        self._request(Request.CLOSE)
        if self._task is None:
            return
        if isinstance(self._state, Connected):
            await asyncio.wait([self._task], timeout=seconds)
        self._task.cancel()
        await asyncio.wait([self._task], timeout=seconds)

    def apply_settings(self, settings: McpServerSettings) -> None:
        """Follow a row that is reached as before."""
        before, self.settings = self.settings, settings
        self._request(Request.REBUILD)
        if settings.refreshes != before.refreshes:
            self._request(Request.REREAD)
        if settings.reconnects != before.reconnects:
            self._breaker = server_breaker()
            self._request(Request.RECONNECT)

    @property
    def is_over(self) -> bool:
        """Whether it was closed, and nothing of it is left."""
        return self._task is None or self._task.done()

    @property
    def is_offered(self) -> bool:
        """Whether its tools may be called: also while a session that has just ended is
        replaced."""
        match self._state:
            case Connected() | Ended() | Connecting(is_replacement=True):
                return not self._breaker.seconds_left(time.monotonic())
            case _:
                return False

    def absence_reason(self) -> str:
        """Why they may not, or why one of them is not there, in words for the model."""
        if seconds := self._breaker.seconds_left(time.monotonic()):
            return f"该服务器最近多次调用失败，已暂停使用，约 {max(1, round(seconds))} 秒后可以再试"
        left = 0.0
        if isinstance(self._state, Waiting):
            left = (self._state.retry_at - timezone.now()).total_seconds()
        return state_message(STATUS_STATES[type(self._state)], left)

    def status(self, process_id: str) -> ConnectionStatus:
        state, catalogue = self._state, self.catalogue
        return ConnectionStatus(
            server_id=self.settings.pk,
            process_id=process_id,
            state=STATUS_STATES[type(state)],
            error=self._error,
            error_at=self._error_at,
            connected_at=state.since if isinstance(state, Connected) else None,
            retry_at=state.retry_at if isinstance(state, Waiting) else None,
            latency_ms=self._latency_ms,
            about={**self.about, "left_out": catalogue.number_left_out + len(self.shadowed)},
            tools=describe_tools(catalogue, self.shadowed),
        )

    # --- Calls ----------------------------------------------------------------------

    async def call(
        self, name: str, arguments: Json, progress: ProgressCallback | None, *, may_repeat: bool
    ) -> Json:
        """The result of the tool that the server calls ``name``. Raises a :class:`McpClientError`.

        The call is repeated once when it certainly did not run, or with ``may_repeat`` when that is
        unknown. When cancelled, the server is notified, and the session stays open.
        """
        if not self._breaker.allows(begun := time.monotonic()):
            raise ServerUnavailableError("resting", self.absence_reason())
        is_try = self._breaker.begin(begun)
        is_failure: bool | None = None
        seconds = self.settings.call_seconds
        try:
            async with asyncio.timeout(seconds):
                answer = await self._try_call(name, arguments, progress, may_repeat=may_repeat)
            is_failure = False
        except ServerRefusedError:
            is_failure = False
            raise
        except TimeoutError as error:
            is_failure = True
            self._record_error(late := AnswerTimeoutError(seconds))
            raise late from error
        except (CallNotSentError, ConnectionLostError, ProtocolViolationError) as error:
            is_failure = True
            # Of a session that is lost the reason is known better when it has ended.
            if isinstance(self._state, Connected) and not self._state.session.is_lost:
                self._record_error(error)
            raise
        finally:
            self._breaker.end(is_try=is_try)
            if is_failure is False:
                self._breaker.succeed()
            elif is_failure and self._breaker.fail(time.monotonic()):
                logger.warning(
                    "MCP server %s: its calls keep failing; it is left alone for a while",
                    clean_line(self.settings.name, 64),
                )
                # Calls that hang may hang in this session: begin with a new one afterwards.
                self._request(Request.RECONNECT)
                self._changed(self)
        return answer

    async def _try_call(
        self, name: str, arguments: Json, progress: ProgressCallback | None, *, may_repeat: bool
    ) -> Json:
        live = await self._connected()
        try:
            answer = await live.session.call(name, arguments, progress)
        except (CallNotSentError, ConnectionLostError) as error:
            if isinstance(error, ConnectionLostError) and not may_repeat:
                raise
            live = await self._connected()
            answer = await live.session.call(name, arguments, progress)
        live.heard_at = asyncio.get_running_loop().time()
        return answer

    async def _connected(self) -> Connected:
        """The open session, or the one that replaces it; all who wait for that get the same."""
        while True:
            match self._state:
                case Connected() as live if not live.session.is_lost:
                    return live
                case Connected() | Ended() | Connecting(is_replacement=True):
                    await self._news.wait()
                case _:
                    raise ServerUnavailableError(self._error, self.absence_reason())

    # --- The session ------------------------------------------------------------------

    async def _run(self) -> None:
        """Open one session after another, until the connection is closed."""
        failures, is_old = 0, False
        loop = asyncio.get_running_loop()
        try:
            while Request.CLOSE not in self._requests:
                self._set_state(Connecting(is_replacement=isinstance(self._state, Ended)))
                began = loop.time()
                error = await self._session_error(is_old)
                was_up = isinstance(self._state, Ended)
                is_wanted = bool(self._requests & END_SESSION)
                self._requests.discard(Request.RECONNECT)
                if is_wanted or (was_up and loop.time() - began > STABLE_SECONDS):
                    failures = 0
                if error is not None:
                    failures += 1
                    self._record_error(error)
                # A program may die of the question for newer protocols; a server with a URL only
                # fails to be there.
                is_old = self.settings.is_stdio and (is_old if was_up else not is_old)
                # A session that was up is replaced at once, the first time.
                if not is_wanted and not (was_up and failures <= 1):
                    is_permanent = isinstance(error, PermanentFailureError)
                    await self._wait_before_retry(None if is_permanent else retry_delay(failures))
        finally:
            self._set_state(Stopped())

    async def _session_error(self, is_old: bool) -> McpClientError | None:
        """Run a session, and return what ended it. Cancelling ends it first."""
        session = asyncio.create_task(
            self._run_session(is_old), name=f"mcp-session-{self.settings.pk}"
        )
        [error] = await asyncio.gather(session, return_exceptions=True)
        match error:
            case McpClientError():
                return error
            case None | asyncio.CancelledError():
                return None
        name = clean_line(self.settings.name, 64)
        logger.error("MCP server %s: the session broke", name, exc_info=error)
        return McpClientError(f"{type(error).__name__}: {error}")

    async def _wait_before_retry(self, seconds: float | None) -> None:
        """Wait this long (None: without limit), or until a new connection is requested."""
        if seconds is None:
            self._set_state(Stopped())
        else:
            self._set_state(Waiting(timezone.now() + timedelta(seconds=seconds)))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self._requests & END_SESSION:
                    await self._news.wait()
        self._requests.discard(Request.RECONNECT)

    async def _run_session(self, is_old: bool) -> None:
        """One session from its opening to its closing, all in one task."""
        if self.settings.problem:
            raise PermanentFailureError(self.settings.problem)
        connect = await self._load()
        callbacks = SessionCallbacks(self._notify, partial(self._request, Request.REREAD))
        async with connect(self.settings, callbacks, is_old) as session:
            self.about = session.about
            live = Connected(session, timezone.now(), HEARTBEAT_SECONDS)
            await self._read_tools(live)
            self._set_state(live)
            try:
                await self._monitor(live)
            finally:
                self._set_state(Ended())

    async def _monitor(self, live: Connected) -> None:
        """Read and ping when it is time, until the session is lost or no longer wanted."""
        loop = asyncio.get_running_loop()
        while not (live.session.is_lost or self._requests & END_SESSION):
            reading_at, ping_at = self._next_reading(live), live.heard_at + live.heartbeat_seconds
            if loop.time() >= reading_at:
                await self._read_tools(live)
            elif Request.REBUILD in self._requests:
                await self._build_catalogue()
            elif loop.time() >= ping_at:
                await self._ping(live)
            else:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(min(reading_at, ping_at)):
                        await self._news.wait()

    def _next_reading(self, live: Connected) -> float:
        """When the list of tools is read again, on the loop's clock."""
        seconds = self._listing.seconds
        if Request.REREAD in self._requests:
            seconds = REREAD_SECONDS
        elif seconds is None:
            seconds = LIST_SECONDS
        else:
            seconds = min(MOST_LIST_SECONDS, max(LEAST_LIST_SECONDS, seconds))
        return live.read_at + seconds

    async def _read_tools(self, live: Connected) -> None:
        """The server's tools; what cannot be read leaves those that are known. Raises when the
        connection broke."""
        self._requests.discard(Request.REREAD)
        try:
            async with asyncio.timeout(self.settings.connect_seconds):
                self._listing = await self._timed(live, live.session.list_tools())
        except TimeoutError as error:
            raise McpClientError(
                _("Its tools did not come within %s s.") % f"{self.settings.connect_seconds:g}"
            ) from error
        except (ServerRefusedError, ProtocolViolationError) as error:
            self._record_error(error)
        else:
            if self._listing.problem:
                self._record_error(McpClientError(self._listing.problem))
        live.read_at = live.heard_at = asyncio.get_running_loop().time()
        await self._build_catalogue()

    async def _build_catalogue(self) -> None:
        """Make of what is listed what is offered; in a thread, since some schemas are large."""
        self._requests.discard(Request.REBUILD)
        listed = self._listing.tools
        self.catalogue = await run_in_thread(
            partial(build_catalogue, self.settings, listed, self._reserved, self.catalogue)
        )
        self._changed(self)

    async def _ping(self, live: Connected) -> None:
        live.heartbeat_seconds = min(LONGEST_HEARTBEAT, live.heartbeat_seconds * HEARTBEAT_GROWTH)
        try:
            async with asyncio.timeout(HEARTBEAT_LIMIT):
                await self._timed(live, live.session.ping())
        except TimeoutError as error:
            raise McpClientError(_("It did not answer within %s s.") % HEARTBEAT_LIMIT) from error
        self._changed(self)

    async def _timed(self, live: Connected, work: Awaitable[Any]) -> Any:
        loop = asyncio.get_running_loop()
        began = loop.time()
        answer = await work
        live.heard_at = loop.time()
        self._latency_ms = round((live.heard_at - began) * 1000, 2)
        return answer

    # --- Changes ------------------------------------------------------------------------

    def _request(self, request: Request) -> None:
        self._requests.add(request)
        self._notify()

    def _set_state(self, state: ConnectionState) -> None:
        self._state = state
        self._notify()
        self._changed(self)

    def _notify(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def _record_error(self, error: McpClientError) -> None:
        """Log the error for the operator, who may read it later."""
        words = clean_line(self.settings.masked(str(error)), ERROR_LIMIT)
        if words != self._error:
            logger.warning("MCP server %s: %s", clean_line(self.settings.name, 64), words)
        self._error, self._error_at = words, timezone.now()
