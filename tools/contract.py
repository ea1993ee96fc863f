"""The tool contract: what every tool looks like to the run loop, wherever it comes from.

The names and fields are MaiBot's. A provider translates its own kind of tool into
:class:`ToolSpec` and runs a :class:`ToolInvocation`; the run loop sees nothing else.

What can go wrong with a tool, and who reads it.

::

    ToolError
    ├── InvalidDeclaration    a function cannot be offered as a tool; raised at its declaration
    ├── InvalidArguments      the model wrote arguments the tool does not take, and may try again
    ├── CallRefused           the call may not be made
    ├── ApprovalNeeded        the call has to wait for an owner's approval; the caller asks
    └── ToolFailed            the tool could not do it
        └── OutcomeUnknown    it may have done it, or not; it is not tried again

Their texts, except the first one's, are written for the model. Any other exception that
leaves a tool is a bug of the tool: it is logged with its traceback and reported as a
failure.
"""

import json
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from tools.refusals import ToolRefusal
from tools.text.fences import neutralize_marks


class ToolError(Exception):
    """Something about a tool is wrong in a way that its author or the model can act on."""


class InvalidDeclaration(ToolError):  # noqa: N818 - it says what is wrong
    """A function cannot be described to a model. Raised where the function is declared."""


class InvalidArguments(ToolError):  # noqa: N818 - as above
    """Arguments that must not reach a tool; ``problems`` are one line each, in the model's words.

    ``arguments`` are as far as they could be read.
    """

    def __init__(
        self, problems: Sequence[str], arguments: Mapping[str, object] | None = None
    ) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)
        self.arguments = dict(arguments or {})


class CallRefused(ToolError):  # noqa: N818 - as above
    """The tool's row does not permit the call."""

    def __init__(self, refusal: ToolRefusal) -> None:
        super().__init__(refusal.text)
        self.refusal = refusal


class ApprovalNeeded(ToolError):  # noqa: N818 - as above
    """The call is valid but needs an owner's approval; ``arguments`` are checked and coerced."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        super().__init__("the call needs approval")
        self.arguments = arguments


class ToolFailed(ToolError):  # noqa: N818 - as above
    """The tool cannot do what was asked. ``text`` is for the model."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class OutcomeUnknown(ToolFailed):
    """Nobody can tell whether it was done."""


JsonSchema = dict[str, Any]

TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What model endpoints accept as the name of a function."""
LONG_RUNNING_NOTE = (
    "NOTE: This is a long-running operation. Do not call this tool again if it has already "
    "returned some intermediate or pending status."
)
"""Google ADK's words."""


@dataclass(slots=True)
class ToolIcon:
    """A picture for pages that list tools; it changes nothing about reasoning or invocation."""

    src: str
    mime_type: str = ""
    sizes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class ToolAnnotation:
    """Facts about a tool besides its function. They never decide on their own whether it may be
    called."""

    audience: list[str] = field(default_factory=list)
    priority: float | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    title: str = ""
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


@dataclass(slots=True)
class ToolContentItem:
    """One part of a result: text, or something that text can only point at.

    ``content_type`` is ``text``, ``image``, ``audio``, ``resource_link``, ``resource``, ``binary``
    or ``unknown``; any other value is shown to the model unchanged.
    """

    content_type: str
    text: str = ""
    data: str = ""
    mime_type: str = ""
    uri: str = ""
    name: str = ""
    description: str = ""
    annotation: ToolAnnotation | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    def history_text(self) -> str:
        """The item as text. Media bytes never reach the model through it."""
        text = self.text.strip()
        match self.content_type:
            case "text" if text:
                return text
            case "image":
                return f"[图片内容 {self.mime_type or 'unknown'}]"
            case "audio":
                return f"[音频内容 {self.mime_type or 'unknown'}]"
            case "resource_link":
                return f"[资源链接] {self.name or self.uri or '资源链接'}"
            case "resource":
                return text or f"[嵌入资源] {self.name or self.uri or '嵌入资源'}"
            case "binary":
                return f"[二进制内容 {self.mime_type or 'unknown'}]"
            case other:
                return f"[{other} 内容]"


