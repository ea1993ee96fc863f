"""One page of a chat, found by id and never by counting."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, TextField
from django.db.models.functions import Cast, Left, Length

from agent.models import ChatSession, Message, Run
from tools.admin.filters import Rows, first_id_since

#: Messages on one page.
CHAT_PAGE_SIZE = 50
#: Characters of a message that a bubble shows, and of its recorded segments that are read for it.
BUBBLE_CHARACTERS, SEGMENT_CHARACTERS = 4_000, 20_000


@dataclass(frozen=True, slots=True)
class ChatPage:
    """Messages from old to new; ``older`` and ``newer`` are the ids to continue from, None at the
    ends."""

    messages: list[Message]
    older: int | None
    newer: int | None


def load_chat_page(
    session: ChatSession,
    *,
    before: int | None = None,
    after: int | None = None,
    around: int | None = None,
) -> ChatPage:
    """The page that ends before id ``before``, or begins after id ``after``, or has id ``around``
    in its middle, or the newest one.

    A page at the new end is always the newest page, so that it is full. At most three queries.
    """
    if around is not None:
        rows = Message.objects.filter(session=session, pk__lt=around).order_by("-pk")
        ids = list(rows.values_list("pk", flat=True)[: CHAT_PAGE_SIZE // 2])
        after = ids[-1] - 1 if ids else 0
    if after is not None:
        found = list(bubble_rows(session).filter(pk__gt=after).order_by("pk")[: CHAT_PAGE_SIZE + 1])
        if len(found) > CHAT_PAGE_SIZE:
            return ChatPage(
                found[:CHAT_PAGE_SIZE], older=found[0].pk, newer=found[CHAT_PAGE_SIZE - 1].pk
            )
    elif before is not None:
        return _back(session, before)
    return _back(session, None)


def first_message_since(session: ChatSession, moment: datetime) -> int | None:
    """The id of the first message of ``session`` at ``moment`` or later; None where there is
    none. About 20 look-ups by id."""
    floor = first_id_since(Message, "created_at", moment)
    rows = Message.objects.filter(session=session, pk__gte=floor)
    return rows.order_by("pk").values_list("pk", flat=True).first()


def _back(session: ChatSession, before: int | None) -> ChatPage:
    rows = bubble_rows(session) if before is None else bubble_rows(session).filter(pk__lt=before)
    found = list(rows.order_by("-pk")[: CHAT_PAGE_SIZE + 1])
    page = found[:CHAT_PAGE_SIZE][::-1]
    return ChatPage(
        page,
        older=page[0].pk if len(found) > CHAT_PAGE_SIZE else None,
        newer=page[-1].pk if before is not None and page else None,
    )


def bubble_rows(session: ChatSession) -> Rows:
    """The messages of a chat with what a bubble shows of them: of long values the beginning."""
    shown: Any = Message.objects.filter(session=session).select_related("tool_call")
    rows: Rows = shown.annotate(
        bubble=Left("text", BUBBLE_CHARACTERS),
        length=Length("text"),
        recorded=Left(Cast("segments", TextField()), SEGMENT_CHARACTERS + 1),
        is_resent=Exists(Message.objects.filter(resent_from=OuterRef("pk"))),
        heard=Left("context_text", BUBBLE_CHARACTERS),
    ).only(
        *("session_id", "direction", "state", "reason", "detail", "sender_id", "sender_name"),
        *("sender_role", "message_id", "run_id", "created_at", "recalled_at", "settled_at"),
        *("quoted_id", "merged_into_id", "part", "header", "author", "resent_from_id"),
        *("in_history", "tool_call__tool_name"),
    )
    return rows


def load_message_runs(messages: list[Message]) -> dict[int, list[Run]]:
    """The runs made for each of ``messages``, by its id, oldest first, without those of agents
    inside. One query."""
    behind: dict[int, list[Run]] = {}
    runs = Run.objects.filter(message__in=[m.pk for m in messages]).order_by()
    found = runs.only("message_id", "parent_id", "state", "error")
    # Without an order, or a condition on the parent: either leads SQLite to walk through all runs.
    for run in sorted(found, key=lambda run: run.pk):
        if run.parent_id is None:
            behind.setdefault(run.message_id or 0, []).append(run)
    return behind
