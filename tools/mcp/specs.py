"""From what a server lists to what the model may be offered. Everything here is words from
outside, and without the library that makes connections.

What can go wrong between us and an MCP server, by what can be done about it.

::

    McpClientError              str(error) is for the operator; ``text`` is for the model
    ├── CallNotSentError        the connection was lost before the call: it did not run, and may be
    │                           repeated
    ├── ConnectionLostError     the connection was lost during the call: it may or may not have run
    ├── ServerRefusedError      the server answered with a protocol error: an ordinary failure
    ├── ProtocolViolationError  the answer of the server breaks the protocol
    ├── AnswerTimeoutError      the time is up; the server was notified of the cancellation
    ├── ServerUnavailableError  there is no connection, and nothing was tried
    └── PermanentFailureError   there will be no connection until the row is changed
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Protocol

from django.utils.translation import gettext as _

from tools.contract import JsonSchema, ToolAnnotation, ToolIcon, ToolSpec
from tools.mcp.settings import McpServerSettings
from tools.schemas.untrusted_schemas import SchemaRefused, clean_schema
from tools.text.untrusted import clean_line, clean_quote, clean_tool_name, clean_untrusted


class McpClientError(Exception):
    """A call or a connection that came to nothing."""

    text = "与 MCP 服务器通信失败"

    def __init__(self, operator: str, text: str = "") -> None:
        super().__init__(operator)
        self.text = text or self.text


class CallNotSentError(McpClientError):
    """The server cannot have seen the call."""

    text = "MCP 服务器连接不上，本次调用没有发出"


class ConnectionLostError(McpClientError):
    """The server may have seen the call."""

    text = "与 MCP 服务器的连接中断，本次调用可能已经执行，也可能没有"


class ServerRefusedError(McpClientError):
    """An answer of the server, in its own words."""


class ProtocolViolationError(McpClientError):
    """An answer that cannot be read."""

    text = "MCP 服务器返回的结果不符合协议，无法读取"


class ServerUnavailableError(McpClientError):
    """The server is away, or rests after failures."""

    text = "MCP 服务器目前不可用"


class AnswerTimeoutError(McpClientError):
    """No answer came in time."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            _("No answer within %s s.") % f"{seconds:g}",
            f"超过 {seconds:g} 秒没有结果；本次调用可能已经在服务器上执行",
        )


class PermanentFailureError(McpClientError):
    """Trying again would be of no use."""


Json = Mapping[str, Any]
ENTRY_ERROR_KEY = "frostagent/fault"
"""In the ``_meta`` of a listed tool: why its entry cannot be read. The tool is left out for it."""


class ProgressCallback(Protocol):
    """Called with the progress of a call, in the server's own unit."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...


@dataclass(frozen=True, slots=True)
class ToolListing:
    """The tools of a server as it declares them; ``problem`` is what could not be read; valid for
    ``seconds``."""

    tools: tuple[Json, ...] = ()
    problem: str = ""
    seconds: float | None = None


class McpSession(Protocol):
    """A live session. All but the making and the ending may be done from any task of its loop."""

    about: Json
    """The server's description of itself: ``name``, ``version``, ``title``, ``protocol``,
    ``instructions``."""

    @property
    def is_lost(self) -> bool:
        """Whether it is known to be of no use any more."""
        ...

    async def list_tools(self) -> ToolListing:
        """Raises a :class:`tools.mcp.specs.McpClientError`, as do all below."""
        ...

    async def call(
        self, name: str, arguments: Json, progress: ProgressCallback | None = None
    ) -> Json:
        """The server's result. When cancelled, the server was notified, and the session stays
        usable."""
        ...

    async def ping(self) -> None:
        """Return when the server has answered something."""
        ...


@dataclass(frozen=True, slots=True)
class SessionCallbacks:
    """The callbacks of a connection; they run at any time, on its event loop."""

    lost: Callable[[], None]
    changed: Callable[[], None]


SessionOpener = Callable[
    [McpServerSettings, SessionCallbacks, bool], AbstractAsyncContextManager[McpSession]
]
"""A connection for as long as the block: entered, and left, in one and the same task.

The last argument is whether to begin in the old way, for servers that the question for
newer ones ends. Raises a :class:`tools.mcp.specs.McpClientError`, or another exception when it
breaks while it is used.
"""


MCP = "mcp"
"""Name and type of the provider."""
MAX_TOOLS = 500
DESCRIPTION_LIMIT = 2_000
TITLE_LIMIT = 200
REASON_LIMIT = 300
ICONS, ICON_LIMIT = 4, 2_000
MARGIN_SECONDS = 5
"""What the registry's own time limit is longer than the server's: who stops a call first finds the
words for it."""
LEFT_OUT_SHOWN = 100
"""Tools that are left out and shown with the reason; ten thousand would not fit anybody's page."""


@dataclass(frozen=True, slots=True)
class OmittedTool:
    """A tool that is not offered, by the server's own name made readable, and why, for the
    operator."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class ToolCatalogue:
    """What one server offers. ``originals`` gives the server's own name of each tool."""

    specs: tuple[ToolSpec, ...] = ()
    originals: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[OmittedTool, ...] = ()
    number_left_out: int = 0


