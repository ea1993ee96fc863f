"""What has been said in a chat, as a model is shown it."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from django.db.models import Q

from agent.domain.types import ChatAddress
from agent.llm.requests.messages import ChatMessage, SpokenMessage, assistant_message, user_message
from agent.models import Message
from agent.record.chats.answer_texts import load_answers
from agent.record.ground.compiled_sql import PreparedSelect

Direction = Message.Direction
FIRST_PART = 1


@cache
def history_query(limit: int, *, is_reset: bool = False) -> PreparedSelect:
    """The newest ``limit`` messages of a session's conversation, newest first; of an answer in
    several messages the first. Its parameters are the session, with ``is_reset`` also the key of
    the message after which it begins, and :data:`FIRST_PART`."""
    said = Message.objects.filter(session_id=0, in_history=True, recalled_at__isnull=True)
    if is_reset:
        said = said.filter(pk__gt=0)
    said = said.filter(Q(part=None) | Q(part__lte=FIRST_PART))
    return PreparedSelect(
        said.order_by("-run_id", "-pk").values_list(
            "direction",
            "text",
            "sender_id",
            "sender_name",
            "message_id",
            "happened_at",
            "media_text",
            "sender_role",
            "header",
            "reason",
            "part",
            "run_id",
            "author",
            "context_text",
        )[:limit]
    )


def load_history(
    session_pk: int, chat: ChatAddress, count: int, after: int | None = None
) -> list[ChatMessage]:
    """The newest exchanges of the session, oldest first, at most ``count`` messages of them.

    ``after``: the key of the message after which the context is fresh; None where it never was
    reset. They begin with a user's message, or with what was written by hand where that is the
    beginning of all.
    """
    if count <= 0:
        return []
    query = history_query(count + 1, is_reset=after is not None)
    limits = (session_pk, FIRST_PART) if after is None else (session_pk, after, FIRST_PART)
    rows = query(*limits)
    messages = _messages(rows[:count], chat)
    return from_user(messages) if len(rows) > count else messages


def from_user(messages: list[ChatMessage]) -> list[ChatMessage]:
    """``messages`` from the first one of a user on."""
    starts = (place for place, one in enumerate(messages) if one["role"] == "user")
    return messages[next(starts, len(messages)) :]


def _messages(rows: Sequence[Sequence[Any]], chat: ChatAddress) -> list[ChatMessage]:
    """``rows``, newest first, without answers whose question is not among them at the beginning."""
    messages = list[ChatMessage]()
    in_parts = [run_pk for *_, part, run_pk, _author, _context in rows if part]
    answers = load_answers(in_parts) if in_parts else {}
    for direction, text, *fields, reason, part, run_pk, author, context in reversed(rows):
        if direction == Direction.IN:
            by_hand = reason == Message.Reason.OWN_MESSAGE
            messages.append(
                assistant_message(text)
                if by_hand
                else user_message(_speech(text, fields, context or "", chat))
            )
        elif messages or author:
            messages.append(assistant_message(answers[run_pk] if part else text))
    return messages


def _speech(text: str, fields: Sequence[Any], context: str, chat: ChatAddress) -> SpokenMessage:
    sender_id, name, message_id, happened_at, seen, role, header = fields
    return SpokenMessage(
        text.strip(),
        sender_id,
        name,
        chat.key,
        message_id,
        happened_at,
        seen,
        sender_role=role,
        bot=chat.account,
        header=header,
        context=context,
    )
