"""One server, kept connected: a task owns each session from its opening to its closing, and
everybody else only calls."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from tools.error_boundary import capture_error
from tools.log_limit import LogLimit
from tools.mcp.breaker import CircuitBreaker, retry_delay
from tools.mcp.connection_status import ConnectionStatus, State, breaker_message, state_message
from tools.mcp.errors import (
    AnswerTimeoutError,
    CallNotSentError,
    ConnectionLostError,
    McpClientError,
    PermanentFailureError,
    ProtocolViolationError,
    ServerRefusedError,
    ServerUnavailableError,
)
from tools.mcp.listing import (
    Json,
    McpSession,
    ProgressCallback,
    SessionCallbacks,
    SessionOpener,
    ToolListing,
)
from tools.mcp.settings import McpServerSettings
from tools.mcp.specs import ToolCatalogue, build_catalogue
from tools.processes.threads import run_in_thread
from tools.text.untrusted import clean_line

logger = logging.getLogger(__name__)
LogLimit(logger, named=1)

STABLE_SECONDS = 60
"""A session that lasted so long ended by chance, and is not the next of a row of failures."""
LIST_SECONDS = 900
"""How long a list of tools is taken to be right where the server says nothing; what it says counts
between the next two."""
LEAST_LIST_SECONDS, MOST_LIST_SECONDS = 60, 3600
REREAD_SECONDS = 3
"""Between two readings that the server asks for."""
BEAT_SECONDS, LONGEST_BEAT, BEAT_GROWTH = 60, 180, 1.2
"""How long a server may be silent before it is asked whether it is there; longer from time to time
while it is."""
BEAT_LIMIT = 10
"""Seconds for its answer."""
ERROR_LIMIT = 1_000
SHADOWED = gettext_noop("Another server has a tool of that name.")


class McpConnection:
    """One enabled server of this process. Made, started and used on one event loop.

    ``load`` gives what connects; ``changed`` is called whenever :meth:`standing` or the
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
        self._breaker = CircuitBreaker()
        self._task: asyncio.Task[None] | None = None
        self._connection: McpSession | None = None
        self._listing = ToolListing()
        self._state, self._error = State.CONNECTING.value, ""
        self._error_at: datetime | None = None
        self._connected_at: datetime | None = None
        self._retry_at: datetime | None = None
        self._latency_ms: float | None = None
        self._was_up = False
        self._is_returning = False
        self._is_closing = False
        self._is_told_to_reconnect = False
        self._is_to_be_read = False
        self._is_to_be_specified = False
        self._wake = asyncio.Event()
        self._news = asyncio.Event()
        self._heard_at = self._read_at = 0.0
        self._beat = float(BEAT_SECONDS)

    # --- For the provider -----------------------------------------------------------

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep_up(), name=f"mcp-{self.settings.pk}")

    async def close(self, seconds: float) -> None:
        """End the session, cancelled where it takes longer than ``seconds``. Calls under way
        fail."""
        self._is_closing = True
        self._rouse()
        if self._task is None:
            return
        if self._connection is not None:
            await asyncio.wait([self._task], timeout=seconds)
        self._task.cancel()
        await asyncio.wait([self._task], timeout=seconds)

    def adopt(self, settings: McpServerSettings) -> None:
        """Obey a row that is reached as before."""
        before, self.settings = self.settings, settings
        self._is_told_to_reconnect |= settings.reconnects != before.reconnects
        self._is_to_be_read |= settings.refreshes != before.refreshes
        self._is_to_be_specified = True
        if self._is_told_to_reconnect:
            self._breaker = CircuitBreaker()
        self._rouse()

    @property
    def is_over(self) -> bool:
        """Whether it was closed, and nothing of it is left."""
        return self._task is None or self._task.done()

    @property
    def is_offered(self) -> bool:
        """Whether its tools may be called: also while a session that has just ended is made
        anew."""
        return (
            self._connection is not None or self._is_returning
        ) and not self._breaker.seconds_left

    def why_absent(self) -> str:
        """Why they may not, or why one of them is not there, in words for the model."""
        if seconds := self._breaker.seconds_left:
            return breaker_message(seconds)
        left = (self._retry_at - timezone.now()).total_seconds() if self._retry_at else 0
        return state_message(self._state, left)

    def standing(self, process_id: str) -> ConnectionStatus:
        catalogue = self.catalogue
        offered = [
            {
                "name": spec.name,
                "original": clean_line(catalogue.originals[spec.name], 200),
                "title": spec.title,
                "description": spec.description,
            }
            for spec in catalogue.specs
            if spec.name not in self.shadowed
        ]
        left_out = [
            {"original": clean_line(catalogue.originals[name], 100), "left_out": _(SHADOWED)}
            for name in sorted(self.shadowed)
        ]
        left_out += [
            {"original": tool.name, "left_out": tool.reason} for tool in catalogue.left_out
        ]
        return ConnectionStatus(
            server_id=self.settings.pk,
            process_id=process_id,
            state=self._state,
            error=self._error,
            error_at=self._error_at,
            connected_at=self._connected_at,
            retry_at=self._retry_at,
            latency_ms=self._latency_ms,
            about={**self.about, "left_out": catalogue.number_left_out + len(self.shadowed)},
            tools=offered + left_out,
        )

    # --- Calls ----------------------------------------------------------------------

    async def call(
        self, name: str, arguments: Json, progress: ProgressCallback | None, *, may_repeat: bool
    ) -> Json:
        """The server's result of calling the tool that it calls ``name``. Raises a
        :class:`McpClientError`.

        The call is made a second time when it surely did not run, or with ``may_repeat``
        when nobody knows. When cancelled, the server is told, and the session goes on.
        """
        if not self._breaker.admit():
            raise ServerUnavailableError("resting", self.why_absent())
        is_failure: bool | None = None
        seconds = self.settings.call_seconds
        try:
            async with asyncio.timeout(seconds):
                answer = await self._tried(name, arguments, progress, may_repeat=may_repeat)
            is_failure, self._heard_at = False, asyncio.get_running_loop().time()
        except ServerRefusedError:
            is_failure = False
            raise
        except TimeoutError as error:
            is_failure = True
            self._note(late := AnswerTimeoutError(seconds))
            raise late from error
        except (CallNotSentError, ConnectionLostError, ProtocolViolationError) as error:
            is_failure = True
            if (
                self._connection is not None and not self._connection.is_lost
            ):  # else it is known better when it has ended
                self._note(error)
            raise
        finally:
            if self._breaker.end(is_failure=is_failure):
                self._give_a_rest()
        return answer

    async def _tried(
        self, name: str, arguments: Json, progress: ProgressCallback | None, *, may_repeat: bool
    ) -> Json:
        try:
            return await (await self._connected()).call(name, arguments, progress)
        except CallNotSentError:
            pass
        except ConnectionLostError:
            if not may_repeat:
                raise
        return await (await self._connected()).call(name, arguments, progress)

    async def _connected(self) -> McpSession:
        """The session, or the next one while it is made anew, by which all who wait are helped."""
        while True:
            connection = self._connection
            if connection is not None and not connection.is_lost:
                return connection
            if connection is None and not self._is_returning:
                raise ServerUnavailableError(self._error, self.why_absent())
            await self._news.wait()

    def _give_a_rest(self) -> None:
        """Leave the server alone for a while, and then begin with a new session: calls that hang
        may hang in this one."""
        logger.warning(
            "MCP server %s: its calls keep failing; it is left alone for a while",
            clean_line(self.settings.name, 64),
        )
        self._is_told_to_reconnect = True
        self._rouse()
        self._changed(self)

    # --- The session ------------------------------------------------------------------

    async def _keep_up(self) -> None:
        failures, is_old = 0, False
        loop = asyncio.get_running_loop()
        while not self._is_closing:
            self._stand(State.CONNECTING)
            began = loop.time()
            session = loop.create_task(self._hold(is_old), name=f"mcp-session-{self.settings.pk}")
            session.add_done_callback(_looked_at)
            fault, was_up = await self._outcome(session)
            is_wanted, self._is_told_to_reconnect = self._is_told_to_reconnect, False
            failures = (
                0 if is_wanted or (was_up and loop.time() - began > STABLE_SECONDS) else failures
            )
            failures += fault is not None
            # A program may die of the question for newer protocols; whoever has a URL only fails to
            # be there.
            is_old = self.settings.is_stdio and (is_old if was_up else not is_old)
            self._is_returning = was_up and failures <= 1 and not self._is_closing
            if fault is not None:
                self._note(fault)
            if not self._is_closing and not is_wanted:
                await self._rest(0.0 if self._is_returning else retry_delay(failures), fault)
        self._stand(State.STOPPED)

    async def _outcome(self, session: "asyncio.Task[None]") -> tuple[McpClientError | None, bool]:
        """How the session ended, and whether there was one. Cancelling ends it first."""
        try:
            await asyncio.wait([session])
        finally:
            if not session.done():
                session.cancel()
                await asyncio.wait([session])
            was_up, self._was_up = self._was_up, False
        with capture_error() as attempt:
            if not session.cancelled():
                session.result()
        if attempt.error is None or isinstance(attempt.error, McpClientError):
            return attempt.error, was_up
        logger.error(
            "MCP server %s: the session broke",
            clean_line(self.settings.name, 64),
            exc_info=attempt.error,
        )
        return McpClientError(f"{type(attempt.error).__name__}: {attempt.error}"), was_up

    async def _rest(self, seconds: float, fault: McpClientError | None) -> None:
        """Wait for the next try, or for somebody who wants it now."""
        if isinstance(fault, PermanentFailureError):
            self._stand(State.STOPPED)
            await self._roused(None)
            return
        if seconds:
            self._retry_at = timezone.now() + timedelta(seconds=seconds)
            self._stand(State.WAITING)
            await self._roused(seconds)
        self._retry_at = None

    async def _roused(self, seconds: float | None) -> None:
        while not (self._is_closing or self._is_told_to_reconnect):
            self._wake.clear()
            began = asyncio.get_running_loop().time()
            try:
                async with asyncio.timeout(seconds):
                    await self._wake.wait()
            except TimeoutError:
                return
            if seconds is not None:
                seconds = max(0.0, seconds - (asyncio.get_running_loop().time() - began))
        self._is_told_to_reconnect = False

    async def _hold(self, is_old: bool) -> None:
        """One session from its opening to its closing, all in one task."""
        if self.settings.fault:
            raise PermanentFailureError(self.settings.fault)
        connect = await self._load()
        async with connect(
            self.settings, SessionCallbacks(self._lost, self._reread), is_old
        ) as connection:
            self.about = connection.about
            await self._read(connection)
            self._was_up, self._is_returning = True, False
            self._connection, self._connected_at = connection, timezone.now()
            self._stand(State.CONNECTED)
            try:
                await self._watch_over(connection)
            finally:
                self._connection, self._connected_at = None, None
                self._is_returning = not self._is_closing

    async def _watch_over(self, connection: McpSession) -> None:
        """Read and ask anew when it is time, until the session is lost or no longer wanted."""
        loop = asyncio.get_running_loop()
        while not (connection.is_lost or self._is_closing or self._is_told_to_reconnect):
            now = loop.time()
            if now >= self._next_reading:
                await self._read(connection)
            elif self._is_to_be_specified:
                await self._specify()
            elif now - self._heard_at >= self._beat:
                await self._ask(connection)
            else:
                self._wake.clear()
                await self._waited(min(self._heard_at + self._beat, self._next_reading) - now)

    async def _waited(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _read(self, connection: McpSession) -> None:
        """The server's tools; what cannot be read leaves those that are known. Raises when the
        connection broke."""
        self._is_to_be_read = False
        try:
            async with asyncio.timeout(self.settings.connect_seconds):
                self._listing = await self._timed(connection.list_tools())
        except TimeoutError as error:
            raise McpClientError(
                _("Its tools did not come within %s s.") % f"{self.settings.connect_seconds:g}"
            ) from error
        except (ServerRefusedError, ProtocolViolationError) as error:
            self._note(error)
        else:
            if self._listing.fault:
                self._note(McpClientError(self._listing.fault))
        self._read_at = self._heard_at = asyncio.get_running_loop().time()
        await self._specify()

    async def _specify(self) -> None:
        """Make of what is listed what is offered; in a thread, since some schemas are large."""
        self._is_to_be_specified = False
        work = partial(
            build_catalogue, self.settings, self._listing.tools, self._reserved, self.catalogue
        )
        self.catalogue = await run_in_thread(work)
        self._changed(self)

    async def _ask(self, connection: McpSession) -> None:
        self._beat = min(LONGEST_BEAT, self._beat * BEAT_GROWTH)
        try:
            async with asyncio.timeout(BEAT_LIMIT):
                await self._timed(connection.ping())
        except TimeoutError as error:
            raise McpClientError(_("It did not answer within %s s.") % BEAT_LIMIT) from error
        self._heard_at = asyncio.get_running_loop().time()
        self._changed(self)

    async def _timed(self, work: Awaitable[Any]) -> Any:
        loop = asyncio.get_running_loop()
        began = loop.time()
        answer = await work
        self._latency_ms = round((loop.time() - began) * 1000, 2)
        return answer

    @property
    def _next_reading(self) -> float:
        """When the list of tools is read again, on the loop's clock."""
        if self._is_to_be_read:
            return self._read_at + REREAD_SECONDS
        seconds = self._listing.seconds
        return self._read_at + (
            LIST_SECONDS
            if seconds is None
            else min(MOST_LIST_SECONDS, max(LEAST_LIST_SECONDS, seconds))
        )

    # --- News ---------------------------------------------------------------------------

    def _lost(self) -> None:
        self._beat = float(BEAT_SECONDS)
        self._rouse()

    def _reread(self) -> None:
        self._is_to_be_read = True
        self._rouse()

    def _rouse(self) -> None:
        self._wake.set()

    def _note(self, fault: McpClientError) -> None:
        """Put down what went wrong: for the operator, who wants to see it after it has passed,
        too."""
        words = clean_line(self.settings.masked(str(fault)), ERROR_LIMIT)
        if words != self._error:
            logger.warning("MCP server %s: %s", clean_line(self.settings.name, 64), words)
        self._error, self._error_at = words, timezone.now()

    def _stand(self, state: str) -> None:
        self._state = str(state)
        self._news.set()
        self._news = asyncio.Event()
        self._changed(self)


def _looked_at(task: "asyncio.Task[None]") -> None:
    """Nobody asks how a session ended that was cancelled together with its keeper."""
    if not task.cancelled():
        task.exception()
