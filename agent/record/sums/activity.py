"""Sums of what happened in chats, written in the transactions that they count.

Rows of each statement are in one order, so that two processes hardly ever wait for each other in a
circle. Playgrounds are left out, and so are announcements of later results, which nobody said.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db.models import F, Q
from django.utils import timezone

from agent.domain.answer_triggers import TriggerDecision
from agent.domain.states import UNSAID, MessageState
from agent.domain.types import is_playground
from agent.models import ActivitySum, Message, Run, ToolCall, ToolUse
from agent.models.activity import ANSWER_SECONDS, WHOLE_DAY
from agent.record.ground import statements
from tools.live_rows import ConfigVersion, LiveKind
from tools.local_time import counted_hour, counted_since

if TYPE_CHECKING:
    from django.db.models import QuerySet

State = Message.State
#: Sums that are deleted in one transaction.
FORGOTTEN = 5_000
#: Incoming messages that nobody said, or the bot itself.
UNCOUNTED = frozenset({*UNSAID, Message.Reason.OWN_MESSAGE})
TIME_COLUMNS = (*(f"within_{seconds}" for seconds in ANSWER_SECONDS), "later")
OUTCOME_COLUMNS: dict[tuple[str, str | None], str] = {
    (Message.Direction.IN, State.ANSWERED): "answered",
    (Message.Direction.IN, State.FAILED): "failed",
    (Message.Direction.OUT, State.DELIVERED): "sent",
    (Message.Direction.OUT, State.FAILED): "unsent",
    (Message.Direction.OUT, State.UNKNOWN): "unknown",
}
"""What a settled message counts as; others count as nothing."""
FAILED_CALLS = (ToolCall.State.FAILED, ToolCall.State.UNKNOWN)
_ENDINGS = (*OUTCOME_COLUMNS.values(), "runs", "failed_runs", *TIME_COLUMNS)
_INDEXES = {name: index for index, name in enumerate(_ENDINGS)}

Hour = tuple[str, int]
_Additions = Iterable[tuple[Hour, int, Sequence[int]]]
"""Hour, key of the chat session, and what is to be added."""


class Arrival(NamedTuple):
    """A message that came in, as far as it is counted."""

    session_pk: int
    account: str
    received_at: datetime
    decision: TriggerDecision


def time_column(seconds: float) -> str:
    """The column that counts answers after so many seconds."""
    for limit, column in zip(ANSWER_SECONDS, TIME_COLUMNS, strict=False):
        if seconds <= limit:
            return column
    return TIME_COLUMNS[-1]


def count_arrivals(arrivals: Iterable[Arrival]) -> None:
    """Count messages that came in."""
    _add(
        statements.count_arrivals,
        ("received", "addressed"),
        [
            (
                counted_hour(one.received_at),
                one.session_pk,
                (1, int(one.decision.state is MessageState.WAITING)),
            )
            for one in arrivals
            if one.decision.reason not in UNCOUNTED and not is_playground(one.account)
        ],
    )


def count_endings(states: Mapping[int, str], now: datetime) -> None:
    """Count how messages end, before that is written: ``states`` are their new states by key."""
    rows = take_back_outcomes(sorted(states))
    count_ended([(*row[:4], states[row[0]], *row[5:]) for row in rows], now)


def take_back_outcomes(pks: Sequence[int]) -> list[Sequence[Any]]:
    """Count no more what was counted before, as the outcome of a message that was thought lost,
    also where it only waits again; what messages are counted by."""
    rows = _rows(pks)
    for pk, _session, account, direction, state, reason, _created in rows:
        earlier = OUTCOME_COLUMNS.get((direction, state))
        if earlier and reason not in UNCOUNTED and not is_playground(account):
            _take_back(pk, earlier)
    return rows


def count_ended(
    ended: Iterable[Sequence[Any]], now: datetime, runs: Mapping[int, str] | None = None
) -> None:
    """Count messages that have ended ``now``, by what :data:`statements.settle_messages` returns.
    ``runs`` has the states of runs that end with them, by the key of the message answered."""
    hour, additions = counted_hour(now), []
    for pk, session, account, direction, state, reason, created in ended:
        if is_playground(account):
            continue
        added = [0] * len(_ENDINGS)
        column = None if reason in UNCOUNTED else OUTCOME_COLUMNS.get((direction, state))
        if column:
            added[_INDEXES[column]] = 1
        if column == "answered":
            added[_INDEXES[time_column((now - created).total_seconds())]] = 1
        if runs and pk in runs:
            added[_INDEXES["runs"]] = 1
            added[_INDEXES["failed_runs"]] = int(runs[pk] == Run.State.FAILED)
        additions.append((hour, session, added))
    counted = [addition for addition in additions if any(addition[2])]
    _add(statements.count_endings, _ENDINGS, counted)


def forget_outcomes(pks: Sequence[int]) -> None:
    """Messages of unknown outcome are under way again: to be called before that is written."""
    for pk, _session, account, direction, state, *_ in _rows(pks):
        if state == State.UNKNOWN and not is_playground(account):
            _take_back(pk, OUTCOME_COLUMNS[direction, state])


def count_messages(messages: "QuerySet[Message]", state: str) -> None:
    """Count messages that all get the same ``state``, before that is written."""
    pks = list(messages.order_by("pk").values_list("pk", flat=True))
    count_endings(dict.fromkeys(pks, state), timezone.now())


def count_runs(runs: "QuerySet[Run]", *, failed: bool) -> None:
    """Count runs that end without :func:`count_endings`, before that is written."""
    columns = ("session_id", "session__account")
    own = runs.filter(parent=None, session__isnull=False).order_by().values_list(*columns)
    added = [0] * len(_ENDINGS)
    added[_INDEXES["runs"]], added[_INDEXES["failed_runs"]] = 1, int(failed)
    hour = counted_hour(timezone.now())
    counted = [(hour, pk, added) for pk, account in own if not is_playground(account)]
    _add(statements.count_endings, _ENDINGS, counted)


def count_new_calls(calls: Sequence[tuple[int, str]]) -> None:
    """Count the tool calls that models asked for, each with the key of its run and its tool."""
    if not calls:
        return
    runs = sorted({run_pk for run_pk, _tool in calls})
    found = statements.find_chats_of_runs.rows(runs=runs)
    owners = {pk: (session, account) for pk, session, account in found}
    _count_calls((*owners[pk], tool, (1, 0)) for pk, tool in calls if pk in owners)


def count_failed_calls(calls: "QuerySet[ToolCall]") -> None:
    """Count tool calls that fail, or whose outcome is unknown, before that is written; each
    once."""
    new = calls.exclude(state__in=FAILED_CALLS).filter(run__session__isnull=False).order_by()
    columns = ("run__session_id", "run__session__account", "tool_name")
    _count_calls((*row, (0, 1)) for row in new.values_list(*columns))


def _count_calls(calls: Iterable[tuple[int, str, str, tuple[int, int]]]) -> None:
    """Chat session, account, tool, and what is added to calls and failures."""
    day, hour = counted_hour(timezone.now())
    counted = [one for one in calls if not is_playground(one[1])]
    additions = [((day, hour), session, added) for session, _, _, added in counted]
    _add(statements.count_calls, ("calls", "failures"), additions)
    uses: dict[tuple[str, int, str], list[int]] = {}
    for session, _, tool, (calls_added, failures) in counted:
        use = uses.setdefault((day, session, tool), [0, 0])
        use[0], use[1] = use[0] + calls_added, use[1] + failures
    columns = ("day", "session", "tool", "calls", "failures")
    statements.count_tool_uses.many(
        [dict(zip(columns, (*key, *uses[key]), strict=True)) for key in sorted(uses)]
    )


def _add(statement: statements.Statement, columns: Sequence[str], additions: _Additions) -> None:
    """Add to the hour and to the whole day. What was to be counted earlier changes what pages take
    as over."""
    sums: dict[tuple[str, int, int], Sequence[int]] = {}
    is_late, open_since = False, counted_since(1)
    for (day, hour), session, added in additions:
        is_late = is_late or (day, hour) < open_since
        for key in ((day, WHOLE_DAY, session), (day, hour, session)):
            known = sums.get(key)
            sums[key] = [a + b for a, b in zip(known, added, strict=True)] if known else added
    columns = ("day", "hour", "session", *columns)
    statement.many([dict(zip(columns, (*key, *sums[key]), strict=True)) for key in sorted(sums)])
    if is_late:
        ConfigVersion.bump(LiveKind.PAST_SUMS)


def _take_back(pk: int, column: str) -> None:
    """Count the message no more where it was counted when it was settled."""
    message = Message.objects.only("session_id", "settled_at").get(pk=pk)
    if message.settled_at is not None:
        day, hour = counted_hour(message.settled_at)
        sums = ActivitySum.objects.filter(
            day=day, hour__in=(WHOLE_DAY, hour), session=message.session_id
        )
        sums.filter(**{f"{column}__gt": 0}).update(**{column: F(column) - 1})
        ConfigVersion.bump(LiveKind.PAST_SUMS)


def _rows(pks: Sequence[int]) -> list[Sequence[Any]]:
    return statements.find_ended.rows(messages=list(pks)) if pks else []


def prune_activity(first_day: str, first_hour_day: str) -> int:
    """Delete some of the sums by day before ``first_day``, and of those by hour before
    ``first_hour_day``; how many, 0 once there are none."""
    is_old = Q(day__lt=first_day) | Q(day__lt=first_hour_day, hour__gt=WHOLE_DAY)
    count = 0
    for rows in (ActivitySum.objects.filter(is_old), ToolUse.objects.filter(day__lt=first_day)):
        old = list(rows.order_by().values_list("pk", flat=True)[:FORGOTTEN])
        count += rows.model._default_manager.filter(pk__in=old).delete()[0]
    if count:
        ConfigVersion.bump(LiveKind.PAST_SUMS)
    return count
