"""Numbers of the first page: from sums, within reach, and approximate where that is said."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone, translation

from agent.models import ActivitySum, ChatGrant, ChatSession, SpendSum, ToolUse
from agent.models.activity import WHOLE_DAY
from frostproject.cockpit.dashboard import (
    add_up,
    list_charts,
    load_days,
    load_hours,
    load_tools,
    percentile,
    seconds_words,
)
from frostproject.cockpit.viewer import find_viewer
from tests.admin.record import chat, logged_in, page, said
from tools.local_time import current_day


def counted(session: ChatSession, received: int, *, days_ago: int = 0, **counts: int) -> None:
    day = (timezone.localdate() - timedelta(days=days_ago)).isoformat()
    ActivitySum.objects.create(
        day=day, hour=WHOLE_DAY, session=session, received=received, **counts
    )


def spent(kind: str, subject: str, tokens: int, *, currency: str = "", cost: int = 0) -> None:
    SpendSum.objects.create(
        day=current_day(),
        kind=kind,
        subject=subject,
        currency=currency,
        input_tokens=tokens,
        cost_nano=cost,
    )


def owner_of(session: ChatSession) -> User:
    logged_in("chat_owner")
    user = User.objects.get(username="user-chat_owner")
    ChatGrant.objects.create(user=user, account=session.account, chat=session.key)
    return user


@pytest.mark.parametrize(
    ("counts", "share", "seconds"),
    [
        ({}, 0.5, None),
        ({"within_1": 10}, 0.5, 0.5),
        ({"within_1": 5, "within_2": 5}, 0.95, 1.9),
        ({"within_3": 1, "later": 1}, 0.5, 3.0),
        ({"within_3": 1, "later": 1}, 0.95, float("inf")),
        ({"within_60": 4}, 0.5, 45.0),
    ],
)
def test_seconds_are_estimated_from_the_columns(counts, share, seconds):
    found = percentile(counts, share)
    assert found == (None if seconds is None else pytest.approx(seconds))


def test_seconds_in_words():
    assert [seconds_words(one) for one in (None, 1.23, 44.6, float("inf"))] == [
        "–",
        "1.2 s",
        "45 s",
        "> 120 s",
    ]


@pytest.mark.django_db
def test_days_without_anything_are_shown_as_such():
    counted(chat(), 7, days_ago=2)
    counted(chat("800"), 9, days_ago=40)
    days = load_days(find_viewer(User.objects.create_superuser("root")))
    assert len(days) == 30
    assert [day.counts.get("received", 0) for day in days[-3:]] == [7, 0, 0]
    assert add_up(days).counts["received"] == 7


@pytest.mark.django_db
def test_who_runs_one_chat_sees_the_numbers_of_that_chat_alone():
    mine, other = chat("700"), chat("800")
    for session in (mine, other):
        counted(session, 5 if session is mine else 100)
        day = timezone.localdate().isoformat()
        ActivitySum.objects.create(day=day, hour=0, session=session, received=1)
        ToolUse.objects.create(day=day, session=session, tool=f"tool-{session.peer_id}", calls=2)
        spent("chat", f"onebot:10001:group:{session.peer_id}", 10)
    spent("total", "", 20)
    spent("person", "onebot:10001/20001", 20)
    viewer = find_viewer(owner_of(mine))
    days = load_days(viewer)
    assert (days[-1].counts["received"], days[-1].tokens) == (5, 0)
    assert load_hours(viewer)[0].counts["received"] == 1
    assert [one["tool"] for one in load_tools(viewer)] == ["tool-700"]


@pytest.mark.django_db
def test_the_page_of_who_runs_one_chat_shows_nothing_of_others():
    mine, other = chat("700", title="mine"), chat("800", title="other")
    said(other, "secret words", state="failed", detail="other failure")
    said(mine, "own words", state="failed", detail="own failure")
    counted(mine, 5)
    counted(other, 4321)
    spent("chat", "onebot:10001:group:800", 987_654)
    owner_of(mine)
    client = logged_in("")
    client.force_login(User.objects.get(username="user-chat_owner"))
    text = page(client, "/admin/?more=1")
    assert "own failure" in text
    for word in ("other failure", "4,321", "4321", "987,654", "By person", "By model"):
        assert word not in text


@pytest.mark.django_db
def test_each_currency_has_a_chart_of_its_own_and_empty_charts_are_left_out():
    spent("total", "", 10, currency="CNY", cost=5 * 10**8)
    spent("total", "", 10, currency="USD", cost=10**8)
    viewer = find_viewer(User.objects.create_superuser("root"))
    with translation.override("en"):
        charts = list_charts(load_hours(viewer), load_days(viewer))
    titles = [chart["title"] for chart in charts]
    assert titles == ["Messages", "Tokens", "Cost (CNY)", "Cost (USD)"]
    assert charts[2]["body"].rpartition("<tr>")[2].count('data-value="0.5"') == 1
