"""What was spent in a period: ranked, within reach, with budgets that are changed beside it."""

from datetime import date, timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Sum
from django.test import Client, RequestFactory

from agent.domain.budgets import SpendKind
from agent.models import Budget, ChatGrant, ChatSession, ModelEndpoint, SpendSum
from frostproject.cockpit.spending import SpendingPage, read_span
from tests.admin.record import chat, logged_in, page, said
from tools.local_time import today
from tools.models import ToolConfigChange

pytestmark = pytest.mark.django_db
PAGE, KEEP = "/admin/spending/", "/admin/spending/budget/"
NOW = date(2026, 3, 10)


def spent(kind: str, subject: str, cost: float, *, days_ago: int = 0, **fields: Any) -> None:
    """So much money, and ten tokens."""
    SpendSum.objects.create(
        day=(today() - timedelta(days=days_ago)).isoformat(),
        kind=kind,
        subject=subject,
        **{"currency": "CNY", "input_tokens": 10, "calls": 1, "cost_nano": int(cost * 10**9)}
        | fields,
    )


def names(text: str, kind: str) -> list[str]:
    """Those who are ranked, as they stand on the page."""
    part = text.partition(f'id="by-{kind}"')[2].partition("</section>")[0]
    return [one.partition("</bdi>")[0] for one in part.split("<bdi>")[1:]]


def chat_owner(session: ChatSession) -> Client:
    client = logged_in("chat_owner")
    user = User.objects.get(username="user-chat_owner")
    ChatGrant.objects.create(user=user, account=session.account, chat=session.key)
    return client


@pytest.mark.parametrize(
    ("given", "first", "last", "is_noted"),
    [
        ({}, "2026-03-04", "2026-03-10", False),
        ({"since": "today"}, "2026-03-10", "2026-03-10", False),
        ({"since": "30d"}, "2026-02-09", "2026-03-10", False),
        ({"since": "month"}, "2026-03-01", "2026-03-10", False),
        ({"since": "century"}, "2026-03-04", "2026-03-10", False),
        ({"from": "2026-01-02", "to": "2026-01-31"}, "2026-01-02", "2026-01-31", False),
        ({"from": "2026-01-02"}, "2026-01-02", "2026-03-10", False),
        ({"from": "2026-01-31", "to": "2026-01-02"}, "2026-01-02", "2026-01-31", True),
        ({"from": "2016-01-01", "to": "2026-03-10"}, "2025-02-03", "2026-03-10", True),
        ({"from": "2001-01-01", "to": "2001-01-02"}, "2025-02-03", "2025-02-03", True),
        ({"to": "9999-12-31"}, "2025-02-03", "2026-03-10", False),
        ({"from": "2026-02-31"}, "2026-03-04", "2026-03-10", True),
        ({"from": "<b>", "to": "x" * 500}, "2026-03-04", "2026-03-10", True),
    ],
)
def test_a_period_is_read_as_far_as_sums_are_kept(given, first, last, is_noted):
    found = read_span(given, NOW)
    assert (found.first.isoformat(), found.last.isoformat()) == (first, last)
    assert bool(found.note) is is_noted


def test_who_spent_most_in_the_period_stands_first(browser: Client):
    for person, cost, days_ago in (("1", 1, 0), ("2", 2.5, 3), ("3", 9, 20)):
        spent("person", f"onebot:10001/{person}", cost, days_ago=days_ago)
        spent("total", "", cost, days_ago=days_ago)
    assert names(page(browser, PAGE), "person") == ["2", "1"]
    assert names(page(browser, f"{PAGE}?since=30d"), "person") == ["3", "2", "1"]
    assert names(page(browser, f"{PAGE}?since=today"), "person") == ["1"]
    text = page(browser, PAGE)
    assert "¥3.50" in text
    assert "71 %" in text


def test_they_are_ranked_in_one_currency_or_by_tokens(browser: Client):
    spent("total", "", 5)
    spent("total", "", 1, currency="USD")
    spent("chat", "onebot:1:group:1", 5)
    spent("chat", "onebot:1:group:2", 1, currency="USD", input_tokens=90)
    first = {by: names(page(browser, f"{PAGE}?by={by}"), "chat")[0] for by in ("USD", "CNY", "XXX")}
    assert first == {by: f"onebot:1:group:{2 if by == 'USD' else 1}" for by in first}
    assert names(page(browser, f"{PAGE}?by=tokens"), "chat")[0] == "onebot:1:group:2"


def test_more_than_are_shown_are_reached_page_by_page(browser: Client):
    for number in range(230):
        spent("person", f"onebot:10001/{number:03}", 1 + (230 - number) / 100)
    spent("total", "", 500)
    text = page(browser, PAGE)
    assert len(names(text, "person")) == 8
    assert "?kind=person" in text
    third = page(browser, f"{PAGE}?kind=person&page=3")
    assert names(third, "person") == [f"{number:03}" for number in range(200, 230)]
    assert '<ol start="201">' in third
    for other in ("0", "-1", "x", "9" * 400, "99999"):
        assert browser.get(f"{PAGE}?kind=person&page={other}").status_code == 200


def test_who_runs_one_chat_sees_what_was_spent_there_alone():
    mine, other = chat("700", title="mine"), chat("800", title="other")
    for session in (mine, other):
        spent("chat", f"onebot:10001:{session.key}", 2 if session is mine else 40)
    spent("total", "", 42)
    spent("person", "onebot:10001/20001", 42)
    Budget.objects.create(name="b", kind="chat", limit=4, unit="CNY")
    Budget.objects.create(name="secret", kind="total", limit=4, unit="CNY")
    client = chat_owner(mine)
    for query in ("", "?kind=person", "?kind=chat"):
        text = page(client, PAGE + query)
        assert names(text, "chat") == ["mine"]
        assert "50 % of ¥4.00 a day" in text
        for word in ("other", "20001", "¥40", "¥42", "secret", KEEP):
            assert word not in text


