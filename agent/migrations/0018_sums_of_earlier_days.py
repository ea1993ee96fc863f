"""Sums of activity for the days before they were kept, made from the rows of messages, so that the
charts of an installation that is upgraded begin 30 days ago.

What became of a message is counted for the day that it came in, or was to go out. A day has its
hours apart only where it is still counted.
"""

from collections import defaultdict
from datetime import date, datetime, time, timedelta
from typing import Any

from django.db import migrations
from django.utils import timezone

#: Days before today that sums are made for.
DAYS = 30
WHOLE_DAY = -1
BATCH = 500
ANSWER_SECONDS = (1, 2, 3, 5, 8, 13, 20, 30, 60, 120)
UNCOUNTED = ("later_result", "own_message")
ADDRESSED = (
    *("private", "mention", "wake_word", "quote", "prefix", "pattern", "chance", "always"),
    *("follow_up", "command", "decision", "merged", "stopped", "queue_full"),
)
OUTCOMES = {
    ("in", "answered"): "answered",
    ("in", "failed"): "failed",
    ("out", "delivered"): "sent",
    ("out", "failed"): "unsent",
    ("out", "unknown"): "unknown",
}
PLAYGROUNDS = (9_000_000_000_000_000, 2**53 - 1)


class Activity:
    """What happened in one day, from the message of one key up to, not including, another's."""

    def __init__(self, apps: Any, day: str, first: int, end: int) -> None:
        self.apps, self.day, self.span = apps, day, {"gte": first, "lt": end}
        self.sums: Any = defaultdict(lambda: defaultdict(int))
        self.uses: Any = defaultdict(lambda: [0, 0])
        accounts = apps.get_model("agent.ChatSession").objects.values_list("pk", "account")
        self.chats = {pk for pk, account in accounts if not is_playground(account)}

    def add(self, moment: Any, session: int, *columns: str) -> None:
        hour = 23
        if moment is not None:
            local = timezone.localtime(moment)
            hour = local.hour if local.date().isoformat() == self.day else 23
        for key in ((WHOLE_DAY, session), (hour, session)):
            for column in columns:
                self.sums[key][column] += 1

    def within(self, name: str) -> Any:
        return {f"{name}__{bound}": key for bound, key in self.span.items()}

    def count(self) -> None:
        columns = ("session_id", "direction", "state", "reason", "run_id", "created_at")
        rows = self.apps.get_model("agent.Message").objects.filter(**self.within("pk")).order_by()
        rows = rows.exclude(reason__in=UNCOUNTED).values_list(*columns, "settled_at")
        for session, *row in rows.iterator():
            if session in self.chats:
                self.count_message(session, *row)
        runs = self.apps.get_model("agent.Run").objects.filter(**self.within("message"))
        ended = runs.filter(parent=None, state__in=("finished", "failed", "stopped")).order_by()
        for session, state, at in ended.values_list("session_id", "state", "finished_at"):
            if session in self.chats:
                self.add(at, session, "runs", *(["failed_runs"] if state == "failed" else []))
        calls = self.apps.get_model("agent.ToolCall").objects.filter(**self.within("run__message"))
        made = calls.order_by().values_list("run__session", "tool_name", "state", "created_at")
        for session, tool, state, at in made:
            if session in self.chats:
                failed = state in ("failed", "unknown")
                self.add(at, session, "tool_calls", *(["failed_calls"] if failed else []))
                use = self.uses[session, tool]
                use[0], use[1] = use[0] + 1, use[1] + int(failed)

    def count_message(
        self,
        session: int,
        direction: str,
        state: str,
        reason: str,
        run: Any,
        created: datetime,
        settled: Any,
    ) -> None:
        if direction == "in":
            is_addressed = reason in ADDRESSED or run is not None
            self.add(created, session, "received", *(["addressed"] if is_addressed else []))
        column = OUTCOMES.get((direction, state))
        if column:
            self.add(settled or created, session, column)
        if column == "answered" and settled:
            seconds = (settled - created).total_seconds()
            limits = (f"within_{limit}" for limit in ANSWER_SECONDS if seconds <= limit)
            self.add(settled, session, next(limits, "later"))

    def store(self, *, with_hours: bool) -> None:
        sums = self.apps.get_model("agent.ActivitySum")
        sums.objects.bulk_create(
            [
                sums(day=self.day, hour=hour, session_id=session, **columns)
                for (hour, session), columns in sorted(self.sums.items())
                if hour == WHOLE_DAY or with_hours
            ],
            batch_size=BATCH,
        )
        uses = self.apps.get_model("agent.ToolUse")
        uses.objects.filter(day=self.day).delete()
        uses.objects.bulk_create(
            [
                uses(day=self.day, session_id=session, tool=tool, calls=calls, failures=failures)
                for (session, tool), (calls, failures) in sorted(self.uses.items())
            ],
            batch_size=BATCH,
        )


def is_playground(account: str) -> bool:
    first, last = PLAYGROUNDS
    return account.isascii() and account.isdigit() and first < int(account) <= last


def first_since(messages: Any, day: date) -> int:
    """The key of the first message of ``day`` or later, by bisection: times grow with keys."""
    moment = timezone.make_aware(datetime.combine(day, time.min))
    newest = messages.order_by("-pk").values_list("pk", flat=True).first()
    low, high = 1, (newest or 0) + 1
    while low < high:
        middle = (low + high) // 2
        rows = messages.filter(pk__gte=middle).order_by("pk").values_list("pk", "created_at")
        found = rows.first()
        if found is None or found[1] >= moment:
            high = middle
        else:
            low = found[0] + 1
    return low


def fill_days(apps: Any, editor: Any) -> None:
    """Make the sums of each of the last days that has none. If it is all of them, sums were never
    kept before: then today is among them, whose sums may hold a part only."""
    sums, today = apps.get_model("agent.ActivitySum").objects, timezone.localdate()
    days = [today - timedelta(days=back) for back in range(1, DAYS + 1)]
    known = set(
        sums.filter(hour=WHOLE_DAY, day__gte=days[-1].isoformat())
        .order_by()
        .values_list("day", flat=True)
        .distinct()
    )
    missing = [day for day in days if day.isoformat() not in known]
    if len(missing) == len(days):
        missing.insert(0, today)
    messages = apps.get_model("agent.Message").objects
    for day in missing:
        first, end = (first_since(messages, one) for one in (day, day + timedelta(days=1)))
        if first < end:
            activity = Activity(apps, day.isoformat(), first, end)
            activity.count()
            sums.filter(day=activity.day).delete()
            activity.store(with_hours=day == today)


class Migration(migrations.Migration):
    dependencies = [("agent", "0017_answer_rules")]

    operations = [migrations.RunPython(fill_days, migrations.RunPython.noop)]
