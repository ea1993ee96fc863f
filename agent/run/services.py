"""What the run loop hands to the tools that it calls, apart from the chat and the sender."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agent.domain.chat_state import ChatState, ToolDiscovery
from agent.domain.client_actions import ClientActions
from agent.domain.persona import PersonaSettings
from agent.llm.requests.messages import ChatMessage, system_message
from agent.llm.spending import SpendScope
from agent.memory.recall import NoteService
from agent.run.deferred_calls import DeferredCalls
from agent.run.message_sender import MessageSender
from agent.run.tool_results import ChatPauses, RunFlow
from tools.contract import ToolExecutionContext, ToolExecutionResult, ToolSpec
from tools.registry.offers import format_tool_names
from tools.registry.registry import ToolRegistry
from tools.text.fences import FenceKind, fence_lines

FOUND = "found"
"""The entry of a result's metadata that holds what was :class:`FoundTools`."""
REMINDER = (
    "另有 {count} 个工具没有在可用工具中列出。需要其中某一个时，先用 tool_search 搜索；"
    "搜索到的工具从下一步起就可以直接调用，不必再搜索。"
    "它们的名称和说明如下："
)
NOT_NAMED = "（还有 {count} 个没有在此列出，同样可以搜索。）"
HINT = "这个工具的参数说明还没有给出：请先用 tool_search 搜索 {name}，再按它的参数调用。"


@dataclass(frozen=True, slots=True)
class FoundTools:
    """The names of deferred tools, as a call of the tool that searches brings them."""

    names: tuple[str, ...]


@dataclass(slots=True)
class RunDiscoveries:
    """What has been found, in the order of finding, as one run has it. Without ``session_pk``
    nothing is stored.

    ``names`` is replaced and never changed. It may hold tools that are no longer there.
    """

    session_pk: int | None = None
    names: tuple[str, ...] = ()

    def add_found_tools(self, result: ToolExecutionResult) -> ToolDiscovery | None:
        """Take over what ``result`` says was found; what is to be stored of that, None for
        nothing."""
        found = result.metadata.get(FOUND)
        new = (
            tuple(name for name in found.names if name not in self.names)
            if isinstance(found, FoundTools)
            else ()
        )
        self.names += new
        return ToolDiscovery(self.session_pk, new) if new and self.session_pk is not None else None


@dataclass(frozen=True, slots=True)
class RunToolset:
    """The tools of one run, those that have to be found included."""

    registry: ToolRegistry
    discovered: tuple[str, ...] = ()

    async def deferred(self, context: ToolExecutionContext) -> list[ToolSpec]:
        """Every tool that is there to be found, whether it has been or not."""
        return (await self.registry.offering(context.availability())).deferred

    async def with_search_hint(
        self, result: ToolExecutionResult, context: ToolExecutionContext
    ) -> ToolExecutionResult:
        """``result`` with the advice to search first, if a call failed whose parameters the model
        had not seen."""
        name = result.tool_name
        if result.success or "refusal" in result.metadata or name in self.discovered:
            return result
        if all(tool.name != name for tool in await self.deferred(context)):
            return result
        hint = HINT.format(name=name)
        if content := result.content.strip():
            return replace(result, content=f"{content}\n{hint}")
        return replace(result, error_message=f"{result.error_message}\n{hint}".strip())


def build_tool_reminder(deferred: Sequence[ToolSpec]) -> str:
    """The reminder of the tools that the model may search for.

    The same tools make the same text, found or not: were it to change with each
    discovery, the endpoint could not use again what it keeps of earlier requests.
    """
    lines = format_tool_names(deferred)
    rest = (
        [NOT_NAMED.format(count=len(deferred) - len(lines))] if len(lines) < len(deferred) else []
    )
    fence = fence_lines(FenceKind.TOOLS, lines)
    return "\n".join([REMINDER.format(count=len(deferred)), fence, *rest])


def add_tool_reminder(system: ChatMessage, deferred: Sequence[ToolSpec]) -> ChatMessage:
    """The system message of a request with the reminder at its end.

    There it stands before the conversation, which grows, so that an endpoint's cache
    holds it as well; behind the persona's words, which the operator means to come first;
    and in no message of its own, since some endpoints take one system message alone.
    """
    content: Any = system["content"]
    return system_message(f"{content}\n\n{build_tool_reminder(deferred)}")


@dataclass(frozen=True, slots=True)
class RunServices:
    """The services of one run. What a run does not have is None: one without a chat has no
    ``sender``, no ``deferred_calls`` and no ``notes``."""

    sender: MessageSender | None = None
    """Sends to the chat of the run."""
    flow: RunFlow = field(default_factory=RunFlow)
    pauses: ChatPauses = field(default_factory=ChatPauses)
    chat_state: ChatState = field(default_factory=ChatState)
    """The state of the chat. A tool is given a copy of its values in
    ``context.metadata["state"]``."""
    deferred_calls: DeferredCalls | None = None
    notes: NoteService | None = None
    toolset: RunToolset | None = None
    """The tools of the run; there during a call alone."""
    spend_scope: SpendScope = field(default_factory=SpendScope)
    """Who its model calls count for, for tools that are served from other tasks."""
    subagents: tuple[str, ...] = ()
    """The names of the subagents at work, the outermost first."""
    persona: PersonaSettings | None = None
    """Who answers; also in the runs of its subagents."""
    actions: ClientActions | None = None
    """What has the account act; None where no client can."""


def get_services(context: ToolExecutionContext) -> RunServices:
    """The services of the run that makes the call of ``context``; empty ones where no run does, as
    when an operator tries a tool."""
    services = context.services
    return services if isinstance(services, RunServices) else RunServices()


def get_sender(context: ToolExecutionContext) -> MessageSender:
    """What sends to the chat of the call. Raises LookupError for a call outside of any chat: a tool
    that sends has to be declared with ``needs_chat``."""
    if (sender := get_services(context).sender) is None:
        raise LookupError("this call belongs to no chat; declare its tool with needs_chat")
    return sender


def get_notes(context: ToolExecutionContext) -> NoteService:
    """The memory of the run. Raises LookupError for a run that has none."""
    if (notes := get_services(context).notes) is None:
        raise LookupError("this run has no memory; hand its ConversationHandler a MemoryService")
    return notes
