"""The tokens of each day on record."""

from collections.abc import Sequence

from django.utils import timezone

from agent.llm.meter import Spend
from agent.models import Spending
from agent.record.commit import for_each
from agent.record.compiled_sql import PreparedSelect, PreparedUpdate

#: Days that are kept.
KEPT_DAYS = 400

add_tokens = PreparedUpdate(Spending, added=["tokens"])
spent_query = PreparedSelect(Spending.objects.filter(day="").values_list("tokens"))


def current_day() -> str:
    """The day where the installation is."""
    return timezone.localdate().isoformat()


def add_spending(items: Sequence[Spend]) -> list[None]:
    """Add what calls cost to the present day."""
    day, cost = current_day(), sum(item.cost.tokens for item in items)
    if not add_tokens.matching([(cost, day)])[0]:
        Spending.objects.bulk_create([Spending(day=day)], ignore_conflicts=True)
        add_tokens([(cost, day)])
    return [None] * len(items)


@for_each
def load_spent_tokens(day: str) -> int:
    """The tokens of each of ``days``."""
    return rows[0][0] if (rows := spent_query(day)) else 0


@for_each
def prune_spendings(day: str) -> int:
    """Delete the days before each of ``before``; how many."""
    return Spending.objects.filter(day__lt=day).delete()[0]
