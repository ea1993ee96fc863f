"""Tools of MCP servers, as provider ``mcp``: a link to each enabled server, and their tools as one
cached list.

For the admin, a server is tried out in a session of its own, which ends with the trial. The library
that makes connections is loaded at first use.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from django.conf import settings as project

from tools.contract import (
    ToolAnnotation,
    ToolAvailabilityContext,
    ToolContentItem,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolInvocation,
    ToolSpec,
)
from tools.error_boundary import KeptTasks, capture_error, log_errors
from tools.fetch.allow_list import AllowList
from tools.fetch.request import DestinationResolver
from tools.mcp.link import (
    ConnectionStatus,
    McpConnection,
    absence_message,
    delete_statuses,
    renew_statuses,
    write_statuses,
)
from tools.mcp.settings import McpServerSettings
from tools.mcp.specs import (
    MCP,
    Json,
    McpClientError,
    OmittedTool,
    ProgressCallback,
    SessionCallbacks,
    SessionOpener,
    build_catalogue,
    is_repeatable,
)
from tools.processes.threads import run_in_thread
from tools.registry import catalogue
from tools.registry.catalogue import MOST_ROWS, DatabaseThread, ensure_tool_rows
from tools.registry.settings import ToolSettings
from tools.text.untrusted import clean_line, clean_untrusted
from tools.token_bucket import RefillRate, TokenBucket


async def load_session_opener(destinations: DestinationResolver) -> SessionOpener:
    """A function that connects to servers; ``destinations`` checks their addresses.

    The library is imported at first use, in a thread: it takes half a second and 30 MiB, which most
    installations save.
    """

    def load() -> SessionOpener:
        from tools.mcp.connection import open_session

        return lambda settings, callbacks, is_old: open_session(
            settings, destinations, callbacks, is_old=is_old
        )

    return await run_in_thread(load)


@dataclass(slots=True)
class ProbeResult:
    """The result. ``error`` is "" when there was a session; ``about`` and ``tools`` then hold what
    the server offers."""

    seconds: float = 0.0
    about: Json = field(default_factory=dict)
    tools: list[ToolSpec] = field(default_factory=list)
    left_out: tuple[OmittedTool, ...] = ()
    error: str = ""


async def probe_mcp_server(settings: McpServerSettings) -> ProbeResult:
    """Connect to the server of ``settings``, list its tools and leave. Never raises; takes as long
    as connecting may, twice."""
    found = ProbeResult()
    began = time.monotonic()
    with capture_error() as attempt:
        if settings.problem:
            raise McpClientError(settings.problem)
        allow = AllowList.parse(project.FETCH_ALLOW, "mcp")
        connect = await load_session_opener(DestinationResolver(allow))
        # A probe ends before anything changes, so the callbacks do nothing.
        async with connect(
            settings, SessionCallbacks(lambda: None, lambda: None), False
        ) as session:
            found.about = session.about
            listing = await session.list_tools()
            catalogue = build_catalogue(settings, listing.tools)
            found.tools, found.left_out = list(catalogue.specs), catalogue.left_out
            found.error = listing.problem
    if attempt.error is not None:
        words = str(attempt.error)
        if not isinstance(attempt.error, McpClientError):
            words = f"{type(attempt.error).__name__}: {words}"
        found.error = clean_line(settings.masked(words), 1_000) or "?"
    found.seconds = round(time.monotonic() - began, 3)
    return found


logger = logging.getLogger(__name__)


# From the result of MCP's ``tools/call``, as JSON, to ours. Pure.

MAX_ITEMS = 100
MAX_TEXT = 2**20
"""The most characters of all text together that are kept; the registry limits how much of it the
model gets."""
_CUT = "\n…（内容过长，已截断）"


def convert_mcp_result(
    tool_name: str, given: Json, server_name: str, protocol: str
) -> ToolExecutionResult:
    """``given`` as a result: a failure with the server's own text where it reports an error.

    If there are only texts, they are the content or the error message. Otherwise everything is in
    the items, in order, and the content is empty, so that no text appears twice.
    """
    content = given.get("content")
    items = (
        [_item(block) for block in content[:MAX_ITEMS] if isinstance(block, Mapping)]
        if isinstance(content, list)
        else []
    )
    _bound(items)
    joined = "\n".join(
        item.text for item in items if item.content_type == "text" and item.text.strip()
    )
    is_only_text = all(item.content_type == "text" for item in items)
    is_error = given.get("isError") is True
    return ToolExecutionResult(
        tool_name,
        success=not is_error,
        content=joined if is_only_text and not is_error else "",
        error_message=(joined or "服务器没有说明原因") if is_error else "",
        structured_content=given.get("structuredContent"),
        content_items=[] if is_only_text else items,
        metadata={"server_name": server_name, "protocol_version": protocol},
    )


def _item(block: Json) -> ToolContentItem:
    make = _MAKERS.get(str(block.get("type")))
    item = make(block) if make else ToolContentItem("unknown")
    item.annotation = _annotation(block.get("annotations"))
    return item


def _media(block: Json) -> ToolContentItem:
    return ToolContentItem(
        str(block["type"]),
        data=_word(block, "data"),
        mime_type=clean_line(block.get("mimeType"), 100),
    )


def _link(block: Json) -> ToolContentItem:
    return ToolContentItem(
        "resource_link",
        uri=clean_line(block.get("uri"), 2_000),
        name=clean_line(block.get("title") or block.get("name"), 200),
        description=clean_untrusted(block.get("description"), 1_000),
        mime_type=clean_line(block.get("mimeType"), 100),
    )


def _resource(block: Json) -> ToolContentItem:
    """An embedded resource: its words, or the bytes of a picture, a sound or something else."""
    held = block.get("resource")
    resource = held if isinstance(held, Mapping) else {}
    mime, uri = clean_line(resource.get("mimeType"), 100), clean_line(resource.get("uri"), 2_000)
    if blob := _word(resource, "blob"):
        kind = mime.partition("/")[0]
        return ToolContentItem(
            kind if kind in ("image", "audio") else "binary", data=blob, mime_type=mime, uri=uri
        )
    return ToolContentItem("resource", text=_word(resource, "text"), mime_type=mime, uri=uri)


_MAKERS: dict[str, Callable[[Json], ToolContentItem]] = {
    "text": lambda block: ToolContentItem("text", text=_word(block, "text")),
    "image": _media,
    "audio": _media,
    "resource_link": _link,
    "resource": _resource,
}


def _word(block: Json, name: str) -> str:
    value = block.get(name)
    return value if isinstance(value, str) else ""


def _annotation(given: object) -> ToolAnnotation | None:
    if not isinstance(given, Mapping):
        return None
    audience, priority = given.get("audience"), given.get("priority")
    return ToolAnnotation(
        audience=[clean_line(one, 20) for one in audience[:4]]
        if isinstance(audience, list)
        else [],
        priority=float(priority) if isinstance(priority, int | float) else None,
    )


def _bound(items: list[ToolContentItem]) -> None:
    """Cut the text of ``items`` where all of it together becomes too long."""
    room = MAX_TEXT
    for item in items:
        if len(item.text) > room:
            item.text = item.text[:room] + _CUT
        room = max(0, room - len(item.text))


CLOSE_SECONDS = 4.0
RENEW_SECONDS = 20
SETTLE_SECONDS = 0.2
"""Changes of a server's status that come so close together are written once."""
PROGRESS_PER_SECOND, PROGRESS_AT_ONCE = 1, 10
MOST_REMEMBERED = 5_000
"""Names of tools of which it is known whose they were."""

