"""What the run loop hands to the tools that it calls, apart from the chat and the sender."""

from dataclasses import dataclass, field

from agent.domain.persona import Persona
from agent.domain.state import ChatState
from agent.llm.spending.meter import SpendScope
from agent.memory.note_service import NoteService
from agent.run.deferred_calls import DeferredCalls
from agent.run.flow import ChatPauses, RunFlow
from agent.run.message_sender import MessageSender
from agent.run.toolbox import RunToolset
from tools.contract import ToolExecutionContext


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
    persona: Persona | None = None
    """Who answers; also in the runs of its subagents."""


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
