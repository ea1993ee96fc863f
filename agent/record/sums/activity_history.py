"""Sums of activity made from the rows of messages, for the days before they were kept.

What became of a message is counted for the day that it came in, or was to go out.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time, timedelta
from typing import NamedTuple

from django.db import connection, models
from django.utils import timezone

from agent.domain.playground import is_playground
from agent.domain.states import MessageDirection, MessageReason, RunState
from agent.models import ActivitySum, ChatSession, Message, Run, ToolCall, ToolUse
from agent.models.activity import WHOLE_DAY
from agent.record.sums.activity import (
    FAILED_CALLS,
    OUTCOME_COLUMNS,
    UNCOUNTED,
    hour_of,
    time_column,
)

#: Days before today that sums are made for.
DAYS = 30
#: Messages that are read in one transaction.
READ = 5_000
_WAS_ADDRESSED = frozenset(
    MessageReason(name)
    for name in (
        *("private", "mention", "wake_word", "quote", "prefix", "pattern", "chance", "always"),
        *("follow_up", "command", "decision", "merged", "stopped", "queue_full"),
    )
)

SumKey = tuple[int, int]
"""Hour, and key of the chat session."""


class PastDay(NamedTuple):
    """A day, and the keys of its messages: from the first up to, not including, the end."""

    day: str
    first: int
    end: int


class Activity:
    """What happened in one day: columns of sums by hour and chat, and calls and failures by chat
    and tool."""

    def __init__(self) -> None:
        self.sums: dict[SumKey, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.uses: dict[tuple[int, str], list[int]] = defaultdict(lambda: [0, 0])

    def add(self, hour: int, session: int, *columns: str) -> None:
        for key in ((WHOLE_DAY, session), (hour, session)):
            for column in columns:
                self.sums[key][column] += 1

    def add_call(self, hour: int, session: int, tool: str, *, failed: bool) -> None:
        self.add(hour, session, "tool_calls", *(["failed_calls"] if failed else []))
        use = self.uses[session, tool]
        use[0], use[1] = use[0] + 1, use[1] + int(failed)

    def merge(self, other: "Activity") -> None:
        for key, columns in other.sums.items():
            for column, count in columns.items():
                self.sums[key][column] += count
        for tool, (calls, failures) in other.uses.items():
            use = self.uses[tool]
            use[0], use[1] = use[0] + calls, use[1] + failures


def find_missing_days(today: date) -> list[PastDay]:
    """The last days without sums that have messages, the newest first. If it is all of them, sums
    were never kept before: then today is among them, whose sums may hold a part only."""
    days = [today - timedelta(days=back) for back in range(1, DAYS + 1)]
    known = set(
        ActivitySum.objects.filter(hour=WHOLE_DAY, day__gte=days[-1].isoformat())
        .order_by()
        .values_list("day", flat=True)
        .distinct()
    )
    wanted = [day for day in days if day.isoformat() not in known]
    if len(wanted) == len(days):
        wanted.insert(0, today)
    found = [
        PastDay(day.isoformat(), _first_since(day), _first_since(day + timedelta(days=1)))
        for day in wanted
    ]
    found = [one for one in found if one.first < one.end]
    if any(one.day < today.isoformat() for one in found):
        return found
    return [one for one in found if _has_uncounted(one)]


def _has_uncounted(today: PastDay) -> bool:
    """Whether more was heard today than the sums say: the record began today, and sums later."""
    heard = Message.objects.filter(pk__gte=today.first, direction=MessageDirection.IN)
    heard = heard.exclude(reason__in=UNCOUNTED).order_by()
    by_account = heard.values_list("session__account").annotate(messages=models.Count("pk"))
    count = sum(messages for account, messages in by_account if not is_playground(account))
    sums = ActivitySum.objects.filter(day=today.day, hour=WHOLE_DAY)
    received: int | None = sums.aggregate(received=models.Sum("received"))["received"]
    return bool(count > (received or 0))


def _first_since(day: date) -> int:
    """The key of the first message of ``day`` or later, by bisection: times grow with keys."""
    moment = timezone.make_aware(datetime.combine(day, time.min))
    low = 1
    high = (Message.objects.aggregate(last=models.Max("pk"))["last"] or 0) + 1
    while low < high:
        middle = (low + high) // 2
        row = Message.objects.filter(pk__gte=middle).order_by("pk").values_list("pk", "created_at")
        found = row.first()
        if found is None or found[1] >= moment:
            high = middle
        else:
            low = found[0] + 1
    return low


def count_rows(part: PastDay) -> Activity:
    """What the messages of ``part`` say, and what was done for them."""
    activity = Activity()
    tried = {
        pk
        for pk, account in ChatSession.objects.filter(account__startswith="900").values_list(
            "pk", "account"
        )
        if is_playground(account)
    }
    columns = ("session_id", "direction", "state", "reason", "run_id", "created_at", "settled_at")
    of_part = Message.objects.filter(pk__gte=part.first, pk__lt=part.end).order_by()
    for session, *row in of_part.values_list(*columns).iterator():
        if session not in tried:
            _count_message(activity, part.day, session, *row)
    asked = {"message__gte": part.first, "message__lt": part.end, "session__isnull": False}
    ended = (RunState.FINISHED, RunState.FAILED, RunState.STOPPED)
    runs = Run.objects.filter(parent=None, state__in=ended, **asked).order_by()
    for session, state, at in runs.values_list("session_id", "state", "finished_at"):
        if session not in tried:
            is_failed = state == RunState.FAILED
            hour = _hour(part.day, at)
            activity.add(hour, session, "runs", *(["failed_runs"] if is_failed else []))
    calls = ToolCall.objects.filter(**{f"run__{name}": value for name, value in asked.items()})
    made = calls.order_by().values_list("run__session_id", "tool_name", "state", "created_at")
    for session, tool, state, at in made:
        if session not in tried:
            failed = state in FAILED_CALLS
            activity.add_call(_hour(part.day, at), session, tool, failed=failed)
    return activity


def _count_message(
    activity: Activity,
    day: str,
    session: int,
    direction: str,
    state: str,
    reason: str,
    run_pk: int | None,
    created: datetime,
    settled: datetime | None,
) -> None:
    if reason in UNCOUNTED:
        return
    if direction == MessageDirection.IN:
        is_addressed = reason in _WAS_ADDRESSED or run_pk is not None
        addressed = ["addressed"] if is_addressed else []
        activity.add(_hour(day, created), session, "received", *addressed)
    column = OUTCOME_COLUMNS.get((direction, state))
    if column:
        activity.add(_hour(day, settled or created), session, column)
    if column == "answered" and settled:
        taken = time_column((settled - created).total_seconds())
        activity.add(_hour(day, settled), session, taken)


def _hour(day: str, moment: datetime | None) -> int:
    """The hour of ``moment``; the last of the day where it is later."""
    if moment is None:
        return 23
    found, hour = hour_of(moment)
    return hour if found == day else 23


def put_down(day: str, activity: Activity) -> bool:
    """Store the sums of a past day; False where it has some by now."""
    if ActivitySum.objects.filter(day=day, hour=WHOLE_DAY).exists():
        return False
    _store(day, activity, {WHOLE_DAY})
    return True


def recount(part: PastDay) -> None:
    """Replace the sums of a day that is still counted by what its rows say. Whoever counts in
    another transaction waits, and counts afterwards what is not seen here."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "LOCK TABLE agent_activitysum, agent_tooluse IN SHARE ROW EXCLUSIVE MODE"
            )
    activity = count_rows(part._replace(end=2**62))
    ActivitySum.objects.filter(day=part.day).delete()
    ToolUse.objects.filter(day=part.day).delete()
    _store(part.day, activity, range(WHOLE_DAY, 24))


