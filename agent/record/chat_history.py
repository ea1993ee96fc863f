"""What has been said in a chat, as a model is shown it."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from agent.domain.types import ChatAddress
from agent.llm.messages import ChatMessage, SpokenMessage, assistant_message, user_message
from agent.models import Message
from agent.record.compiled_sql import PreparedSelect

Direction = Message.Direction


@cache
def history_query(limit: int) -> PreparedSelect:
    """The newest ``limit`` messages of a session's conversation, newest first; its parameter is the
    session."""
    said = Message.objects.filter(session_id=0, in_history=True).order_by("-run_id", "-pk")
    return PreparedSelect(
        said.values_list(
            "direction",
            "text",
            "sender_id",
            "sender_name",
            "message_id",
            "happened_at",
            "media_text",
            "sender_role",
            "header",
        )[:limit]
    )


def load_history(session_pk: int, chat: ChatAddress, count: int) -> list[ChatMessage]:
    """The newest exchanges of the session, oldest first, at most ``count`` messages of them."""
    if count <= 0:
        return []
    return [_message(row, chat) for row in reversed(history_query(count)(session_pk))]


def _message(row: Sequence[Any], chat: ChatAddress) -> ChatMessage:
    direction, text, sender_id, name, message_id, happened_at, seen, role, header = row
    if direction != Direction.IN:
        return assistant_message(text)
    return user_message(
        SpokenMessage(
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
        )
    )
