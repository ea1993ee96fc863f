"""What the model is sent first, with as much of the past as fits, from the newest back."""

from collections.abc import Sequence

from agent.domain.types import IncomingMessage
from agent.llm.requests.messages import (
    ChatMessage,
    SpokenMessage,
    content_text,
    outcome_message,
    system_message,
    user_message,
)
from agent.media.pipeline import MediaText
from agent.memory.prompt_block import MemoryContext
from agent.record.chats.chat_history import from_user
from agent.record.runs.runs import ActiveRun
from agent.run.system_prompt import prompt_notes, render_chat_prompt
from tools.contract import ToolExecutionContext
from tools.registry.registry import ToolRegistry


async def open_conversation(
    message: IncomingMessage,
    active: ActiveRun,
    context: ToolExecutionContext,
    registry: ToolRegistry,
    *,
    media: MediaText,
    memory: MemoryContext,
    ambient: str = "",
    merged: Sequence[SpokenMessage] = (),
) -> tuple[list[ChatMessage], list[str]]:
    """The messages that a run begins with, and the notes about its prompt. Nothing is asked or
    recorded.

    ``ambient``: what else was said in the group, fenced; ``merged``: earlier messages that are
    answered together with this one.
    """
    prompt = await render_chat_prompt(active.persona, context, registry)
    before = build_before(ambient, merged, active.persona.context_chars)
    request = build_first_request(message, active, prompt.text, media, memory, before)
    return request, prompt_notes(prompt)


def build_first_request(
    message: IncomingMessage,
    active: ActiveRun,
    prompt: str,
    media: MediaText,
    memory: MemoryContext,
    before: Sequence[ChatMessage] = (),
) -> list[ChatMessage]:
    """What the model is sent first: the persona's ``prompt``, fitted history, ``before``, and the
    framed words or what they stand for."""
    speech = build_speech(message, media)
    request = fit_history(
        system_message(prompt),
        active.history,
        outcome_message(speech, active.later.tool_name) if active.later else user_message(speech),
        max_messages=active.persona.context_messages - memory.count - len(before),
        max_chars=active.persona.context_chars - memory.size - sum(map(_size, before)),
    )
    *past, current = memory.insert_into(request)
    return [*past, *before, current]


def build_before(ambient: str, merged: Sequence[SpokenMessage], chars: int) -> list[ChatMessage]:
    """What stands right before the current message: what else was said in the group, then the
    earlier messages of the same person in the form that they have in the history, the newest whose
    words are ``chars`` characters at most."""
    messages = list[ChatMessage]()
    for speech in reversed(merged):
        messages.append(user_message(speech))
        chars -= _size(messages[-1])
        if chars < 0 and len(messages) > 1:
            messages.pop()
            break
    group: list[ChatMessage] = [{"role": "user", "content": ambient}] if ambient else []
    return group + messages[::-1]


def build_speech(message: IncomingMessage, media: MediaText) -> SpokenMessage:
    """``message`` as the model is shown it, with what was read in its media."""
    return SpokenMessage(
        message.text.strip(),
        message.sender_id,
        message.sender_name,
        message.chat.key,
        message.message_id,
        message.happened_at,
        media.text,
        media.pictures,
        message.sender_role,
        message.chat.account,
        media.header or message.header,
        media.context,
    )


def fit_history(
    system: ChatMessage,
    history: Sequence[ChatMessage],
    current: ChatMessage,
    *,
    max_messages: int,
    max_chars: int,
) -> list[ChatMessage]:
    """The first request of a run: ``system``, as much of ``history`` as fits, ``current``.

    ``history`` is oldest first. The system message and the current one are always
    kept, even when they alone are over a limit. Where something of the history is cut away, what is
    left never begins with an answer, whose question may be among that.
    """
    room = max_chars - _size(system) - _size(current)
    kept: list[ChatMessage] = []
    for message in reversed(history[-max(0, max_messages - 2) :] if max_messages > 2 else []):
        room -= _size(message)
        if room < 0:
            break
        kept.append(message)
    kept.reverse()
    if len(kept) < len(history):
        kept = from_user(kept)
    return [system, *kept, current]


def _size(message: ChatMessage) -> int:
    return len(content_text(message["content"]))