@dataclass(slots=True, kw_only=True)
class ToolSpec:
    """The declaration of one tool; ``name`` is unique in the view the model gets.

    ``brief_description`` is used when ``description`` is empty; ``detailed_description`` is
    accepted and ignored. Both exist for declarations written for older systems.

    A spec is not changed once it was listed: a tool that changes is a new spec. The registry reads
    these entries of ``metadata``: ``default_config``, ``timeout_seconds``, ``is_long_running``,
    ``requires_approval``, ``look_ahead``, ``hooks``, ``on_timeout``, ``undo``, and, for a new row,
    ``visibility`` and ``core_tool``.
    """

    name: str
    description: str = ""
    title: str = ""
    parameters_schema: JsonSchema | None = None
    output_schema: JsonSchema | None = None
    provider_name: str = ""
    provider_type: str = ""
    enabled: bool = True
    icons: list[ToolIcon] = field(default_factory=list)
    annotation: ToolAnnotation | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    brief_description: str = field(default="", repr=False)
    detailed_description: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        self.description = str(self.description or self.brief_description).strip()
        self.icons = list(self.icons)
        self.metadata = dict(self.metadata)

    @property
    def is_long_running(self) -> bool:
        """Whether a first result may be a status alone, and the real one comes later."""
        return bool(self.metadata.get("is_long_running"))

    @property
    def is_for_model(self) -> bool:
        """Whether the model is among those that the tool is meant for; without an audience it
        is."""
        audience = self.annotation.audience if self.annotation else ()
        return not audience or "assistant" in audience or "model" in audience

    @property
    def priority(self) -> float:
        """The position of the tool in the list: higher comes first; 0 when not declared."""
        return (self.annotation.priority if self.annotation else None) or 0.0

    def llm_definition(self) -> dict[str, Any]:
        """What the model receives: name, description and a copy of the parameters, nothing else."""
        description = self.description
        if self.is_long_running:
            description = f"{description}\n\n{LONG_RUNNING_NOTE}".strip()
        definition: dict[str, Any] = {
            "name": self.name,
            "description": neutralize_marks(description),
        }
        if self.parameters_schema is not None:
            definition["parameters_schema"] = _copied(self.parameters_schema)
        return definition


def _copied(value: object) -> object:
    """A deep copy of JSON. ``copy.deepcopy`` takes five times as long, and this runs before every
    model call."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value


@dataclass(slots=True)
class ToolInvocation:
    """A model's tool call as a request that can be executed.

    The registry also takes the model's own JSON text as ``arguments``; a provider is
    always given the object that was read from it, checked and coerced.
    """

    tool_name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    call_id: str = ""
    session_id: str = ""
    stream_id: str = ""
    reasoning: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    call_pk: int = 0
    """The key of the call on record; 0 for one that is not on record."""
    begun_at: datetime | None = None
    """When an earlier process began the call, which did not live to finish it."""


@dataclass(frozen=True, slots=True)
class CallBasis:
    """What was found before a call is made. ``asks``: it waits for approval, unless its row says
    that no call does. The others tell of the message that it rests on, for who decides."""

    asks: bool = False
    message_id: str = ""
    said_by: str = ""
    words: str = ""


@dataclass(slots=True)
class ToolAvailabilityContext:
    """The chat that tools are listed for; ``is_group_chat`` is None where there is no chat.

    ``is_owner``: it is for one of the bot's owners. ``own_role`` is the bot's own in the group,
    ``owner``, ``admin`` or ``member``; "" where it is not known, or no tool asks for it.
    """

    session_id: str = ""
    stream_id: str = ""
    is_group_chat: bool | None = None
    group_id: str = ""
    user_id: str = ""
    platform: str = ""
    is_owner: bool = False
    own_role: str = ""


@dataclass(slots=True)
class ToolExecutionContext:
    """The chat and the call that a tool is executed in.

    ``metadata`` is for tools: a call of a run has ``state`` (the values of the chat, which the tool
    may change), and in a chat ``account``, ``message_id``, ``owners`` and ``sender_role``. The
    program itself uses only the fields below it.
    """

    session_id: str = ""
    stream_id: str = ""
    reasoning: str = ""
    is_group_chat: bool | None = None
    group_id: str = ""
    user_id: str = ""
    platform: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    owners: Collection[str] = frozenset()
    """The ids of the bot's owners."""
    sender_role: str = ""
    """``owner``, ``admin`` or ``member`` of the group; "" when the client does not report it."""
    believes_sender: bool = True
    """Whether ids and role give rights; not where whoever writes makes them up. Then nobody is an
    owner, on a list or an administrator."""
    own_role: str = ""
    """As that of :class:`ToolAvailabilityContext`."""
    other_chats: frozenset[str] = frozenset()
    """The chats beside its own, as ``kind:peer``, that the tool's row lets this sender reach."""
    on_progress: Callable[[str, bool], None] | None = None
    """Receives what a long-running tool reports; None where there is no receiver."""
    services: object | None = None
    """The services of the run, which the layers above know the type of."""

    def report_progress(self, text: str, *, tell: bool = False) -> None:
        """Record the progress of a long-running tool. With ``tell`` the model also gets it, and may
        report it in the chat.

        May be called from any thread and returns immediately. Does nothing without a receiver: when
        the tool is not long-running, or without a chat.
        """
        if self.on_progress is not None:
            self.on_progress(text, tell)

    @property
    def is_owner(self) -> bool:
        """Whether the sender is one of the bot's owners."""
        return self.believes_sender and bool(self.user_id) and self.user_id in self.owners

    def availability(self) -> ToolAvailabilityContext:
        return ToolAvailabilityContext(
            session_id=self.session_id,
            stream_id=self.stream_id,
            is_group_chat=self.is_group_chat,
            group_id=self.group_id,
            user_id=self.user_id,
            platform=self.platform,
            is_owner=self.is_owner,
            own_role=self.own_role,
        )