def test_who_only_looks_gets_no_forms_and_changes_nothing():
    spent("total", "", 1)
    spent("person", "onebot:10001/20001", 1)
    row = Budget.objects.create(name="b", kind="person", limit=4, unit="tokens")
    viewer = logged_in("viewer")
    text = page(viewer, PAGE)
    assert "4 tokens a day" in text
    assert KEEP not in text
    assert viewer.post(KEEP, {"row": row.pk, "limit": "9"}).status_code == 403
    assert viewer.post(KEEP, {"kind": "total", "limit": "9"}).status_code == 403
    assert Budget.objects.get(pk=row.pk).limit == 4


def test_a_limit_is_changed_and_switched_beside_its_bar_with_the_same_history(browser: Client):
    row = Budget.objects.create(name="b", kind="total", limit=4, unit="tokens", at_limit="sentence")
    back = f"{PAGE}?since=30d#budget-{row.pk}"
    answer = browser.post(KEEP, {"row": row.pk, "limit": "9", "next": back})
    assert answer.headers["Location"] == back
    browser.post(KEEP, {"row": row.pk, "limit": "9", "enabled": "false"})
    row.refresh_from_db()
    assert (row.limit, row.enabled, row.at_limit) == (9, False, "sentence")
    changes = ToolConfigChange.objects.filter(subject=f"agent.budget:{row.pk}").order_by("pk")
    assert [list(one.after) for one in changes] == [["limit"], ["enabled"]]
    assert 'value="true">Switch on</button>' in page(browser, PAGE)
    browser.post(KEEP, {"row": row.pk, "limit": "9", "enabled": "true"})
    assert Budget.objects.get(pk=row.pk).enabled


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"limit": "much"}, "Limit: Enter a number."),
        ({"limit": "-1"}, "Limit: Ensure this value is greater than or equal to 0."),
        ({"limit": ""}, "Limit: This field is required."),
        ({"limit": "5", "row_seen": "stale"}, "Somebody else has saved this row"),
    ],
)
def test_a_change_that_the_form_refuses_is_refused_here_in_its_words(
    browser: Client, form: dict[str, str], words: str
):
    row = Budget.objects.create(name="b", kind="total", limit=4, unit="tokens")
    answer = browser.post(KEEP, {"row": row.pk, **form}, follow=True)
    assert words in answer.content.decode()
    assert Budget.objects.get(pk=row.pk).limit == 4


def test_a_budget_is_added_beside_a_bar(browser: Client):
    Budget.objects.all().delete()
    ModelEndpoint.objects.create(name="one", currency="CNY", price_input=1)
    said(chat(), sender_name="阿雪" * 250)
    spent("person", "onebot:10001/20001", 2)
    form = {"kind": "person", "subject": "onebot:10001/20001", "name": "阿雪" * 250}
    for _twice in range(2):
        browser.post(KEEP, {**form, "limit": "4", "unit": "CNY", "period": "month"})
    rows = list(Budget.objects.values_list("kind", "subject", "limit", "unit", "period", "enabled"))
    assert rows == [("person", "onebot:10001/20001", 4, "CNY", "month", True)] * 2
    assert "50 % of ¥4.00 a month" in page(browser, PAGE)
    answer = browser.post(KEEP, {**form, "limit": "4", "unit": "XYZ"}, follow=True)
    assert "No endpoint has prices in XYZ" in answer.content.decode()


def test_the_budget_of_the_environment_is_not_changed_here(browser: Client):
    row = Budget.objects.create(name="e", limit=4, unit="tokens", environment="TOKENS_PER_DAY")
    assert f'name="row" value="{row.pk}"' not in page(browser, PAGE)
    assert browser.post(KEEP, {"row": row.pk, "limit": "9"}).status_code == 403
    assert browser.post(KEEP, {"row": "x", "limit": "9"}).status_code == 404


def test_names_with_markup_or_turned_direction_do_no_harm(browser: Client):
    said(chat(), sender_name="<b>\u202eevil")
    spent("person", "onebot:10001/20001", 1)
    spent("tool", "<script>", 1)
    text = page(browser, PAGE)
    assert "<b>" not in text
    assert "\u202e" not in text
    assert "<script>1" not in text
    assert "&lt;script&gt;" in text


def test_a_page_without_anything_says_so(browser: Client):
    text = page(browser, PAGE)
    assert text.count("Nothing was spent in these days.") == 4
    assert "0 tokens" in text


def test_queries_do_not_grow_with_people_and_budgets(
    browser: Client, django_assert_max_num_queries
):
    for number in range(20):
        said(chat(str(number)), sender_id=str(number))
        spent("person", f"onebot:10001/{number}", 1)
        spent("chat", f"onebot:10001:group:{number}", 1)
        Budget.objects.create(name=f"b{number}", kind="person", limit=4, unit="tokens")
    page(browser, PAGE)
    with django_assert_max_num_queries(18):
        page(browser, PAGE)


@pytest.mark.parametrize("kind", ["person", "total"])
def test_sums_of_a_period_are_found_by_its_days(kind: str):
    if connection.vendor != "sqlite":
        pytest.skip("other databases know how many rows there are")
    request = RequestFactory().get(PAGE)
    request.user = User.objects.create_superuser("root")
    rows = SpendingPage(request, admin.site).rows(SpendKind(kind))
    assert "day>" in rows.values("subject").annotate(all=Sum("calls")).explain()
