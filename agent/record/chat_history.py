"""What has been said in a chat, as a model is shown it."""

from functools import cache

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
        )[:limit]
    )


def load_history(session_pk: int, chat_key: str, count: int) -> list[ChatMessage]:
    """The newest exchanges of the session, oldest first, at most ``count`` messages of them."""
    if count <= 0:
        return []
    rows = history_query(count)(session_pk)
    return [
        user_message(
            SpokenMessage(
                text.strip(),
                sender_id,
                sender_name,
                chat_key,
                message_id,
                happened_at,
                seen,
            )
        )
        if direction == Direction.IN
        else assistant_message(text)
        for direction, text, sender_id, sender_name, message_id, happened_at, seen in reversed(rows)
    ]
