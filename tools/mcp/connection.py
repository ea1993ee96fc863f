"""Sessions with MCP servers, by the official library. Only this module, its transports and the
checks of list entries use the library.

Importing it takes half a second, so nothing imports it but :mod:`tools.mcp.specs`.

A session is opened and closed by one task: closing it from another leaves the library spinning. Any
failure below cancels that task's block, which ends with the error.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from functools import cache
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
from mcp_types.methods import SERVER_RESULTS
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from tools.error_boundary import capture_error
from tools.fetch.request import DestinationResolver
from tools.mcp.limited_streams import MAX_CONTAINERS, MAX_VALUES, MORE_BYTES, TOO_MANY_VALUES
from tools.mcp.rate_limits import ServerRateLimit
from tools.mcp.server_log import ServerLog
from tools.mcp.settings import McpServerSettings, check_command, check_environment
from tools.mcp.specs import (
    ENTRY_ERROR_KEY,
    CallNotSentError,
    ConnectionLostError,
    Json,
    McpClientError,
    McpSession,
    PermanentFailureError,
    ProgressCallback,
    ProtocolViolationError,
    ServerRefusedError,
    SessionCallbacks,
    ToolListing,
)
from tools.mcp.transports import (
    MAX_MESSAGE,
    TOO_LARGE,
    UNREADABLE,
    stdio_transport,
    track_sending,
    web_transport,
)
from tools.text.untrusted import clean_line, clean_untrusted
from tools.version import VERSION

# Filters what comes from a server before the library reads it: floods are dropped, and the entries
# of a list of tools are checked one by one, because the library refuses the whole list for one bad
# entry.

WORDS_LIMIT = 200
_ANY = {"type": "object"}


class IncomingMessages:
    """The stream that the library reads messages from: says when there are no more, and keeps a
    flood and bad tools from it. ``version`` is the protocol's, known once there is a session."""

    version = ""

    def __init__(self, flow: ServerRateLimit, log: ServerLog) -> None:
        self._flow, self._log = flow, log
        self._inner: Any = None

    @asynccontextmanager
    async def guard(
        self, transport: AbstractAsyncContextManager[tuple[Any, Any]]
    ) -> AsyncIterator[tuple[Any, Any]]:
        """``transport`` with this before the stream that is read."""
        async with transport as (self._inner, write):
            yield self, write

    async def receive(self) -> Any:
        return await self._inner.receive()

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> "IncomingMessages":
        return self

    async def __anext__(self) -> Any:
        try:
            while True:
                message = await self._inner.__anext__()
                content = message.message if isinstance(message, SessionMessage) else None
                is_unasked = content is None or isinstance(
                    content, JSONRPCNotification | JSONRPCRequest
                )
                if await self._flow.passes(is_unasked=is_unasked):
                    if isinstance(content, JSONRPCResponse):
                        sanitize_tool_list(content.result, self.version)
                    return message
        except BaseException:
            # On any error nothing more comes; the waiting calls fail after this.
            self._log.ended()
            raise

    async def __aenter__(self) -> "IncomingMessages":
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()


def sanitize_tool_list(answer: Any, version: str) -> None:
    """Change ``answer``, the result of a request, where it is a list of tools with entries that
    are none by the protocol's ``version``.

    A schema that is missing is one that takes anything. Any other problem is put in
    the place of its entry, for :func:`tools.mcp.specs.build_catalogue` to leave out.
    """
    kind = SERVER_RESULTS.get(("tools/list", version))
    tools = answer.get("tools") if isinstance(answer, dict) else None
    if kind is None or not isinstance(tools, list):
        return
    answer["tools"] = entries = [_with_schema(entry) for entry in tools]
    try:
        _list_of(kind).validate_python(entries, by_name=False)
    except ValidationError as error:
        problems: dict[int, str] = {}
        for line in error.errors(include_url=False, include_context=False, include_input=False):
            index, *path = line["loc"]
            where = ".".join(map(str, path))
            problems.setdefault(int(index), f"{where}: {line['msg']}" if where else line["msg"])
        for index, problem in problems.items():
            entries[index] = _marked(entries[index], problem)


def _with_schema(entry: object) -> object:
    if not isinstance(entry, dict):
        return entry
    schema = entry.get("inputSchema") or _ANY
    return {**entry, "inputSchema": {**_ANY, **schema} if isinstance(schema, dict) else schema}


