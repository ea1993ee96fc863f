"""What a persona would send in a chat, without sending it: no model is asked, nothing is kept."""

import json
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from agent.admin.tools.trial import run_with_own_registry
from agent.chat import history, message_run
from agent.domain import chat_state, states, types
from agent.domain.endpoint import Endpoint, ModelRole
from agent.domain.persona import PersonaSettings
from agent.llm.client.client import RequestFormer
from agent.llm.endpoints.endpoint_book import EndpointBook
from agent.llm.requests import base, tokens
from agent.llm.requests.messages import content_text
from agent.media.pipeline import MediaText
from agent.memory import recall, relevance, service
from agent.models import Message, Persona as PersonaRow
from agent.pages.runs.step_facts import shown_note
from agent.record.chats import chat_history, sessions
from agent.record.runs.runs import OTHERS, ActiveRun
from agent.record.settings.endpoints import load_endpoint_table
from agent.record.settings.personas import load_persona
from agent.run.engine import Engine, PersonaEngines
from agent.run.services import RunServices, add_tool_reminder
from agent.runtime import serving, wiring
from tools.registry.registry import ToolRegistry
from tools.registry.settings import load_tool_settings
from tools.text.readable import drop_surrogates, format_readable


def build_preview(
    row: PersonaRow, chat: types.ChatAddress, session_pk: int, text: str
) -> dict[str, Any]:
    """What ``row`` would send if the last speaker of the chat said ``text`` now: the first request
    of a run, before any endpoint is known, and what each would be sent. ``has_server``: whether the
    tools of MCP servers, plugins and HTTP tools are among its tools.

    All that is read is read in one transaction, which is taken back.
    """
    persona = load_persona(row)
    with transaction.atomic():
        message = _build_message(chat, session_pk, text)
        active = _build_run(persona, chat, session_pk)
        summarised = session_pk if settings.SUMMARY_AFTER_MESSAGES else None
        wanted = recall.RecallRequest(
            service.build_chat_viewer(message.chat, message.sender_id),
            message.text,
            settings.MEMORY_CHARS,
            summarised,
            is_reset=True,
        )
        memory = recall.recall_notes(wanted)  # by words alone: meanings are not asked for
        book = wiring.build_endpoint_book(table=load_endpoint_table())
        transaction.set_rollback(True)

    async def work(registry: ToolRegistry) -> dict[str, Any]:
        return await _preview(registry, book, message, active, memory, session_pk)

    if serving_now := serving.get_serving():
        return serving_now.run(work) | {"has_server": True}
    return run_with_own_registry(load_tool_settings(), work)


async def _preview(
    registry: ToolRegistry,
    book: EndpointBook,
    message: types.IncomingMessage,
    active: ActiveRun,
    memory: relevance.MemoryContext,
    session_pk: int,
) -> dict[str, Any]:
    """As a run begins: see :meth:`agent.chat.conversation.ConversationHandler.answer_message`."""
    persona = active.persona
    tools = PersonaEngines(Engine(book.model(ModelRole.CHAT), registry), book).find(persona)
    services = RunServices(
        chat_state=chat_state.ChatState(session_pk, active.state), persona=persona
    )
    context = message_run.build_tool_context(message, types.DEFAULT_ACCOUNT, services)
    messages, notes = await history.open_conversation(
        message, active, context, tools.registry, media=MediaText(), memory=memory
    )
    offered = await tools.registry.offering(context.availability(), active.discovered)
    if offered.deferred:
        messages[0] = add_tool_reminder(messages[0], offered.deferred)
    request = base.LLMRequest(messages, offered.definitions, len(messages) - 1)
    choice = persona.endpoints.get(ModelRole.CHAT, ())
    return {
        "messages": [
            (one["role"], drop_surrogates(content_text(one["content"]))) for one in messages
        ],
        "tools": [(one["name"], format_readable(one)) for one in offered.definitions],
        "endpoints": [_form(one, request) for one in book.endpoints(ModelRole.CHAT, choice)],
        "notes": [shown_note(note) for note in notes],
        # messages of the history that the persona's limits have no room for
        "history_left_out": len(active.history) + 2 + memory.count - len(messages),
    }


def _form(endpoint: Endpoint, request: base.LLMRequest) -> dict[str, Any]:
    """One endpoint that would be asked, and the request in its form; messages that its window has
    no room for are ``left_out``."""
    formed = RequestFormer(endpoint, None).form(request, endpoint.refuses)
    tools = tokens.estimate_tools_tokens(formed.encoder.encode_tools(formed.sent.tools))
    words = sum(map(tokens.estimate_message_tokens, formed.messages))
    return {
        "endpoint": endpoint,
        "parameters": format_readable(formed.sent.parameters),
        "tokens": round((tools + words) * endpoint.token_factor),
        "left_out": len(request.messages) - len(formed.fitted.messages),
        "tools_left_out": len(request.tools) - len(formed.sent.tools),
        "body": format_readable(json.loads(formed.body)),
    }


def _build_message(chat: types.ChatAddress, session_pk: int, text: str) -> types.IncomingMessage:
    """``text`` as the last speaker of the chat would say it."""
    heard = Message.objects.filter(session=session_pk, direction=Message.Direction.IN)
    said_of = ("sender_id", "sender_name", "sender_role", "header")
    last: Any = heard.order_by("-pk").values(*said_of).first() or {}
    header = last.get("header")
    return types.IncomingMessage(
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


def _build_run(persona: PersonaSettings, chat: types.ChatAddress, session_pk: int) -> ActiveRun:
    kept = sessions.load_session_state(session_pk)
    return ActiveRun(
        states.Claim(0),
        chat_history.load_history(
            session_pk, chat, persona.context_messages - OTHERS, kept.context_after
        ),
        state=kept.state,
        gate=kept.gate,
        discovered=kept.discovered,
        context_after=kept.context_after,
        persona=persona,
    )
