"""Sessions with MCP servers, by the official library; with its transports and the entries of its
lists all that knows it.

Importing it takes half a second, so nothing imports it but :mod:`tools.mcp.listing`.

A session is opened and closed by one task: closing it from another leaves the library
spinning. Whatever breaks underneath cancels that task's block, which ends with the error.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from typing import Any

from django.utils.translation import gettext as _
from mcp import Client, MCPError
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    HEADER_MISMATCH,
    PARSE_ERROR,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    EmptyResult,
    Implementation,
    InputRequiredResult,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    PaginatedRequestParams,
    PingRequest,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from tools.error_boundary import capture_error
from tools.fetch.destinations import DestinationResolver
from tools.mcp.commands import check_command, check_environment
from tools.mcp.errors import (
    CallNotSentError,
    ConnectionLostError,
    McpClientError,
    PermanentFailureError,
    ProtocolViolationError,
    ServerRefusedError,
)
from tools.mcp.list_entries import ToolListSanitizer
from tools.mcp.listing import Json, McpSession, ProgressCallback, SessionCallbacks, ToolListing
from tools.mcp.rate_limits import ServerRateLimit
from tools.mcp.server_log import ServerLog
from tools.mcp.settings import McpServerSettings
from tools.mcp.stdio import (
    MAX_CONTAINERS,
    MAX_MESSAGE,
    TOO_LARGE,
    TOO_MANY_CONTAINERS,
    UNREADABLE,
    stdio_transport,
)
from tools.mcp.web import MORE_BYTES, track_sending, web_transport
from tools.text.untrusted import clean_line, clean_untrusted

MAX_PAGES = 50
MAX_DECLARED = 2_000
"""Tools that are read; of these so many are offered as :data:`tools.mcp.specs.MAX_TOOLS` allows."""
LARGEST_MIB = MAX_MESSAGE // 2**20
INSTRUCTIONS_LIMIT = 2_000
INPUT_ROUNDS = 10
INPUT_PAUSES = (0.05, 0.1, 0.25)
"""Seconds before a call is continued that the server has not finished; the last one again and
again."""
SUBSCRIBE_SECONDS = 2
"""For a server to take a subscription, before its tools are listed without one."""
LISTEN_PAUSE = 30
"""Seconds before a broken subscription is asked for again."""
_ANSWERS: TypeAdapter[CallToolResult | InputRequiredResult] = TypeAdapter(
    CallToolResult | InputRequiredResult
)
_QUIET = ("mcp.client", "mcp.shared")
for _name in (
    _QUIET
):  # they write a traceback, with the server's words in it, for whatever a server does wrong
    logging.getLogger(_name).setLevel(logging.CRITICAL)


@asynccontextmanager
async def open_session(
    settings: McpServerSettings,
    destinations: DestinationResolver,
    signals: SessionCallbacks,
    *,
    is_old: bool = False,
) -> AsyncIterator[McpSession]:
    """A session with the server of ``settings``; see :data:`tools.mcp.listing.SessionOpener`."""
    journal, flow, entries = (
        ServerLog(settings, signals.lost),
        ServerRateLimit(),
        ToolListSanitizer(),
    )
    transport = _transport(settings, destinations, journal, flow)
    client = _client(settings, _guarded(transport, flow, journal, entries), signals, is_old=is_old)
    with _explained(journal):
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(settings.connect_seconds):
                    await stack.enter_async_context(client)
            except TimeoutError as error:
                raise McpClientError(
                    _("No answer within %s s.") % f"{settings.connect_seconds:g}"
                ) from error
            entries.version = client.protocol_version
            watching, subscribed = _watching(client, signals)
            try:
                await asyncio.wait(
                    [watching, subscribed],
                    timeout=SUBSCRIBE_SECONDS,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                subscribed.cancel()
                yield LibrarySession(client, settings, journal)
                was_lost = journal.is_lost
            finally:
                watching.cancel()
                await asyncio.wait([watching])
        if was_lost:
            raise McpClientError("")


def _client(
    settings: McpServerSettings, transport: Any, signals: SessionCallbacks, *, is_old: bool
) -> Client:
    async def heard(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            signals.changed()

    return Client(
        transport,
        mode="legacy" if is_old else "auto",
        cache=None,
        client_info=Implementation(name="FrostAgent", version="1"),
        message_handler=heard,
    )


def _transport(
    settings: McpServerSettings,
    destinations: DestinationResolver,
    journal: ServerLog,
    flow: ServerRateLimit,
) -> AbstractAsyncContextManager[tuple[Any, Any]]:
    if not settings.is_stdio:
        return web_transport(settings, destinations, journal, flow)
    if problem := check_command(settings.command, settings.arguments) or check_environment(
        settings.environment
    ):
        raise PermanentFailureError(problem)
    return stdio_transport(settings, flow, journal)


class LibrarySession:
    """A :class:`tools.mcp.listing.McpSession` over the library's client."""

    def __init__(self, client: Client, settings: McpServerSettings, journal: ServerLog) -> None:
        self._client, self._settings, self._journal = client, settings, journal
        self._is_modern = client.protocol_version in MODERN_PROTOCOL_VERSIONS
        info = client.server_info
        self.about: Json = {
            "name": clean_line(info.name if info else "", 100),
            "title": clean_line(info.title if info else "", 100),
            "version": clean_line(info.version if info else "", 50),
            "protocol": clean_line(client.protocol_version, 20),
            "instructions": clean_untrusted(client.instructions, INSTRUCTIONS_LIMIT),
        }

    @property
    def is_lost(self) -> bool:
        return self._journal.is_lost

    async def list_tools(self) -> ToolListing:
        """All pages, as far as anybody needs so many."""
        found: list[Json] = []
        cursor: str | None = None
        seen: set[str] = set()
        seconds: float | None = None
        with self._mapped():
            for _page in range(MAX_PAGES):
                page = await self._client.session.list_tools(
                    params=PaginatedRequestParams(cursor=cursor)
                )
                found += [
                    tool.model_dump(mode="json", by_alias=True, exclude_none=True)
                    for tool in page.tools[: MAX_DECLARED + 1]
                ]
                cursor = page.next_cursor
                seconds = page.ttl_ms / 1000 or seconds
                if len(found) > MAX_DECLARED:
                    return ToolListing(
                        tuple(found[:MAX_DECLARED]),
                        _("Only the first %s tools were read.") % MAX_DECLARED,
                        seconds,
                    )
                if cursor is None:
                    return ToolListing(tuple(found), "", seconds)
                if cursor in seen:
                    return ToolListing(
                        tuple(found),
                        _("The list of tools repeats itself and was not read further."),
                        seconds,
                    )
                seen.add(cursor)
        return ToolListing(
            tuple(found), _("Only the first %s pages of tools were read.") % MAX_PAGES, seconds
        )

    async def call(
        self, name: str, arguments: Json, progress: ProgressCallback | None = None
    ) -> Json:
        state: str | None = None
        with self._mapped():
            for number in range(INPUT_ROUNDS):
                answer = await self._sent(name, arguments, progress, state)
                if isinstance(answer, CallToolResult):
                    return dict(answer.model_dump(mode="json", by_alias=True, exclude_none=True))
                if answer.input_requests:
                    raise ServerRefusedError(
                        _("The tool asks for input that nobody can give."),
                        "该工具要求补充信息，而这里无法提供，调用未完成",
                    )
                state = answer.request_state
                await asyncio.sleep(INPUT_PAUSES[min(number, len(INPUT_PAUSES) - 1)])
        raise ServerRefusedError(_("The tool is never finished."), "该工具一直没有完成，调用已放弃")

    async def ping(self) -> None:
        """Newer servers know no ping; the first page of their tools is as good."""
        session = self._client.session
        with contextlib.suppress(ServerRefusedError), self._mapped():  # an answer all the same
            await (
                session.list_tools()
                if self._is_modern
                else session.send_request(PingRequest(), EmptyResult)
            )

    async def _sent(
        self, name: str, arguments: Json, progress: ProgressCallback | None, state: str | None
    ) -> CallToolResult | InputRequiredResult:
        """One round of a call. It goes past the library's check of structured results, which the
        registry does, once."""
        params = CallToolRequestParams(name=name, arguments=dict(arguments), request_state=state)
        request = CallToolRequest(params=params)
        try:
            return await self._client.session.send_request(
                request, _ANSWERS, progress_callback=progress
            )
        except MCPError as error:
            if error.code != HEADER_MISMATCH or not self._is_modern:
                raise
        await (
            self.list_tools()
        )  # the server wants arguments in headers, by a newer schema than is known here
        return await self._client.session.send_request(
            request, _ANSWERS, progress_callback=progress
        )

    @contextmanager
    def _mapped(self) -> Iterator[None]:
        """Raise what goes wrong inside as one of :mod:`tools.mcp.errors`."""
        if self.is_lost:
            raise CallNotSentError(self._journal.reason)
        with track_sending() as current:
            try:
                yield
            except ValidationError as error:
                what = error.errors(include_url=False, include_input=False)[0]
                place = ".".join(map(str, what["loc"]))
                words = self._fit(f"{place}: {what['msg']}")
                raise ProtocolViolationError(
                    _("Its answer is not what the protocol says: %s") % words
                ) from error
            except MCPError as error:
                if current.is_refused:
                    raise CallNotSentError(
                        self._journal.reason or self._fit(error.message)
                    ) from error
                if self.is_lost or _is_broken(error):
                    raise ConnectionLostError(
                        self._journal.reason or self._fit(error.message)
                    ) from error
                raise self._refusal(error) from error
            except (ValueError, RuntimeError, OSError) as error:
                raise ConnectionLostError(self._fit(f"{type(error).__name__}: {error}")) from error

    def _refusal(self, error: MCPError) -> McpClientError:
        """An error that came as an answer: the server's, or one in place of an answer that could
        not be read."""
        words = self._fit(error.message)
        if error.data == TOO_LARGE or MORE_BYTES in words:
            return ServerRefusedError(
                _("An answer was larger than %s MiB.") % LARGEST_MIB,
                f"MCP 服务器返回的内容超过 {LARGEST_MIB} MiB，无法接收",
            )
        if error.data == TOO_MANY_CONTAINERS:
            return ServerRefusedError(
                _("An answer had more than %s objects and lists.") % f"{MAX_CONTAINERS:,}",
                f"MCP 服务器返回的内容超过 {MAX_CONTAINERS:,} 个对象和列表，无法接收",
            )
        if words == "Server returned an error response":  # the library's words for any status
            status = self._journal.reason
            return ServerRefusedError(status, f"MCP 服务器返回了错误（{status}）")
        if error.data == UNREADABLE or error.code == PARSE_ERROR:
            return ProtocolViolationError(_("Its answer is not what the protocol says: %s") % words)
        return ServerRefusedError(words, words)

    def _fit(self, text: str) -> str:
        return clean_line(self._settings.masked(text), 500)