@cache
def _list_of(kind: Any) -> TypeAdapter[list[Any]]:
    entries: Any = kind.model_fields["tools"].annotation
    return TypeAdapter(entries)


def _marked(entry: object, problem: str) -> dict[str, object]:
    name = entry.get("name") if isinstance(entry, Mapping) else None
    reason = _("Its entry is not what the protocol says: %s") % clean_line(problem, WORDS_LIMIT)
    return {
        "name": name if isinstance(name, str) else "",
        "inputSchema": _ANY,
        "_meta": {ENTRY_ERROR_KEY: reason},
    }


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
"""Seconds before a broken subscription is renewed."""
_ANSWERS: TypeAdapter[CallToolResult | InputRequiredResult] = TypeAdapter(
    CallToolResult | InputRequiredResult
)
# They log a traceback with text from the server for every error of a server.
for _name in ("mcp.client", "mcp.shared"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)


@asynccontextmanager
async def open_session(
    settings: McpServerSettings,
    destinations: DestinationResolver,
    callbacks: SessionCallbacks,
    *,
    is_old: bool = False,
) -> AsyncIterator[McpSession]:
    """A session with the server of ``settings``; see :data:`tools.mcp.specs.SessionOpener`."""
    log, flow = ServerLog(settings, callbacks.lost), ServerRateLimit()
    incoming = IncomingMessages(flow, log)

    async def on_message(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            callbacks.changed()

    client = Client(
        incoming.guard(_transport(settings, destinations, log, flow)),
        mode="legacy" if is_old else "auto",
        cache=None,
        client_info=Implementation(name="FrostAgent", version=VERSION),
        message_handler=on_message,
    )
    with _explained(log):
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(settings.connect_seconds):
                    await stack.enter_async_context(client)
            except TimeoutError as error:
                raise McpClientError(
                    _("No answer within %s s.") % f"{settings.connect_seconds:g}"
                ) from error
            incoming.version = client.protocol_version
            # What is listed once it has subscribed to changes misses none of them.
            subscribed = asyncio.get_running_loop().create_future()
            watching = asyncio.create_task(_watch(client, callbacks, subscribed), name="mcp-watch")
            try:
                await asyncio.wait(
                    [watching, subscribed],
                    timeout=SUBSCRIBE_SECONDS,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                subscribed.cancel()
                yield LibrarySession(client, settings, log)
                was_lost = log.is_lost
            finally:
                watching.cancel()
                await asyncio.wait([watching])
        if was_lost:
            raise McpClientError("")


def _transport(
    settings: McpServerSettings,
    destinations: DestinationResolver,
    log: ServerLog,
    flow: ServerRateLimit,
) -> AbstractAsyncContextManager[tuple[Any, Any]]:
    if not settings.is_stdio:
        return web_transport(settings, destinations, log, flow)
    if problem := check_command(settings.command, settings.arguments) or check_environment(
        settings.environment
    ):
        raise PermanentFailureError(problem)
    return stdio_transport(settings, flow, log)


class LibrarySession:
    """A :class:`tools.mcp.specs.McpSession` over the library's client."""

    def __init__(self, client: Client, settings: McpServerSettings, log: ServerLog) -> None:
        self._client, self._settings, self._log = client, settings, log
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
        return self._log.is_lost

    async def list_tools(self) -> ToolListing:
        """All pages, as far as anybody needs so many."""
        found: list[Json] = []
        cursor: str | None = None
        seen: set[str | None] = {None}
        seconds: float | None = None
        problem = _("Only the first %s pages of tools were read.") % MAX_PAGES
        with self._mapped_errors():
            for _page in range(MAX_PAGES):
                page = await self._client.session.list_tools(
                    params=PaginatedRequestParams(cursor=cursor)
                )
                found += [
                    tool.model_dump(mode="json", by_alias=True, exclude_none=True)
                    for tool in page.tools[: MAX_DECLARED + 1]
                ]
                seconds, cursor = page.ttl_ms / 1000 or seconds, page.next_cursor
                if len(found) > MAX_DECLARED:
                    problem = _("Only the first %s tools were read.") % MAX_DECLARED
                elif cursor is None:
                    problem = ""
                elif cursor in seen:
                    problem = _("The list of tools repeats itself and was not read further.")
                else:
                    seen.add(cursor)
                    continue
                break
        return ToolListing(tuple(found[:MAX_DECLARED]), problem, seconds)

    async def call(
        self, name: str, arguments: Json, progress: ProgressCallback | None = None
    ) -> Json:
        state: str | None = None
        with self._mapped_errors():
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
        with (
            contextlib.suppress(ServerRefusedError),
            self._mapped_errors(),
        ):  # an answer all the same
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
    def _mapped_errors(self) -> Iterator[None]:
        """Raise what goes wrong inside as one of :mod:`tools.mcp.specs`."""
        if self.is_lost:
            raise CallNotSentError(self._log.reason)
        with track_sending() as current:
            try:
                yield
            except ValidationError as error:
                what = error.errors(include_url=False, include_input=False)[0]
                words = self._fit(f"{'.'.join(map(str, what['loc']))}: {what['msg']}")
                raise ProtocolViolationError(
                    _("Its answer is not what the protocol says: %s") % words
                ) from error
            except MCPError as error:
                reason = self._log.reason or self._fit(error.message)
                if current.is_refused:
                    raise CallNotSentError(reason) from error
                if self.is_lost or _is_broken(error):
                    raise ConnectionLostError(reason) from error
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
        if TOO_MANY_VALUES in words:
            limits = {"containers": f"{MAX_CONTAINERS:,}", "values": f"{MAX_VALUES:,}"}
            words = _(
                "An answer had more than %(containers)s objects and lists or %(values)s values."
            )
            return ServerRefusedError(
                words % limits,
                f"MCP 服务器返回的内容超过 {MAX_CONTAINERS:,} 个对象和列表，"
                f"或超过 {MAX_VALUES:,} 个值，无法接收",
            )
        if words == "Server returned an error response":  # the library's words for any status
            status = self._log.reason
            return ServerRefusedError(status, f"MCP 服务器返回了错误（{status}）")
        if error.data == UNREADABLE or error.code == PARSE_ERROR:
            return ProtocolViolationError(_("Its answer is not what the protocol says: %s") % words)
        return ServerRefusedError(words, words)

    def _fit(self, text: str) -> str:
        return clean_line(self._settings.masked(text), 500)


def _is_broken(error: MCPError) -> bool:
    """Whether the library says that no answer can come; servers use the same number for errors of
    their own."""
    is_cut_off = MORE_BYTES in error.message or TOO_MANY_VALUES in error.message
    return (
        error.code == CONNECTION_CLOSED
        and not is_cut_off
        and error.message.startswith(
            ("McpSession closed", "SSE stream", "server answered a request")
        )
    )


@contextmanager
def _explained(log: ServerLog) -> Iterator[None]:
    """Raise errors that break the connection as a McpClientError with the reason, as far as it is
    known: why a request failed, and the last output of the server."""
    with capture_error() as attempt:
        yield
    if attempt.error is None:
        return
    if isinstance(attempt.error, PermanentFailureError):
        raise attempt.error
    leaf: BaseException = attempt.error
    while isinstance(leaf, BaseExceptionGroup):
        leaf = leaf.exceptions[0]
    words = log.mask(str(leaf) or ("" if isinstance(leaf, McpClientError) else type(leaf).__name__))
    parts = [words] if words and (words != "Connection closed" or not log.reason) else []
    parts += [log.reason] if log.reason and log.reason not in words else []
    parts += [_("It said: %s") % log.last_words] if log.last_words else []
    raise McpClientError(" ".join(parts)) from attempt.error


async def _watch(
    client: Client, callbacks: SessionCallbacks, subscribed: "asyncio.Future[None]"
) -> None:
    """Subscribe, where the protocol requires it."""
    tools = client.server_capabilities.tools
    is_modern = client.protocol_version in MODERN_PROTOCOL_VERSIONS
    while is_modern and tools is not None and tools.list_changed:
        try:
            async with client.listen(tools_list_changed=True) as subscription:
                if subscribed.done():  # again, or late: there may have been a change before
                    callbacks.changed()
                else:
                    subscribed.set_result(None)
                async for _event in subscription:
                    callbacks.changed()
        except ListenNotSupportedError:
            return
        except (MCPError, SubscriptionLost, TimeoutError, RuntimeError):
            pass
        await asyncio.sleep(LISTEN_PAUSE)
