"""What the model is sent first, with as much of the past as fits, from the newest back."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agent.chat.message_run import MessageRun, QueuedMessage
from agent.domain.answer_triggers import is_bare_mention
from agent.domain.types import IncomingMessage
from agent.llm.requests.messages import (
    ChatMessage,
    SpokenMessage,
    content_text,
    outcome_message,
    system_message,
    user_message,
)
from agent.media.heard_words import cut_text, describe_sender
from agent.media.pipeline import MOST, MediaPipeline, MediaText
from agent.memory.relevance import MemoryContext
from agent.record.chats.ambient import AmbientRequest, find_ambient
from agent.record.chats.chat_history import from_user
from agent.record.chats.chat_record import RecordedMessage
from agent.record.record import Record
from agent.record.runs.runs import ActiveRun
from agent.record.waiting.recovery import PendingMessage
from agent.run.system_prompt import prompt_notes, render_chat_prompt
from tools.contract import ToolExecutionContext
from tools.registry.registry import ToolRegistry
from tools.text.fences import FenceKind, fence_values


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
    return request, prompt_notes(prompt) if prompt.missing else []


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
    has_memory = memory.summary or memory.memory
    added, size = (memory.count, memory.size) if has_memory else (0, 0)
    request = fit_history(
        system_message(prompt),
        active.history,
        outcome_message(speech, active.later.tool_name) if active.later else user_message(speech),
        max_messages=active.persona.context_messages - added - len(before),
        max_chars=active.persona.context_chars - size - sum(map(_size, before)),
    )
    if added:
        request = memory.insert_into(request)
    return [*request[:-1], *before, request[-1]] if before else request


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
        (media.order or message.text).strip(),
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
        content = message["content"]
        room -= len(content) if isinstance(content, str) else _size(message)
        if room < 0:
            break
        kept.append(message)
    kept.reverse()
    if len(kept) < len(history):
        kept = from_user(kept)
    return [system, *kept, current]


def _size(message: ChatMessage) -> int:
    content = message["content"]
    return len(content if isinstance(content, str) else content_text(content))


async def hear_earlier(run: MessageRun, media: MediaPipeline | None) -> tuple[SpokenMessage, ...]:
    """The earlier messages of ``run``, oldest first, with what was read in their media: from the
    newest back, as many as are read for one message."""
    heard: list[SpokenMessage] = []
    left = MOST
    for one in reversed(run.earlier):
        left -= len(one.pending.message.media)
        seen = await _read_media(run, one, media) if media and left >= 0 else MediaText()
        run.notes += seen.notes
        heard.append(build_speech(one.pending.message, seen))
    return tuple(reversed(heard))


async def _read_media(run: MessageRun, one: QueuedMessage, media: MediaPipeline) -> MediaText:
    active = run.active
    pending = replace(
        one.pending, account=active.account, persona=active.persona, manners=active.manners
    )
    if one.resumed:
        return await media.describe_resumed(pending)
    return await media.describe(pending, one.prefetch)


# What the model is shown beside the history and the words it answers: what else was said in the
# group.

#: What a mention without words shows of the messages before it, whatever the row says.
LEAST_MESSAGES, LEAST_MINUTES, LEAST_CHARS = 10, 10, 2_000
#: Characters of one message.
TEXT_CHARS = 500


async def hear_group(record: Record, pending: PendingMessage, active: ActiveRun) -> str:
    """The recent messages of the group that were not for the bot, fenced; "" where nobody wants
    them or there are none. Asks the record only if they are wanted."""
    wish = wish_ambient(pending, active)
    if wish is None:
        return ""
    said = await record.submit(find_ambient, wish)
    chars = active.manners.ambient_chars
    return fence_ambient(said, max(chars, LEAST_CHARS) if _is_bare(pending) else chars)


def _is_bare(pending: PendingMessage) -> bool:
    """Whether it says nothing but the bot's name, and no words of the same person came after it:
    it is answered with the messages before it in view."""
    return pending.message.mentions_bot and not pending.merged and is_bare_mention(pending.message)


def wish_ambient(pending: PendingMessage, active: ActiveRun) -> AmbientRequest | None:
    """What of the group is to be shown with a message; None for nothing."""
    manners, is_bare = active.manners, _is_bare(pending)
    messages, minutes = manners.ambient_messages, manners.ambient_minutes
    if is_bare:
        messages = max(messages, LEAST_MESSAGES)
        minutes = max(minutes, LEAST_MINUTES) if manners.ambient_messages else LEAST_MINUTES
    is_heard = pending.message.chat.kind == "group" and not pending.is_later_result
    if not (is_heard and messages > 0):
        return None
    return AmbientRequest(
        pending.session_pk, pending.pk, messages, minutes, active.context_after or 0
    )


def fence_ambient(said: Sequence[RecordedMessage], chars: int) -> str:
    """The newest of ``said`` whose words are ``chars`` characters at most, in their order, fenced;
    "" for none."""
    shown = list[dict[str, Any]]()
    for one in reversed(said):
        text = cut_text(one.text, TEXT_CHARS)
        chars -= len(text)
        if chars < 0:
            break
        line = describe_sender(one.sender_id, one.sender_name, one.at)
        if one.message_id:
            line["message_id"] = one.message_id
        shown.append(line | {"text": text})
    return fence_values(FenceKind.AMBIENT, reversed(shown)) if shown else ""
