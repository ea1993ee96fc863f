"""Filters what comes from a server before the library reads it: floods are dropped, and the entries
of a list of tools are checked one by one, because the library refuses the whole list for one bad
entry."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from typing import Any

from django.utils.translation import gettext as _
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse
from mcp_types.methods import SERVER_RESULTS
from pydantic import TypeAdapter, ValidationError

from tools.mcp.listing import ENTRY_ERROR_KEY
from tools.mcp.rate_limits import ServerRateLimit
from tools.mcp.server_log import ServerLog
from tools.text.untrusted import clean_line

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
            place, *path = line["loc"]
            where = ".".join(map(str, path))
            problems.setdefault(int(place), f"{where}: {line['msg']}" if where else line["msg"])
        for place, problem in problems.items():
            entries[place] = _marked(entries[place], problem)


def _with_schema(entry: Any) -> Any:
    if not isinstance(entry, dict):
        return entry
    schema = entry.get("inputSchema") or _ANY
    return {**entry, "inputSchema": {**_ANY, **schema} if isinstance(schema, dict) else schema}


@cache
def _list_of(kind: Any) -> TypeAdapter[list[Any]]:
    entries: Any = kind.model_fields["tools"].annotation
    return TypeAdapter(entries)


def _marked(entry: Any, problem: str) -> dict[str, Any]:
    name = entry.get("name") if isinstance(entry, Mapping) else None
    reason = _("Its entry is not what the protocol says: %s") % clean_line(problem, WORDS_LIMIT)
    return {
        "name": name if isinstance(name, str) else "",
        "inputSchema": _ANY,
        "_meta": {ENTRY_ERROR_KEY: reason},
    }
