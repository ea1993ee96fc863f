"""What calls cost is added to the sums of all they were for, and nothing is counted twice."""

import importlib

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.models import Sum

from agent.domain.budgets import SpendKind
from agent.llm.spending import CallCost, Spend, SpendScope
from agent.models import SpendSum
from agent.record.sums.spendings import (
    DatedSpend,
    Posting,
    SpendBook,
    SpentAmount,
    SumRange,
    add_spending,
    load_spent,
    load_spent_tokens,
    prune_spendings,
)
from tests.agent.databases import inside, postgres  # noqa: F401 - a fixture

pytestmark = pytest.mark.django_db(transaction=True)

SCOPE = SpendScope(
    "onebot:10001", "onebot:10001:group:30001", "onebot:10001/20001", "default", "use_subagent"
)
COST = CallCost(7, "one", 100, 40, 20, 5, 1_500, "CNY")


def dated(cost: CallCost = COST, scope: SpendScope = SCOPE, day: str = "2026-01-31") -> DatedSpend:
    return DatedSpend(day, Spend(cost, scope))


def test_a_call_counts_for_all_it_was_for():
    add_spending([dated(), dated()])
    add_spending([dated()])
    sums = SpendSum.objects.values_list("kind", "subject", "calls", "cost_nano")
    assert set(sums) == {
        ("total", "", 3, 4_500),
        ("endpoint", "7", 3, 4_500),
        ("persona", "default", 3, 4_500),
        ("account", "onebot:10001", 3, 4_500),
        ("chat", "onebot:10001:group:30001", 3, 4_500),
        ("person", "onebot:10001/20001", 3, 4_500),
        ("tool", "use_subagent", 3, 4_500),
    }
    assert [load_spent_tokens(f"2026-{day}") for day in ("01-31", "02-01")] == [360, 0]


def test_a_call_for_nobody_counts_for_the_whole_and_its_endpoint_alone():
    add_spending([dated(scope=SpendScope())])
    assert set(SpendSum.objects.values_list("kind", flat=True)) == {"total", "endpoint"}


def test_currencies_and_days_are_summed_apart():
    dollars = COST._replace(currency="USD", cost_nano=7)
    add_spending([dated(), dated(dollars), dated(day="2026-02-01")])
    asked = SumRange(SpendKind.PERSON, SCOPE.person, "2026-01-01")
    assert load_spent(asked) == SpentAmount(360, {"CNY": 3_000, "USD": 7})
    assert load_spent(asked._replace(first_day="2026-02-01")) == SpentAmount(120, {"CNY": 1_500})


def test_many_different_ones_are_written_in_one_commit():
    add_spending([dated(scope=SpendScope(person=f"onebot:1/{n}")) for n in range(200)])
    assert SpendSum.objects.filter(kind="person", calls=1).count() == 200
    assert SpendSum.objects.get(kind="total").calls == 200


def test_an_answer_says_how_far_it_was_written():
    book, asked = SpendBook(), SumRange(SpendKind.TOTAL, "", "2026-01-01")
    first, answer = book.post([asked, Posting("2026-01-31", Spend(COST, SCOPE), 3)])[0], None
    assert first is not None
    assert (first.number, first.spent.tokens) == (3, 120)
    [answer] = book.post([asked])
    assert answer is not None
    assert answer.number == 3


def test_old_sums_are_deleted():
    add_spending([dated(), dated(day="2024-01-01")])
    assert prune_spendings("2026-01-01") == 7
    assert set(SpendSum.objects.values_list("day", flat=True)) == {"2026-01-31"}


# --- An upgrade -----------------------------------------------------------------------


def upgrade() -> None:
    node = ("agent", "0016_one_sum_of_tokens")
    before = MigrationLoader(None).project_state(node, at_end=False)
    importlib.import_module(".".join(("agent", "migrations", node[1]))).copy_tokens(
        before.apps, None
    )


def check_upgrade() -> None:
    add_spending([dated(), dated(COST._replace(currency="USD"))])
    rows = {"2026-01-31": 240, "2026-01-30": 77, "2025-05-01": 5}
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO agent_spending VALUES (%s, %s)", list(rows.items()))
    for _ in range(2):
        upgrade()
        sums = SpendSum.objects.filter(kind="total").values_list("day").order_by()
        tokens = Sum("input_tokens") + Sum("output_tokens")
        assert dict(sums.annotate(tokens=tokens)) == rows


def test_tokens_of_days_without_sums_are_in_the_sums_after_an_upgrade():
    check_upgrade()


def test_they_are_on_postgresql(postgres, django_db_blocker):  # noqa: F811
    with django_db_blocker.unblock(), inside(postgres):
        check_upgrade()
