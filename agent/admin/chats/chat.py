"""One page of a chat, found by id and never by counting."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef
from django.db.models.functions import Left, Length

from agent.models import ChatSession, Message, Run

#: Messages on one page.
CHAT_PAGE_SIZE = 50
#: Characters of a message that a bubble shows.
BUBBLE_CHARACTERS = 4_000


@dataclass(frozen=True, slots=True)
class ChatPage:
    """Messages from old to new; ``older`` and ``newer`` are the ids to continue from, None at the
    ends."""

    messages: list[Message]
    older: int | None
    newer: int | None


def load_chat_page(
    session: ChatSession, *, before: int | None = None, after: int | None = None
) -> ChatPage:
    """The page that ends before id ``before``, or begins after id ``after``, or the newest one.

    A page at the new end is always the newest page, so that it is full. At most two queries.
    """
    if after is not None:
        found = list(_bubbles(session).filter(pk__gt=after).order_by("pk")[: CHAT_PAGE_SIZE + 1])
        if len(found) > CHAT_PAGE_SIZE:
            return ChatPage(
                found[:CHAT_PAGE_SIZE], older=found[0].pk, newer=found[CHAT_PAGE_SIZE - 1].pk
            )
    elif before is not None:
        return _back(session, before)
    return _back(session, None)


def _back(session: ChatSession, before: int | None) -> ChatPage:
    rows = _bubbles(session) if before is None else _bubbles(session).filter(pk__lt=before)
    found = list(rows.order_by("-pk")[: CHAT_PAGE_SIZE + 1])
    page = found[:CHAT_PAGE_SIZE][::-1]
    return ChatPage(
        page,
        older=page[0].pk if len(found) > CHAT_PAGE_SIZE else None,
        newer=page[-1].pk if before is not None and page else None,
    )


def _bubbles(session: ChatSession) -> Any:
    shown = Message.objects.filter(session=session).select_related("tool_call")
    resent = Message.objects.filter(resent_from=OuterRef("pk"))
    shown = shown.annotate(is_resent=Exists(resent))
    return shown.annotate(bubble=Left("text", BUBBLE_CHARACTERS), length=Length("text")).only(
        "author",
        "resent_from_id",
        "direction",
        "state",
        "reason",
        "detail",
        "sender_id",
        "sender_name",
        "run_id",
        "created_at",
        "tool_call__tool_name",
    )


def load_message_runs(messages: list[Message]) -> dict[int, list[Run]]:
    """The runs made for each of ``messages``, by its id, oldest first, without those of agents
    inside. One query."""
    behind: dict[int, list[Run]] = {}
    runs = Run.objects.filter(message__in=[m.pk for m in messages], parent=None).order_by("pk")
    for run in runs.only("message_id", "state", "error"):
        behind.setdefault(run.message_id or 0, []).append(run)
    return behind