def _is_broken(error: MCPError) -> bool:
    """Whether the library says that no answer can come; servers use the same number for errors of
    their own."""
    return error.code == CONNECTION_CLOSED and error.message.startswith(
        ("McpSession closed", "SSE stream", "server answered a request")
    )


@contextmanager
def _explained(journal: ServerLog) -> Iterator[None]:
    """Raise what breaks the connection as an McpFault that says why, as far as anybody knows."""
    with capture_error() as attempt:
        yield
    if isinstance(attempt.error, PermanentFailureError):
        raise attempt.error
    if (error := attempt.error) is not None:
        leaf = _first(error)
        words = str(leaf) or ("" if isinstance(leaf, McpClientError) else type(leaf).__name__)
        raise McpClientError(_told(journal.fit(words), journal)) from error


def _told(words: str, journal: ServerLog) -> str:
    """``words`` with what is known beside them: why a request failed, and what the server said
    last."""
    parts = [words] if words and (words != "Connection closed" or not journal.reason) else []
    parts += [journal.reason] if journal.reason and journal.reason not in words else []
    parts += [_("It said: %s") % journal.last_words] if journal.last_words else []
    return " ".join(parts)


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _watching(
    client: Client, signals: SessionCallbacks
) -> "tuple[asyncio.Task[None], asyncio.Future[None]]":
    """What subscribes to changes of the list of tools, and what is done once it has; what is listed
    later misses none."""
    subscribed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    return asyncio.create_task(_watch(client, signals, subscribed), name="mcp-watch"), subscribed


