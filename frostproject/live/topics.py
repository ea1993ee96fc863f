"""What a page can follow: a chat, a run, or what stands on the first page."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Q
from django.utils import timezone

from agent.access import EVERYTHING, ChatAccess, find_access
from agent.models import (
    UNSETTLED,
    Approval,
    BudgetStop,
    ChatSession,
    EndpointStatus,
    Message,
    OperatorAct,
    Run,
    Step,
    ToolCall,
)
from onebot.models import Bot

#: Of a chat: the newest messages that are watched for changes.
NEWEST_WATCHED = 60
#: Messages that wait or are worked on: beyond it, more make no difference.
MOST_UNSETTLED = 100
#: Of an overview of own chats: those where something was said last.
NEWEST_CHATS = 200

_TOPIC = re.compile(r"(session|run):([1-9][0-9]{0,17})|(overview)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Topic:
    """``session:<pk>``, ``run:<pk>`` or ``overview``, of the chats in ``access``; equal ones share
    a watcher."""

    kind: str
    pk: int = 0
    access: ChatAccess = EVERYTHING

    def __str__(self) -> str:
        return f"{self.kind}:{self.pk}" if self.pk else self.kind

    @property
    def seconds(self) -> float:
        """The shortest time between two looks at it."""
        return 2.0 if self.kind == "overview" else 0.2


def parse_topic(text: object) -> Topic | None:
    """The topic that ``text`` names; None where it names none."""
    found = _TOPIC.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return None
    return Topic("overview") if found[3] else Topic(found[1], int(found[2]))


def reach_topic(user: Any, topic: Topic) -> Topic | None:
    """``topic`` as far as ``user``, whom the admin lets in, may see what it is about; None where
    that is nothing. Up to two queries."""
    access = find_access(user)
    if topic.kind == "run":
        rows = Run.objects.filter(access.run_condition(), pk=topic.pk)
        return topic if user.has_perm("agent.view_run") and rows.exists() else None
    if not user.has_perm("agent.view_chatsession"):
        return None
    if topic.kind == "overview":
        return replace(topic, access=access)
    chats = ChatSession.objects.filter(access.condition(), pk=topic.pk)
    return topic if chats.exists() else None


def digest_topic(topic: Topic) -> object:
    """A value that differs whenever what pages show of ``topic`` does. A few short queries by
    index; blocks."""
    if not topic.access.is_everything:
        return _digest_own(topic.access)
    return _DIGESTS[topic.kind](topic.pk)


def _digest_session(pk: int) -> object:
    ends = ("paused_until", "taken_over_until")
    chat = ChatSession.objects.filter(pk=pk).values_list(
        *ends, "title", "pause_reason", "taken_over_by", "context_after"
    )
    row, now = chat.first(), timezone.now()
    is_over = tuple(end is not None and end <= now for end in row[: len(ends)]) if row else ()
    columns = ("pk", "state", "run_id", "recalled_at", "settled_at")
    newest = Message.objects.filter(session=pk).order_by("-pk").values_list(*columns)
    acts = OperatorAct.objects.filter(session=pk).order_by("-pk").values_list("pk", flat=True)
    return row, is_over, tuple(newest[:NEWEST_WATCHED]), acts.first()


def _digest_run(pk: int) -> object:
    run = Run.objects.filter(pk=pk).values_list("state", "model_calls", "output_tokens")
    steps = Step.objects.filter(run=pk).order_by("pk").values_list("pk", "finish_reason")
    columns = ("pk", "state", "duration_ms", "progress")
    calls = ToolCall.objects.filter(run=pk).order_by("pk").values_list(*columns)
    said = Message.objects.filter(Q(run=pk)).order_by("pk").values_list("pk", "state")
    return run.first(), *(tuple(rows[:500]) for rows in (steps, calls, said))


def _digest_overview(_pk: int) -> object:
    columns = ("pk", "online", "account_online", "nickname", "client_name")
    bots = Bot.objects.order_by("pk").values_list(*columns)
    endpoints = EndpointStatus.objects.order_by("pk").values_list("pk", "error_at", "rests_until")
    approvals = Approval.objects.order_by("-pk").values_list("pk", "state")
    newest = [
        Message.objects.filter(state=state).order_by("-pk").values_list("pk", flat=True).first()
        for state in (Message.State.ANSWERED, Message.State.FAILED, Message.State.UNKNOWN)
    ]
    stops = BudgetStop.objects.order_by("-at").values_list("pk", "at")
    waiting = Message.objects.filter(UNSETTLED)[:MOST_UNSETTLED].count()
    return (
        *(tuple(rows[:500]) for rows in (bots, endpoints, approvals[:20], stops[:1])),
        *newest,
        waiting,
    )


def _digest_own(access: ChatAccess) -> object:
    """What an overview of these chats alone shows."""
    accounts = access.accounts | {account for account, _key in access.chats}
    bots = Bot.objects.filter(self_id__in=accounts).order_by("pk")
    chats = access.sessions().order_by("-last_message_at", "-pk")
    of_chats = ("pk", "last_message_at", "pause_reason", "paused_until", "taken_over_by")
    approvals = Approval.objects.filter(access.condition("session__")).order_by("-pk")
    waiting = Message.objects.filter(UNSETTLED, access.condition("session__"))
    return (
        tuple(bots.values_list("pk", "online", "account_online")[:500]),
        tuple(chats.values_list(*of_chats)[:NEWEST_CHATS]),
        tuple(approvals.values_list("pk", "state")[:20]),
        waiting[:MOST_UNSETTLED].count(),
    )


_DIGESTS: dict[str, Callable[[int], object]] = {
    "session": _digest_session,
    "run": _digest_run,
    "overview": _digest_overview,
}