def _store(day: str, activity: Activity, hours: Iterable[int]) -> None:
    wanted = set(hours)
    living = set(
        ChatSession.objects.filter(pk__in={pk for _, pk in activity.sums}).values_list(
            "pk", flat=True
        )
    )
    ActivitySum.objects.bulk_create(
        [
            ActivitySum(day=day, hour=hour, session_id=session, **columns)
            for (hour, session), columns in sorted(activity.sums.items())
            if hour in wanted and session in living
        ],
        batch_size=500,
        ignore_conflicts=True,  # another process makes the same
    )
    ToolUse.objects.bulk_create(
        [
            ToolUse(day=day, session_id=session, tool=tool, calls=calls, failures=failures)
            for (session, tool), (calls, failures) in sorted(activity.uses.items())
            if session in living
        ],
        batch_size=500,
        ignore_conflicts=True,  # another process makes the same
    )


def parts_of(day: PastDay) -> Sequence[PastDay]:
    """``day`` in parts of :data:`READ` messages."""
    return [
        day._replace(first=first, end=min(first + READ, day.end))
        for first in range(day.first, day.end, READ)
    ]


class KeptDays(NamedTuple):
    """The first day whose sums by day, and whose sums by hour, are kept."""

    day: str
    hour_day: str


def prune_activity(kept: KeptDays) -> int:
    """Delete some of the sums that are too old; how many, 0 once there are none."""
    is_old = models.Q(day__lt=kept.day) | models.Q(day__lt=kept.hour_day, hour__gt=WHOLE_DAY)
    count = 0
    for rows in (
        ActivitySum.objects.filter(is_old),
        ToolUse.objects.filter(day__lt=kept.day),
    ):
        old = list(rows.order_by().values_list("pk", flat=True)[:READ])
        count += rows.model._default_manager.filter(pk__in=old).delete()[0]
    return count
