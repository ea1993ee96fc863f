"""What has been said in a chat, as a model is shown it."""

import json
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.conf import settings

from agent.domain.types import ChatAddress
from agent.llm.requests.messages import ChatMessage, SpokenMessage, user_message
from agent.models import Message
from agent.record.chats.answer_texts import load_answers
from agent.record.ground import statements
from tools.text.fences import neutralize_marks

Direction = Message.Direction
#: Messages that are remembered as a model is shown them, and characters of one, at most: each is in
#: the history of many runs. They are looked up by all that a row says, so that no change is missed.
REMEMBERED, SHORT = 2_000, 1_000


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
    messages, key, zone = list[ChatMessage](), chat.key, settings.TIME_ZONE
    in_parts = [run_pk for _, _, part, run_pk, *_ in rows if part]
    answers = load_answers(in_parts) if in_parts else {}
    for row in reversed(rows):
        direction, reason, part, run_pk, author, text, seen, context, *spoken = row
        if direction == Direction.IN and reason != Message.Reason.OWN_MESSAGE:
            is_short = len(text) + len(seen) + len(context or "") <= SHORT
            show = _show_heard if is_short else _show_heard.__wrapped__
            content = show(zone, key, chat.account, text, seen, context or "", *spoken)
            messages.append({"role": "user", "content": content})
        elif direction == Direction.IN or messages or author:
            said = answers[run_pk] if part and direction != Direction.IN else text
            show_said = _show_said if len(said) <= SHORT else neutralize_marks
            messages.append({"role": "assistant", "content": show_said(said)})
    return messages


#: What the bot said before; it may have been asked to say a frame.
_show_said = lru_cache(maxsize=REMEMBERED)(neutralize_marks)


@lru_cache(maxsize=REMEMBERED)
def _show_heard(
    zone: str,  # of the installation, by which times may be said
    chat: str,
    account: str,
    text: str,
    seen: str,
    context: str,
    sender_id: str,
    name: str,
    message_id: str,
    happened_at: datetime | str | None,
    role: str,
    header: str | None,
) -> str:
    """What a person said, by the columns of its row."""
    speech = SpokenMessage(
        text.strip(),
        sender_id,
        name,
        chat,
        message_id,
        None if happened_at is None else statements.parse_moment(happened_at),
        seen,
        sender_role=role,
        bot=account,
        header=None if header is None else json.loads(header),
        context=context,
    )
    return str(user_message(speech)["content"])
