"""What has been said in a chat, as a model is shown it."""

from collections.abc import Sequence
from typing import Any

from agent.domain.types import ChatAddress
from agent.llm.requests.messages import ChatMessage, SpokenMessage, assistant_message, user_message
from agent.models import Message
from agent.record.chats.answer_texts import load_answers
from agent.record.ground import statements

Direction = Message.Direction


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
    rows = statements.find_history.rows(session=session_pk, after=after or 0, newest=count + 1)
    messages = _messages(rows[:count], chat)
    return from_user(messages) if len(rows) > count else messages


def from_user(messages: list[ChatMessage]) -> list[ChatMessage]:
    """``messages`` from the first one of a user on."""
    starts = (index for index, one in enumerate(messages) if one["role"] == "user")
    return messages[next(starts, len(messages)) :]


def _messages(rows: Sequence[Sequence[Any]], chat: ChatAddress) -> list[ChatMessage]:
    """``rows``, newest first, without answers whose question is not among them at the beginning."""
    messages, key = list[ChatMessage](), chat.key
    in_parts = [run_pk for *_, part, run_pk, _author, _context in rows if part]
    answers = load_answers(in_parts) if in_parts else {}
    for row in reversed(rows):
        direction, text, sender_id, name, message_id, happened_at, seen, role, header, *rest = row
        reason, part, run_pk, author, context = rest
        if direction == Direction.IN and reason != Message.Reason.OWN_MESSAGE:
            speech = SpokenMessage(
                text.strip(),
                sender_id,
                name,
                key,
                message_id,
                happened_at,
                seen,
                sender_role=role,
                bot=chat.account,
                header=header,
                context=context or "",
            )
            messages.append(user_message(speech))
        elif direction == Direction.IN:
            messages.append(assistant_message(text))
        elif messages or author:
            messages.append(assistant_message(answers[run_pk] if part else text))
    return messages
