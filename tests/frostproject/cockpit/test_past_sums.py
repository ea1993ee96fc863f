"""Sums of days that are over are remembered, and are true all the same."""

import random
from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Sum
from django.test import RequestFactory
from django.utils import timezone

from agent.domain.budgets import SpendKind
from agent.domain.states import MessageState
from agent.domain.types import Delivery
from agent.llm.spending import CallCost, Spend, SpendScope
from agent.models import ActivitySum, SpendSum
from agent.privacy.person import Person
from agent.privacy.phases import erase_remains
from agent.record.runs.replies import correct_send_result
from agent.record.sums.activity import count_messages, prune_activity
from agent.record.sums.spendings import DatedSpend, add_spending, prune_spendings
from frostproject.cockpit.dashboard import load_days
from frostproject.cockpit.spending import SpendingPage
from frostproject.cockpit.viewer import find_viewer
from tests.admin.record import answered, chat, said
from tools.live_rows import ConfigVersion, LiveKind
from tools.local_time import today

pytestmark = pytest.mark.django_db
COST = CallCost(7, "one", 100, 40, 20, 5, 1_500, "CNY")


def days_ago(count: int) -> str:
    return (today() - timedelta(days=count)).isoformat()


def root() -> User:
    return User.objects.filter(username="root").first() or User.objects.create_superuser("root")


def counts(name: str) -> list[int]:
    """Of the last five days, as the overview shows them."""
    return [day.counts.get(name, 0) for day in load_days(find_viewer(root()))[-5:]]


def ranked(query: str = "since=30d") -> list[tuple[str, int]]:
    """The chats on the page of spending, with what was spent on each."""
    request = RequestFactory().get(f"/admin/spending/?{query}")
    request.user = root()
    found = SpendingPage(request, admin.site).rank([SpendKind.CHAT])["chat"]
    return [(one.subject, one.amount) for one in found]


def test_an_outcome_that_comes_days_later_is_counted_where_it_belongs():
    at = timezone.now() - timedelta(days=3)
    sent = answered(said(chat()), state="sent", echo="late")
    activity = type(sent).objects.filter(pk=sent.pk)
    count_messages(activity, MessageState.UNKNOWN)
    ActivitySum.objects.update(day=days_ago(3))
    activity.update(state="unknown", settled_at=at)
    ActivitySum.objects.filter(hour__gte=0).update(hour=timezone.localtime(at).hour)
    assert counts("unknown") == [0, 1, 0, 0, 0]
    assert correct_send_result("10001", "late", Delivery(MessageState.DELIVERED, "77"))
    assert (counts("unknown"), counts("sent")) == ([0] * 5, [0, 0, 0, 0, 1])


def test_what_is_over_is_asked_for_once():
    ActivitySum.objects.create(day=days_ago(3), session=chat(), received=7)
    assert counts("received") == [0, 7, 0, 0, 0]
    ActivitySum.objects.update(received=8)  # behind the server's back
    assert counts("received") == [0, 7, 0, 0, 0]


def test_a_call_that_is_written_days_later_is_ranked():
    scope = SpendScope("onebot:10001", "onebot:10001:group:1", "", "default", "")
    add_spending([DatedSpend(days_ago(3), Spend(COST, scope))])
    assert ranked() == [("onebot:10001:group:1", 1_500)]
    add_spending([DatedSpend(days_ago(day), Spend(COST, scope)) for day in (0, 3)])
    assert ranked() == [("onebot:10001:group:1", 4_500)]


def test_who_was_erased_is_ranked_no_more():
    for peer in ("20001", "20002"):
        subject = f"onebot:10001:private:{peer}"
        SpendSum.objects.create(
            day=days_ago(3), kind="chat", subject=subject, currency="CNY", cost_nano=5
        )
    SpendSum.objects.create(day=days_ago(3), kind="total", currency="CNY", cost_nano=10)
    assert len(ranked()) == 2
    erase_remains(Person("20001"), [], 0)
    assert ranked() == [("onebot:10001:private:20002", 5)]


@pytest.mark.parametrize("query", ["since=30d", "since=7d&by=tokens", "since=30d&by=USD"])
def test_ranks_are_those_of_all_days_together(query: str):
    dice = random.Random(query)
    for day, peer, currency in {
        (dice.randrange(20), dice.randrange(30), dice.choice(["CNY", "USD"])) for _ in range(300)
    }:
        numbers = {"cost_nano": dice.randrange(5), "input_tokens": dice.randrange(9)}
        for kind, subject in (("chat", f"onebot:1:group:{peer:02}"), ("total", "")):
            key: dict[str, Any] = {
                "day": days_ago(day),
                "kind": kind,
                "subject": subject,
                "currency": currency,
            }
            known, _ = SpendSum.objects.get_or_create(**key)
            known.cost_nano += numbers["cost_nano"]
            known.input_tokens += numbers["input_tokens"]
            known.save()
    rows = SpendSum.objects.filter(kind="chat").order_by()
    if "7d" in query:
        rows = rows.filter(day__gte=days_ago(6))
    column = "input_tokens" if "tokens" in query else "cost_nano"
    currency = "USD" if "USD" in query else "CNY"
    chosen = rows if "tokens" in query else rows.filter(currency=currency)
    sums = dict(chosen.values_list("subject").annotate(all=Sum(column)))
    tokens = dict(rows.values_list("subject").annotate(all=Sum("input_tokens")))
    order = sorted(tokens, key=lambda one: (-sums.get(one, 0), -tokens[one], one))
    for _ in range(2):  # the second time the past is remembered
        wanted = f"{query}&by={currency}" if "by=" not in query else query
        assert ranked(wanted) == [(one, sums.get(one, 0)) for one in order[:9]]


def test_what_is_too_old_and_erased_is_remembered_no_more():
    SpendSum.objects.create(day="2020-01-01", kind="total", subject="", currency="CNY")
    ActivitySum.objects.create(day="2020-01-01", hour=3, session=chat("30001"))
    versions = [ConfigVersion.current(LiveKind.PAST_SUMS)]
    for prune in (
        lambda: prune_spendings("2021-01-01"),
        lambda: prune_activity(*["2021-01-01"] * 2),
    ):
        assert (prune(), prune()) == (1, 0)
        versions.append(ConfigVersion.current(LiveKind.PAST_SUMS))
    assert versions == sorted(set(versions))
