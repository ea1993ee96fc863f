"""Erasing old parts of the record: messages with everything that was done for them, in batches.

What goes together goes in one transaction: a message, the runs for it with their steps,
calls and approvals, and all that those runs said. It stays as a whole while any of it is
unfinished, is younger than the limit, or is shown to the model as history.

Each operation erases what was recorded ``before``, among the next rows after the key ``after``.
``history`` messages of each chat's conversation stay, the newest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile

from django.db.models import Q

from agent.models import UNSETTLED, ChatEvent, Description, JoinRequest, Message, Run, ToolCall

#: Rows that one transaction checks.
BATCH = 200
#: States of a message that something is still to be done with, or may still become known of.
OPEN = (Message.State.WAITING, Message.State.RUNNING, Message.State.PENDING, Message.State.SENT)


@dataclass(frozen=True, slots=True)
class EraseResult:
    """How many rows were erased, and the key to continue after; None at the end."""

    count: int
    after: int | None


def erase_messages(before: datetime, history: int, after: int) -> EraseResult:
    """Messages, with the runs for them."""
    fields = ("pk", "session_id", "run_id", "state", "created_at")
    rows = list(Message.objects.filter(pk__gt=after).order_by("pk").only(*fields)[:BATCH])
    old = list(takewhile(lambda row: row.created_at < before, rows))
    runs = _runs_with({row.pk for row in old}, {row.run_id for row in old if row.run_id})
    kept = _needed(set(runs), before) | (
        set(runs) & _history({row.session_id for row in old}, history)
    )
    staying = {runs[pk] for pk in kept} | {row.pk for row in old if row.state in OPEN} - {None}
    going_runs = {pk for pk, message in runs.items() if pk not in kept and message not in staying}
    going = {
        row.pk
        for row in old
        if row.pk not in staying and (row.run_id is None or row.run_id in going_runs)
    }
    answered = {message for pk, message in runs.items() if pk in going_runs and message}
    together = Message.objects.filter(Q(pk__in=going | answered) | Q(run__in=going_runs))
    count = together.count()
    together.only("pk").delete()
    Run.objects.filter(pk__in=going_runs).only("pk").delete()
    return EraseResult(count, _next(rows, old))


def erase_runs(before: datetime, history: int, after: int) -> EraseResult:
    """Runs without a message: those of programs."""
    alone = (
        Run.objects.filter(message=None, parent=None, pk__gt=after)
        .order_by("pk")
        .only("pk", "started_at")
    )
    rows = list(alone[:BATCH])
    old = list(takewhile(lambda row: row.started_at < before, rows))
    runs = {row.pk for row in old}
    going = runs - _needed(runs, before)
    Run.objects.filter(pk__in=going).only("pk").delete()
    return EraseResult(len(going), _next(rows, old))


def erase_descriptions(before: datetime, history: int, after: int) -> EraseResult:
    """What was read in media that no message on record holds any more."""
    rows = list(
        Description.objects.filter(pk__gt=after).order_by("pk").only("pk", "created_at")[:BATCH]
    )
    going = [row.pk for row in rows if row.created_at < before]
    unused = Description.objects.filter(pk__in=going, uses=None)
    count, _ = Description.objects.filter(pk__in=list(unused.values_list("pk", flat=True))).delete()
    return EraseResult(count, rows[-1].pk if len(rows) == BATCH else None)


def erase_chat_events(before: datetime, history: int, after: int) -> EraseResult:
    """What happened in chats besides messages."""
    rows = list(
        ChatEvent.objects.filter(pk__gt=after).order_by("pk").values_list("pk", "at")[:BATCH]
    )
    going = [pk for pk, at in rows if at < before]
    ChatEvent.objects.filter(pk__in=going).delete()
    return EraseResult(len(going), rows[-1][0] if len(going) == BATCH else None)


def erase_join_requests(before: datetime, history: int, after: int) -> EraseResult:
    """Requests of people to be let in that are decided, or over."""
    rows = list(JoinRequest.objects.filter(pk__gt=after).order_by("pk").defer("flag")[:BATCH])
    going = [row.pk for row in rows if row.created_at < before and row.state != row.State.WAITING]
    count, _ = JoinRequest.objects.filter(pk__in=going).delete()
    return EraseResult(count, rows[-1].pk if len(rows) == BATCH else None)


def _runs_with(messages: set[int], runs: set[int]) -> dict[int, int | None]:
    """The runs for ``messages``, ``runs``, and all others for the same messages as those: each with
    its message."""
    found = Run.objects.filter(pk__in=runs)
    others = Run.objects.filter(
        Q(message__in=messages) | Q(message__in=found.exclude(message=None).values("message"))
    )
    return dict([*found.values_list("pk", "message_id"), *others.values_list("pk", "message_id")])


def _needed(runs: set[int], before: datetime) -> set[int]:
    """Those of ``runs`` that are not over, or belong to something that is not, or is younger."""
    of_runs = Run.objects.filter(pk__in=runs)
    for_message = Q(message__state__in=OPEN) | Q(message__created_at__gte=before)
    needed = set(
        of_runs.filter(
            Q(state=Run.State.RUNNING) | Q(started_at__gte=before) | for_message
        ).values_list("pk", flat=True)
    )
    calls = ToolCall.objects.filter(run__in=runs)
    told = Message.objects.filter(UNSETTLED, tool_call__run__in=runs).values_list(
        "tool_call__run", flat=True
    )
    needed |= set(calls.filter(state=ToolCall.State.PENDING).values_list("run", flat=True)) | set(
        told
    )
    said = Message.objects.filter(Q(state__in=OPEN) | Q(created_at__gte=before), run__in=runs)
    return {pk for pk in needed | set(said.values_list("run", flat=True)) if pk is not None}


def _history(sessions: set[int], messages: int) -> set[int]:
    """The runs of the newest messages of each chat's conversation."""
    found: set[int] = set()
    for session in sessions if messages else ():
        newest = Message.objects.filter(session_id=session, in_history=True).order_by(
            "-run_id", "-pk"
        )
        found.update(filter(None, newest.values_list("run_id", flat=True)[:messages]))
    return found


def _next(
    rows: Sequence[Message] | Sequence[Run], old: Sequence[Message] | Sequence[Run]
) -> int | None:
    """Rows are in the order in which they were recorded: after the first young one all are."""
    return old[-1].pk if old and len(old) == len(rows) == BATCH else None