@dataclass(slots=True)
class ToolExecutionResult:
    """What came of a call, in every form that the run loop knows to use."""

    tool_name: str
    success: bool
    content: str = ""
    error_message: str = ""
    structured_content: Any = None
    content_items: list[ToolContentItem] = field(default_factory=list)
    post_history_messages: list[dict[str, Any]] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)

    def get_history_content(self) -> str:
        """The result as the model reads it: text, else item summaries, else structured content,
        else the error."""
        if text := self.content.strip():
            return text
        if items := "\n".join(
            summary for item in self.content_items if (summary := item.history_text().strip())
        ):
            return items
        value = self.structured_content
        if value is None:
            return self.error_message.strip()
        if isinstance(value, str):
            return value.strip()
        try:
            return json.dumps(value, ensure_ascii=False)
        except (TypeError, ValueError):
            return str(value).strip()


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call that succeeded, as it is on record, for the ``undo`` of its tool."""

    tool_name: str
    arguments: dict[str, Any]
    content: str = ""
    structured_content: Any = None
    """What the result noted, such as the value that was there before."""
    call_pk: int = 0


Undo = Callable[[RecordedCall, ToolExecutionContext], Awaitable[str]]
"""Takes one call back, once. Returns what there is to say about it, "" where that is nothing.

Raises :class:`ToolFailed` where it certainly did not, with words for the chat, and
:class:`OutcomeUnknown` where nobody can tell, as any other exception does. The context is that of
the call, who asked for it too, but with nobody's rights.
"""


@runtime_checkable
class ToolProvider(Protocol):
    """A source of tools. It knows neither other sources nor how the model chooses."""

    provider_name: str
    provider_type: str

    async def list_tools(self, context: ToolAvailabilityContext | None = None) -> list[ToolSpec]:
        """The tools this provider offers in ``context`` (None: everywhere)."""
        ...

    async def invoke(
        self, invocation: ToolInvocation, context: ToolExecutionContext | None = None
    ) -> ToolExecutionResult:
        """Execute one call. A failure of the tool is a result with ``success=False``, not an
        exception."""
        ...

    async def close(self) -> None:
        """Release what the provider holds; afterwards it is not used again."""
        ...


def is_picture(item: ToolContentItem) -> bool:
    return item.content_type == "image" and bool(item.data) and item.mime_type.startswith("image/")
