"""What a page can follow: a chat, a run, or what stands on the first page."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from agent.access import find_access
from agent.models import (
    UNSETTLED,
    Approval,
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

_TOPIC = re.compile(r"(session|run):([1-9][0-9]{0,17})|(overview)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Topic:
    """``session:<pk>``, ``run:<pk>`` or ``overview``; equal ones share a watcher."""

    kind: str
    pk: int = 0

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


def may_follow(user: Any, topic: Topic) -> bool:
    """Whether ``user``, whom the admin lets in, may see what ``topic`` is about. Up to two
    queries."""
    if topic.kind == "overview":
        return True
    access = find_access(user)
    if topic.kind == "session":
        return bool(user.has_perm("agent.view_chatsession")) and (
            ChatSession.objects.filter(access.condition(), pk=topic.pk).exists()
        )
    return bool(user.has_perm("agent.view_run")) and (
        Run.objects.filter(access.run_condition(), pk=topic.pk).exists()
    )


def digest_topic(topic: Topic) -> object:
    """A value that differs whenever what pages show of ``topic`` does. A few short queries by
    index; blocks."""
    return _DIGESTS[topic.kind](topic.pk)


def _digest_session(pk: int) -> object:
    chat = ChatSession.objects.filter(pk=pk).values_list(
        "title", "pause_reason", "paused_until", "taken_over_by", "context_after"
    )
    columns = ("pk", "state", "run_id", "recalled_at", "settled_at")
    newest = Message.objects.filter(session=pk).order_by("-pk").values_list(*columns)
    acts = OperatorAct.objects.filter(session=pk).order_by("-pk").values_list("pk", flat=True)
    return chat.first(), tuple(newest[:NEWEST_WATCHED]), acts.first()


def _digest_run(pk: int) -> object:
    run = Run.objects.filter(pk=pk).values_list("state", "model_calls", "output_tokens")
    steps = Step.objects.filter(run=pk).order_by("pk").values_list("pk", "finish_reason")
    columns = ("pk", "state", "duration_ms", "progress")
    calls = ToolCall.objects.filter(run=pk).order_by("pk").values_list(*columns)
    said = Message.objects.filter(Q(run=pk)).order_by("pk").values_list("pk", "state")
    return run.first(), *(tuple(rows[:500]) for rows in (steps, calls, said))


def _digest_overview(_pk: int) -> object:
    bots = Bot.objects.order_by("pk").values_list("pk", "online", "account_online")
    endpoints = EndpointStatus.objects.order_by("pk").values_list("pk", "error_at", "rests_until")
    approvals = Approval.objects.order_by("-pk").values_list("pk", "state")
    newest = [
        Message.objects.filter(state=state).order_by("-pk").values_list("pk", flat=True).first()
        for state in (Message.State.ANSWERED, Message.State.FAILED, Message.State.UNKNOWN)
    ]
    waiting = Message.objects.filter(UNSETTLED)[:MOST_UNSETTLED].count()
    return *(tuple(rows[:500]) for rows in (bots, endpoints, approvals[:20])), *newest, waiting


_DIGESTS: dict[str, Callable[[int], object]] = {
    "session": _digest_session,
    "run": _digest_run,
    "overview": _digest_overview,
}
