"""The pages of budgets and of what was spent."""

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agent.llm.spending import CallCost, Spend, SpendScope
from agent.models import Budget, BudgetNotice, BudgetStop, ModelEndpoint, SpendSum
from agent.record.sums.budgets import mirror_environment
from agent.record.sums.spendings import DatedSpend, add_spending
from tests.admin.record import ENGLISH
from tools.local_time import current_day

pytestmark = pytest.mark.django_db

ADD = "/admin/agent/budget/add/"
FORM = {
    "name": "ann",
    "enabled": "on",
    "kind": "person",
    "subject": "onebot:1/2",
    "period": "day",
    "limit": "10",
    "unit": "CNY",
    "at_limit": "owners",
    "cheaper": "",
}


@pytest.fixture
def admin(admin_client: Client) -> Client:
    Budget.objects.all().delete()
    ModelEndpoint.objects.create(name="one", currency="CNY", price_input=1)
    cost = CallCost(1, "one", 3_000, 0, 200, 0, 9_500_000_000, "CNY")
    add_spending([DatedSpend(current_day(), Spend(cost, SpendScope(person="onebot:1/2")))])
    return admin_client


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"unit": "XYZ"}, "No endpoint has prices in XYZ"),
        ({"unit": "money"}, "No endpoint has prices in money"),
        ({"at_limit": "cheaper"}, "Choose the endpoint that answers then."),
        ({"kind": "total"}, "on nobody in particular"),
        ({"limit": "much"}, "Enter a number."),
        ({"limit": "-1"}, "greater than or equal to 0"),
    ],
)
def test_what_cannot_be_a_budget_is_said_at_its_field(admin, change, words):
    answer = admin.post(ADD, FORM | change, headers=ENGLISH)
    assert words in answer.content.decode()
    assert not Budget.objects.exists()


def test_the_list_shows_how_much_is_spent_now(admin):
    assert admin.post(ADD, FORM).status_code == 302
    text = admin.get("/admin/agent/budget/", headers=ENGLISH).content.decode()
    assert "¥9.50 (95%)" in text
    assert "¥10.00 / day" in text


def test_a_subject_that_nobody_knows_is_saved_with_a_warning(admin):
    answer = admin.post(ADD, FORM | {"subject": "onebot:1/3"}, headers=ENGLISH, follow=True)
    assert "Nothing was ever spent on" in answer.content.decode()
    assert Budget.objects.count() == 1


def test_owners_are_told_anew_of_another_limit(admin):
    admin.post(ADD, FORM)
    budget = Budget.objects.get()
    BudgetNotice.objects.create(budget=budget, period_start=current_day(), percent=80)
    page = f"/admin/agent/budget/{budget.pk}/change/"
    assert admin.post(page, FORM | {"name": "Ann"}).status_code == 302
    assert BudgetNotice.objects.exists()
    assert admin.post(page, FORM | {"limit": "20"}).status_code == 302
    assert not BudgetNotice.objects.exists()


def test_the_budget_of_the_environment_is_shown_and_changed_there_alone(admin, settings):
    settings.TOKENS_PER_DAY = 1_600
    mirror_environment()
    budget = Budget.objects.get()
    page = f"/admin/agent/budget/{budget.pk}/"
    text = admin.get("/admin/agent/budget/", headers=ENGLISH).content.decode()
    assert ".env: TOKENS_PER_DAY" in text
    assert "3,200 tokens" in text
    assert 'name="_save"' not in admin.get(f"{page}change/", headers=ENGLISH).content.decode()
    assert admin.post(f"{page}change/", FORM).status_code == 403
    assert admin.post(f"{page}delete/", {"post": "yes"}).status_code == 403
    chosen = {"action": "delete_selected", "_selected_action": [budget.pk], "post": "yes"}
    admin.post("/admin/agent/budget/", chosen)
    assert Budget.objects.get().limit == 1_600


def test_sums_are_listed_with_their_cost_and_found_by_subject(admin):
    for address in ("", "?kind__exact=person", "?q=onebot:1/2", f"?q={current_day()}"):
        text = admin.get(f"/admin/agent/spendsum/{address}", headers=ENGLISH).content.decode()
        assert "¥9.50" in text, address
        assert "onebot:1/2" in text
    row = SpendSum.objects.earliest("pk")
    assert admin.get(f"/admin/agent/spendsum/{row.pk}/change/").status_code == 200


def test_the_page_of_a_sum_names_what_it_is_of(admin):
    endpoint = ModelEndpoint.objects.create(
        name="deepseek", base_url="http://127.0.0.1:1", model="m"
    )
    row = SpendSum.objects.create(day=current_day(), kind="endpoint", subject=str(endpoint.pk))
    text = admin.get(f"/admin/agent/spendsum/{row.pk}/change/").content.decode()
    assert "deepseek" in text.partition("field-whom")[2]
    assert f'<div class="quiet">{endpoint.pk}</div>' in text


def test_the_first_page_shows_what_today_costs(admin):
    assert "¥9.50" in admin.get("/admin/", headers=ENGLISH).content.decode()


def stopped(subject: str = "onebot:1/2", **fields: Any) -> Budget:
    """A budget that turned somebody away who asked for 0.8 of its currency."""
    usual = {"name": "ann", "kind": "person", "limit": 10, "unit": "CNY"}
    row: Budget = Budget.objects.create(**usual | fields)
    facts = {"period_start": current_day(), "needed": 800_000_000, "at": timezone.now()}
    BudgetStop.objects.create(budget=row, subject=subject, **facts)
    return row


def test_a_budget_that_stops_somebody_says_so_with_what_is_left_until_it_is_raised(admin):
    row = stopped()
    page = f"/admin/agent/budget/{row.pk}/change/"
    for address in ("/admin/agent/budget/", page):
        text = admin.get(address, headers=ENGLISH).content.decode()
        assert "stopped" in text
        assert "¥0.50 left, and a call may take ¥0.80" in text
    assert admin.post(page, FORM | {"limit": "11"}).status_code == 302
    text = admin.get(page, headers=ENGLISH).content.decode()
    assert "may take" not in text
    assert not BudgetStop.objects.exists()


def test_the_end_of_a_period_is_the_end_of_a_stop(admin):
    stopped()
    BudgetStop.objects.update(period_start="2026-01-01")
    assert "stopped" not in admin.get("/admin/agent/budget/", headers=ENGLISH).content.decode()