async def _watch(
    client: Client, signals: SessionCallbacks, subscribed: "asyncio.Future[None]"
) -> None:
    """Subscribe, where the protocol wants that to be asked for."""
    tools = client.server_capabilities.tools
    while (
        tools is not None
        and tools.list_changed
        and client.protocol_version in MODERN_PROTOCOL_VERSIONS
    ):
        try:
            async with client.listen(tools_list_changed=True) as subscription:
                if subscribed.done():  # again, or late: there may have been a change before
                    signals.changed()
                else:
                    subscribed.set_result(None)
                async for _event in subscription:
                    signals.changed()
        except ListenNotSupportedError:
            return
        except (MCPError, SubscriptionLost, TimeoutError, RuntimeError):
            pass
        await asyncio.sleep(LISTEN_PAUSE)


# --- What comes in ----------------------------------------------------------------


@asynccontextmanager
async def _guarded(
    transport: AbstractAsyncContextManager[tuple[Any, Any]],
    flow: ServerRateLimit,
    journal: ServerLog,
    entries: ToolListSanitizer,
) -> AsyncIterator[tuple[Any, Any]]:
    async with transport as (read, write):
        yield _Heard(read, flow, journal, entries), write


class _Heard:
    """What the library reads messages from: says when there are no more, and keeps a flood and bad
    tools from it."""

    def __init__(
        self, inner: Any, flow: ServerRateLimit, journal: ServerLog, entries: ToolListSanitizer
    ) -> None:
        self._inner, self._flow, self._journal, self._entries = inner, flow, journal, entries

    async def receive(self) -> Any:
        return await self._inner.receive()

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> "_Heard":
        return self

    async def __anext__(self) -> Any:
        try:
            while True:
                message = await self._inner.__anext__()
                if await self._flow.passes(is_unasked=_is_unasked(message)):
                    if isinstance(message, SessionMessage) and isinstance(
                        message.message, JSONRPCResponse
                    ):
                        self._entries.mend(message.message.result)
                    return message
        except (
            BaseException
        ):  # whatever it is, nothing more comes; the waiting calls are told after this
            self._journal.ended()
            raise

    async def __aenter__(self) -> "_Heard":
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()


def _is_unasked(message: Any) -> bool:
    said = message.message if isinstance(message, SessionMessage) else None
    return said is None or isinstance(said, JSONRPCNotification | JSONRPCRequest)
