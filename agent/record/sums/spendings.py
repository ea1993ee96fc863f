"""What models cost on record: sums by day, and by whom and what it was for."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from django.db import transaction

from agent.domain.budgets import SpendKind
from agent.llm.spending import CallCost, Spend, SpendScope
from agent.models import BudgetStop, SpendSum
from agent.record.ground import statements
from tools.live_rows import ConfigVersion, LiveKind
from tools.local_time import counted_since, first_of_day

if TYPE_CHECKING:
    from django.db.models import QuerySet

#: Days that are kept.
KEPT_DAYS = 400
#: Sums that are deleted in one transaction.
FORGOTTEN = 1_000
SUBJECT_LIMIT = 300
_SUMMED = ("calls", "input", "cached", "output", "reasoning", "cost_nano")


class DatedSpend(NamedTuple):
    """What a call cost, with the day of the installation's time zone that it is counted for."""

    day: str
    spend: Spend


class SpentAmount(NamedTuple):
    """What was spent on one subject: tokens, and billionths by currency."""

    tokens: int
    costs: dict[str, int]


class SumRange(NamedTuple):
    """Which sums are asked for: of one subject from one day on."""

    kind: SpendKind
    subject: str
    first_day: str


def spend_subjects(
    endpoint_pk: int | None, endpoint_name: str, scope: SpendScope
) -> dict[SpendKind, str]:
    """Everybody and everything that a call counts for."""
    subjects = {
        SpendKind.ENDPOINT: endpoint_name if endpoint_pk is None else str(endpoint_pk),
        SpendKind.PERSONA: scope.persona,
        SpendKind.ACCOUNT: scope.account,
        SpendKind.CHAT: scope.chat,
        SpendKind.PERSON: scope.person,
        SpendKind.TOOL: scope.tool,
    }
    given = {kind: subject[:SUBJECT_LIMIT] for kind, subject in subjects.items() if subject}
    return {SpendKind.TOTAL: "", **given}


def add_spending(items: Sequence[DatedSpend]) -> list[None]:
    """Add what calls cost to the sums of all they were for."""
    sums: dict[tuple[str, str, str, str], list[int]] = {}
    for day, (cost, scope) in items:
        added = _added(cost)
        subjects = spend_subjects(cost.endpoint_pk, cost.endpoint_name, scope)
        for kind, subject in subjects.items():
            key = (day, str(kind), subject, cost.currency)
            known = sums.get(key)
            sums[key] = [a + b for a, b in zip(known, added, strict=True)] if known else added
    # in one order, so that two processes never wait for each other's rows in a circle
    columns = ("day", "kind", "subject", "currency", *_SUMMED)
    statements.add_spent.many(
        [dict(zip(columns, (*key, *sums[key]), strict=True)) for key in sorted(sums)]
    )
    if sums and min(sums)[0] < counted_since(1)[0]:
        ConfigVersion.bump(LiveKind.PAST_SUMS)  # pages take that day as over
    return [None] * len(items)


def _added(cost: CallCost) -> list[int]:
    return [1, cost.input, cost.cached, cost.output, cost.reasoning, cost.cost_nano]


def sums_since(kind: SpendKind, first_day: str) -> "QuerySet[SpendSum]":
    """All sums of a kind from a day on."""
    return SpendSum.objects.filter(kind=kind, day__gte=first_day).order_by()


def load_spent(wanted: SumRange) -> SpentAmount:
    """What was spent from the first day on."""
    rows = statements.find_spent.rows(**wanted._asdict())
    return SpentAmount(
        int(sum(asked + said for _, asked, said, _ in rows)),
        {currency: int(cost) for currency, _, _, cost in rows if cost},
    )


def load_spent_tokens(day: str) -> int:
    """The tokens of each of ``days``, of which each is the present one."""
    return load_spent(SumRange(SpendKind.TOTAL, "", first_of_day(day))).tokens


# The sums of one process: written in order, and read together with how far they were written.


class Posting(NamedTuple):
    """What a call cost, to be added. ``number`` grows from one posting of a process to the next;
    0: nobody asks for it."""

    day: str
    spend: Spend
    number: int = 0


class SpentAnswer(NamedTuple):
    """A sum on record. It holds the postings of this process up to ``number``, and no later one."""

    spent: SpentAmount
    number: int


class SpendBook:
    """Adds what calls of this process cost, and answers what was spent. Used by the database thread
    only."""

    def __init__(self) -> None:
        self._number = 0

    def post(self, items: Sequence[Posting | SumRange]) -> list[SpentAnswer | None]:
        """Add all postings; then the answers to what is asked."""
        postings = [item for item in items if isinstance(item, Posting)]
        number = max([self._number, *(posting.number for posting in postings)])
        if postings:
            add_spending([DatedSpend(posting.day, posting.spend) for posting in postings])
        if number > self._number:
            transaction.on_commit(partial(self._learn, number), robust=True)
        return [
            SpentAnswer(load_spent(item), number) if isinstance(item, SumRange) else None
            for item in items
        ]

    def _learn(self, number: int) -> None:
        self._number = number


def prune_spendings(day: str) -> int:
    """Delete stops of budgets, and some of the sums, of the days before each of ``before``; how
    many sums, 0 once there are none."""
    BudgetStop.objects.filter(period_start__lt=day).delete()
    old = SpendSum.objects.filter(day__lt=day).order_by().values("pk")[:FORGOTTEN]
    count, _ = SpendSum.objects.filter(pk__in=list(old.values_list("pk", flat=True))).delete()
    if count:
        ConfigVersion.bump(LiveKind.PAST_SUMS)
    return count
