"""What a persona would send in a chat, without sending it: no model is asked, nothing is kept."""

import json
from dataclasses import dataclass, field, replace
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from agent.admin.tools.trial import run_with_own_registry
from agent.chat.history import open_conversation
from agent.chat.message_run import build_tool_context
from agent.domain.chat_state import ChatState
from agent.domain.endpoint import Endpoint, ModelRole
from agent.domain.persona import PersonaSettings
from agent.domain.states import Claim
from agent.domain.types import DEFAULT_ACCOUNT, ChatAddress, IncomingMessage
from agent.llm.client.client import RequestFormer
from agent.llm.endpoints.endpoint_book import EndpointBook
from agent.llm.requests.base import LLMRequest
from agent.llm.requests.messages import content_text
from agent.llm.requests.tokens import estimate_message_tokens, estimate_tools_tokens
from agent.media.pipeline import MediaText
from agent.memory.recall import RecallRequest, recall_notes
from agent.memory.relevance import MemoryContext
from agent.memory.service import build_chat_viewer
from agent.models import Message
from agent.models import Persona as PersonaRow
from agent.pages.runs.step_facts import shown_note
from agent.record.chats.chat_history import load_history
from agent.record.chats.sessions import load_session_state
from agent.record.runs.runs import OTHERS, ActiveRun
from agent.record.settings.endpoints import load_endpoint_table
from agent.record.settings.personas import load_persona
from agent.run.engine import Engine, PersonaEngines
from agent.run.services import RunServices, add_tool_reminder
from agent.runtime import serving, wiring
from tools.registry.registry import ToolRegistry
from tools.registry.settings import load_tool_settings
from tools.text.readable import drop_surrogates, format_readable


@dataclass(frozen=True, slots=True)
class PreviewedEndpoint:
    """One endpoint that would be asked, and the request in its form."""

    endpoint: Endpoint
    parameters: str
    tokens: int
    left_out: int
    """Messages that its window has no room for."""
    tools_left_out: int
    body: str


@dataclass(frozen=True, slots=True)
class PromptPreview:
    """The first request of a run, before any endpoint is known, and what each would be sent."""

    persona: PersonaSettings
    messages: list[tuple[str, str]] = field(default_factory=list)
    """Roles and texts."""
    tools: list[tuple[str, str]] = field(default_factory=list)
    """Names and definitions."""
    endpoints: list[PreviewedEndpoint] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    history_left_out: int = 0
    """Messages of the history that the persona's limits have no room for."""
    has_server: bool = False
    """Whether the tools of MCP servers, plugins and HTTP tools are among ``tools``."""


def build_preview(row: PersonaRow, chat: ChatAddress, session_pk: int, text: str) -> PromptPreview:
    """What ``row`` would send if the last speaker of the chat said ``text`` now.

    All that is read is read in one transaction, which is taken back.
    """
    persona = load_persona(row)
    with transaction.atomic():
        message = _build_message(chat, session_pk, text)
        active = _build_run(persona, chat, session_pk)
        memory = _recall(message, session_pk)
        book = wiring.build_endpoint_book(table=load_endpoint_table())
        transaction.set_rollback(True)

    async def work(registry: ToolRegistry) -> PromptPreview:
        return await _preview(registry, book, message, active, memory, session_pk)

    if serving_now := serving.get_serving():
        return replace(serving_now.run(work), has_server=True)
    return run_with_own_registry(load_tool_settings(), work)


async def _preview(
    registry: ToolRegistry,
    book: EndpointBook,
    message: IncomingMessage,
    active: ActiveRun,
    memory: MemoryContext,
    session_pk: int,
) -> PromptPreview:
    """As a run begins: see :meth:`agent.chat.conversation.ConversationHandler.answer_message`."""
    persona = active.persona
    tools = PersonaEngines(Engine(book.model(ModelRole.CHAT), registry), book).find(persona)
    services = RunServices(chat_state=ChatState(session_pk, active.state), persona=persona)
    context = build_tool_context(message, DEFAULT_ACCOUNT, services)
    messages, notes = await open_conversation(
        message, active, context, tools.registry, media=MediaText(), memory=memory
    )
    offered = await tools.registry.offering(context.availability(), active.discovered)
    if offered.deferred:
        messages[0] = add_tool_reminder(messages[0], offered.deferred)
    request = LLMRequest(messages, offered.definitions, len(messages) - 1)
    choice = persona.endpoints.get(ModelRole.CHAT, ())
    return PromptPreview(
        persona,
        [(one["role"], drop_surrogates(content_text(one["content"]))) for one in messages],
        [(one["name"], format_readable(one)) for one in offered.definitions],
        [_form(one, request) for one in book.endpoints(ModelRole.CHAT, choice)],
        [shown_note(note) for note in notes],
        len(active.history) + 2 + memory.count - len(messages),
    )


def _form(endpoint: Endpoint, request: LLMRequest) -> PreviewedEndpoint:
    formed = RequestFormer(endpoint, None).form(request, endpoint.refuses)
    tools = estimate_tools_tokens(formed.encoder.encode_tools(formed.sent.tools))
    words = sum(map(estimate_message_tokens, formed.messages))
    return PreviewedEndpoint(
        endpoint,
        format_readable(formed.sent.parameters),
        round((tools + words) * endpoint.token_factor),
        len(request.messages) - len(formed.fitted.messages),
        len(request.tools) - len(formed.sent.tools),
        format_readable(json.loads(formed.body)),
    )


def _build_message(chat: ChatAddress, session_pk: int, text: str) -> IncomingMessage:
    """``text`` as the last speaker of the chat would say it."""
    heard = Message.objects.filter(session=session_pk, direction=Message.Direction.IN)
    said_of = ("sender_id", "sender_name", "sender_role", "header")
    last: Any = heard.order_by("-pk").values(*said_of).first() or {}
    header = last.get("header")
    return IncomingMessage(
        chat=chat,
        sender_id=last.get("sender_id") or chat.peer_id,
        sender_name=last.get("sender_name") or "",
        text=text,
        segments=[],
        spoken_text=text,
        sender_role=last.get("sender_role") or "",
        happened_at=timezone.now(),
        header=header and {**header, "mentions": []},
    )


def _build_run(persona: PersonaSettings, chat: ChatAddress, session_pk: int) -> ActiveRun:
    kept = load_session_state(session_pk)
    return ActiveRun(
        Claim(0),
        load_history(session_pk, chat, persona.context_messages - OTHERS, kept.context_after),
        state=kept.state,
        gate=kept.gate,
        discovered=kept.discovered,
        context_after=kept.context_after,
        persona=persona,
    )


def _recall(message: IncomingMessage, session_pk: int) -> MemoryContext:
    """What the memory would add, found by words alone: meanings are not asked for."""
    summarised = session_pk if settings.SUMMARY_AFTER_MESSAGES else None
    viewer = build_chat_viewer(message.chat, message.sender_id)
    request = RecallRequest(viewer, message.text, settings.MEMORY_CHARS, summarised, is_reset=True)
    return recall_notes(request)
