"""The tokens of each day on record."""

from collections.abc import Sequence

from django.utils import timezone

from agent.models import Spending
from agent.store.prepared import Select, Update

#: Days that are kept.
KEPT_DAYS = 400

add_tokens = Update(Spending, added=["tokens"])
spent_query = Select(Spending.objects.filter(day="").values_list("tokens"))


def today() -> str:
    """The day where the installation is."""
    return timezone.localdate().isoformat()


def spend(tokens: Sequence[int]) -> list[None]:
    """Add what calls cost to the present day."""
    day, cost = today(), sum(tokens)
    if not add_tokens.matching([(cost, day)])[0]:
        Spending.objects.bulk_create([Spending(day=day)], ignore_conflicts=True)
        add_tokens([(cost, day)])
    return [None] * len(tokens)


def spent(days: Sequence[str]) -> list[int]:
    """The tokens of each of ``days``."""
    return [rows[0][0] if (rows := spent_query(day)) else 0 for day in days]


def forget(before: Sequence[str]) -> list[int]:
    """Delete the days before each of ``before``; how many."""
    return [Spending.objects.filter(day__lt=day).delete()[0] for day in before]