LinkedTool = tuple[McpConnection, ToolSpec]
"""A tool and the server that has it."""


class McpToolSnapshot:
    """What there was when it was made: tools by name, and in order."""

    def __init__(
        self,
        wanted: Mapping[int, McpServerSettings],
        stamp: tuple[bool, ...],
        found: dict[str, LinkedTool],
    ) -> None:
        self.wanted, self.stamp, self.found = wanted, stamp, found
        self.specs = [spec for _, spec in found.values()]


class McpToolProvider:
    """A :class:`tools.registry.catalogue.LiveProvider`. ``allow`` lists the servers that may be
    reached besides the public internet.

    ``reserved`` are names of tools that no server may use: the first tool of a name wins.
    """

    provider_name = MCP
    provider_type = MCP

    def __init__(
        self, desk: DatabaseThread, allow: AllowList | None = None, reserved: Iterable[str] = ()
    ) -> None:
        self._desk = desk
        self._destinations = DestinationResolver(allow)
        self._reserved = frozenset(reserved)
        self._wanted: Mapping[int, McpServerSettings] = {}
        self._links: dict[int, McpConnection] = {}
        self._made: McpToolSnapshot | None = None
        self._owners: dict[str, int] = {}
        self._known: frozenset[str] = frozenset()
        """Names of all tools that MCP servers ever had; which server is not recorded."""
        self._ensured: dict[str, ToolSpec] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._unwritten: set[McpConnection] = set()
        self._written: dict[McpConnection, ConnectionStatus] = {}
        self._is_closed = False
        self._keeping: asyncio.Task[None] | None = None
        self._ending = KeptTasks()
        self._dirty = asyncio.Event()

    def know(self, tools: Iterable[ToolSettings]) -> None:
        """Know of all ``tools`` which ones are, or were, of a server, as far as they are not too
        many. As :meth:`obey`."""
        names = (tool.name for tool in tools if tool.provider_name == MCP)
        self._known = frozenset(islice(names, MOST_ROWS))

    def obey(self, servers: Mapping[int, McpServerSettings]) -> None:
        """Have the connections that the rows say, by their keys."""
        self._wanted = servers
        if self._loop is not None and not self._is_closed:
            self._loop.call_soon_threadsafe(self._follow)

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._keeping = self._loop.create_task(self._keep_books(), name="mcp-books")
        self._follow()

    def listing_key(self, context: ToolAvailabilityContext | None) -> McpToolSnapshot:
        return self._offer()

    async def list_tools(self, context: ToolAvailabilityContext | None = None) -> list[ToolSpec]:
        return self._offer().specs

    async def invoke(
        self, invocation: ToolInvocation, context: ToolExecutionContext | None = None
    ) -> ToolExecutionResult:
        name = invocation.tool_name
        found = self._offer().found.get(name)
        if found is None:
            reason = self.absence(name)
            return (
                catalogue.failed_result(name, reason)
                if reason
                else catalogue.not_found_result(name)
            )
        link, spec = found
        original = link.catalogue.originals.get(name, name)
        try:
            answer = await link.call(
                original, invocation.arguments, _progress(context), may_repeat=is_repeatable(spec)
            )
        except McpClientError as problem:
            return catalogue.failed_result(
                name,
                problem.text,
                error_detail=link.settings.masked(str(problem)),
                server_name=link.settings.name,
            )
        return convert_mcp_result(
            name, answer, link.settings.name, str(link.about.get("protocol", ""))
        )

    def absence(self, tool_name: str) -> str:
        if tool_name in self._offer().found:
            return ""
        if (pk := self._owners.get(tool_name)) is None:
            return self._absence_of_somebodys(tool_name)
        settings, link = self._wanted.get(pk), self._links.get(pk)
        if settings is None:
            return ""
        if not settings.enabled:
            return absence_message(tool_name, settings.name, "该服务器已被管理员停用")
        return absence_message(
            tool_name,
            settings.name,
            link.absence_reason() if link else "该服务器正在启动，请稍后再试",
        )

    def _absence_of_somebodys(self, tool_name: str) -> str:
        """The same of a tool that was there before this process was, while there is a server that
        may have it."""
        away = [link for link in self._links.values() if not (link.is_offered or link.is_over)]
        if tool_name not in self._known or not away:
            return ""
        return absence_message(
            tool_name, "、".join(link.settings.name for link in away), away[0].absence_reason()
        )

    async def close(self) -> None:
        """Close every session, end every program that was started for one, and delete their status
        rows."""
        self._is_closed = True
        links, self._links, self._wanted = list(self._links.values()), {}, {}
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait([self._keeping])
        await asyncio.gather(
            *(link.close(CLOSE_SECONDS) for link in links),
            *self._ending.values(),
            return_exceptions=True,
        )
        if self._loop is not None:
            with log_errors(logger, "The state of MCP servers could not be taken back"):
                await self._desk.submit(delete_statuses, self._desk.process_id, None)

    # --- Links --------------------------------------------------------------------------

    def _follow(self) -> None:
        """Have a link for each enabled server, and for no other. Runs on the loop."""
        if self._is_closed:
            return
        wanted = {pk: settings for pk, settings in self._wanted.items() if settings.enabled}
        for pk, link in list(self._links.items()):
            settings = wanted.get(pk)
            if settings is not None and settings.reaches_as(link.settings):
                if settings != link.settings:
                    link.apply_settings(settings)
            else:
                del self._links[pk]
                self._unwritten.discard(link)
                self._written.pop(link, None)
                # The next link to the same server need not wait for it.
                self._ending.begin(self._ended(link), "mcp-end")
        load = partial(load_session_opener, self._destinations)
        for pk in [pk for pk in wanted if pk not in self._links]:
            self._links[pk] = link = McpConnection(
                wanted[pk], load, self._on_change, self._reserved
            )
            link.start()
        self._made = None

    async def _ended(self, link: McpConnection) -> None:
        await link.close(CLOSE_SECONDS)
        if link.settings.pk not in self._links:
            with log_errors(logger, "The state of an MCP server could not be taken back"):
                await self._desk.submit(delete_statuses, self._desk.process_id, link.settings.pk)

    def _on_change(self, link: McpConnection) -> None:
        if self._links.get(link.settings.pk) is link:
            self._made = None
            self._unwritten.add(link)
            self._dirty.set()

    # --- The list -------------------------------------------------------------------------

    def _offer(self) -> McpToolSnapshot:
        """The tools that may be called now; computed again only after a change."""
        stamp = tuple(link.is_offered for link in self._links.values())
        offer = self._made
        if offer is None or offer.wanted is not self._wanted or offer.stamp != stamp:
            offer = self._made = McpToolSnapshot(self._wanted, stamp, self._found())
        return offer

    def _found(self) -> dict[str, LinkedTool]:
        """The tools by name. The first server of a name keeps it, also while it is offline: no
        other server may take it over."""
        claimed: dict[str, int] = {}
        found: dict[str, LinkedTool] = {}
        for pk, settings in self._wanted.items():
            link = self._links.get(pk)
            if link is None or not settings.enabled or not settings.reaches_as(link.settings):
                continue
            for spec in link.catalogue.specs:
                if claimed.setdefault(spec.name, pk) == pk and link.is_offered:
                    found[spec.name] = link, spec
            link.shadowed = frozenset(
                spec.name for spec in link.catalogue.specs if claimed[spec.name] != pk
            )
        if len(self._owners) < MOST_REMEMBERED:
            self._owners.update(claimed)
        return found

    # --- The books ------------------------------------------------------------------------

    async def _keep_books(self) -> None:
        """Store the status and the tools of each server after each change, and the heartbeat of
        this process."""
        loop = asyncio.get_running_loop()
        due = 0.0
        while True:
            with log_errors(logger, "The state of MCP servers could not be put down"):
                if loop.time() >= due:
                    due = loop.time() + RENEW_SECONDS
                    await self._desk.submit(renew_statuses, self._desk.process_id)
                await self._write()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._dirty.wait()
                    await asyncio.sleep(SETTLE_SECONDS)
                    self._dirty.clear()

    async def _write(self) -> None:
        offered = self._offer().specs
        changed = [spec for spec in offered if self._ensured.get(spec.name) is not spec]
        if changed:
            await self._desk.submit(ensure_tool_rows, changed)
        self._ensured = {
            spec.name: spec for spec in offered
        }  # and none of those that are gone: a server can invent names without end
        for link in list(self._unwritten):
            status = link.status(self._desk.process_id)
            if self._links.get(status.server_id) is link and self._written.get(link) != status:
                await self._desk.submit(write_statuses, status)
                self._written[link] = status
            if link.status(self._desk.process_id) == status:
                self._unwritten.discard(link)


def _progress(context: ToolExecutionContext | None) -> ProgressCallback | None:
    """A callback that passes on the progress of a call; None if it is not wanted. Too frequent
    reports are dropped."""
    if context is None or context.on_progress is None:
        return None
    bucket = TokenBucket(RefillRate(PROGRESS_AT_ONCE, 1 / PROGRESS_PER_SECOND))

    async def report(progress: float, total: float | None, message: str | None) -> None:
        if bucket.take_available():
            done = f"{progress:g}/{total:g}" if total else f"{progress:g}"
            context.report_progress(f"{clean_line(message, 300)} ({done})".strip())

    return report