def build_catalogue(
    settings: McpServerSettings,
    declared: Sequence[Mapping[str, object]],
    reserved: frozenset[str] = frozenset(),
    before: ToolCatalogue | None = None,
) -> ToolCatalogue:
    """The tools that ``declared`` (MCP's ``Tool`` objects as JSON) makes, in the server's order.

    A tool that is as it was ``before`` is the same object as then. Takes a few
    milliseconds for each tool with a large schema.
    """
    known = {spec.name: spec for spec in before.specs} if before else {}
    specs: dict[str, ToolSpec] = {}
    originals: dict[str, str] = {}
    left: list[OmittedTool] = []
    for tool in declared:
        raw = tool.get("name")
        shown = clean_line(raw, 100) or "?"
        try:
            if (reason := _excluded(settings, str(raw))) is None:
                spec = _spec(settings, tool, specs.keys() | reserved, reserved)
                if len(specs) >= MAX_TOOLS:
                    raise SchemaRefused(_("There are more than %s tools.") % MAX_TOOLS)
                old = known.get(spec.name)
                specs[spec.name] = old if old == spec and old is not None else spec
                originals[spec.name] = str(raw)
        except SchemaRefused as refused:
            reason = str(refused)
        if reason:
            left.append(OmittedTool(shown, reason))
    return ToolCatalogue(tuple(specs.values()), originals, tuple(left[:LEFT_OUT_SHOWN]), len(left))


def is_repeatable(spec: ToolSpec) -> bool:
    """Whether the server declares that the tool can be called twice safely."""
    hints = spec.annotation
    return hints is not None and bool(hints.read_only or hints.idempotent)


def _excluded(settings: McpServerSettings, name: str) -> str | None:
    """Why the operator excluded it; None when it is included."""
    if settings.include and not any(fnmatchcase(name, pattern) for pattern in settings.include):
        return _("It is not among the tools that are wanted.")
    if any(fnmatchcase(name, pattern) for pattern in settings.exclude):
        return _("It is among the tools that are not wanted.")
    return None


def _spec(
    settings: McpServerSettings, tool: Json, taken: Any, reserved: frozenset[str]
) -> ToolSpec:
    meta = tool.get("_meta")
    if isinstance(meta, Mapping) and (
        problem := clean_line(meta.get(ENTRY_ERROR_KEY), REASON_LIMIT)
    ):
        raise SchemaRefused(problem)
    name = _name(settings, tool.get("name"))
    if name in taken:
        form = (
            _("%s is a tool of this program.")
            if name in reserved
            else _("An earlier tool is called %s.")
        )
        raise SchemaRefused(form % name)
    annotation = _annotation(tool.get("annotations"))
    title = clean_line(tool.get("title"), TITLE_LIMIT) or (annotation.title if annotation else "")
    return ToolSpec(
        name=name,
        description=_description(settings, tool),
        title=title,
        parameters_schema=clean_schema(tool.get("inputSchema")),
        output_schema=_output_schema(tool.get("outputSchema")),
        provider_name=MCP,
        provider_type=MCP,
        icons=_icons(tool.get("icons")),
        annotation=annotation,
        metadata=_metadata(settings, annotation),
    )


def _name(settings: McpServerSettings, raw: object) -> str:
    """The name for the model; one that has no sign that endpoints take becomes a number, always the
    same."""
    if not isinstance(raw, str) or not clean_line(raw, 100):
        raise SchemaRefused(_("It has no name."))
    number = zlib.crc32(raw.encode("utf-8", "replace"))
    return (settings.name_prefix + (clean_tool_name(raw) or f"tool_{number:08x}"))[:64]


def _description(settings: McpServerSettings, tool: Mapping[str, object]) -> str:
    said = clean_untrusted(tool.get("description"), DESCRIPTION_LIMIT)
    own = clean_quote(tool.get("name"), 100) if not clean_tool_name(str(tool.get("name"))) else ""
    return "：".join(filter(None, [own, said])) or f"来自 {clean_quote(settings.name)} 的 MCP 工具"


def _metadata(settings: McpServerSettings, annotation: ToolAnnotation | None) -> dict[str, object]:
    metadata: dict[str, object] = {
        "server_name": settings.name,
        "timeout_seconds": settings.call_seconds + MARGIN_SECONDS,
    }
    if annotation and annotation.destructive and not annotation.read_only:
        metadata["requires_approval"] = True
    return metadata


def _output_schema(schema: object) -> JsonSchema | None:
    """None also for one that cannot be used: the tool can, and nothing promises less."""
    try:
        return clean_schema(schema) if schema is not None else None
    except SchemaRefused:
        return None


def _annotation(given: object) -> ToolAnnotation | None:
    if not isinstance(given, Mapping) or not given:
        return None
    hints = {name: value for name, value in given.items() if isinstance(value, bool)}
    return ToolAnnotation(
        title=clean_line(given.get("title"), TITLE_LIMIT),
        read_only=hints.get("readOnlyHint"),
        destructive=hints.get("destructiveHint"),
        idempotent=hints.get("idempotentHint"),
        open_world=hints.get("openWorldHint"),
    )


def _icons(given: object) -> list[ToolIcon]:
    found = []
    icons = [icon for icon in given if isinstance(icon, Mapping)] if isinstance(given, list) else []
    for icon in icons[:ICONS]:
        src, sizes = clean_line(icon.get("src"), ICON_LIMIT + 1), icon.get("sizes")
        if src.startswith(("https://", "data:image/")) and len(src) <= ICON_LIMIT:
            lines = sizes[:8] if isinstance(sizes, list) else []
            mime_type = clean_line(icon.get("mimeType"), 100)
            found.append(ToolIcon(src, mime_type, [clean_line(size, 20) for size in lines]))
    return found
