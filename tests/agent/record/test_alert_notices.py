"""What routes are told of alerts, and when: once, and its end once."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone

from agent.domain.alerts import AlertLook, FoundAlert, RouteOutcome
from agent.models import AlertNotice, AlertRoute, Message
from agent.record.ground.outage import UNREACHABLE, DatabaseOutage
from agent.record.waiting import alert_notices
from agent.record.waiting.alert_notices import OutageNotices, claim_posts, note_post

pytestmark = pytest.mark.django_db

GONE = FoundAlert("disconnected", "10001", "10001 is gone.", "Start it.", True, "10001")
FULL = FoundAlert("disk", "", "Full.")


@dataclass
class Clock:
    """The time of day, which passes when it is told to."""

    now: datetime
    since: datetime

    def after(self, seconds: float, *alerts: FoundAlert, **look: Any) -> list[Any]:
        """What is sent at the look after so many seconds."""
        self.now += timedelta(seconds=seconds)
        found = AlertLook(alerts, **look)
        return claim_posts(found, self.since)

    def told(self, seconds: float, *alerts: FoundAlert) -> list[str]:
        return [str(one.message.state) for one in self.after(seconds, *alerts)]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    start = datetime(2026, 11, 29, 12, tzinfo=timezone.get_default_timezone())
    made = Clock(start, start)
    fake = SimpleNamespace(now=lambda: made.now, localtime=timezone.localtime)
    monkeypatch.setattr(alert_notices, "timezone", fake)
    return made


@pytest.fixture
def route() -> AlertRoute:
    return AlertRoute.objects.create(name="hook")


def test_an_alert_is_told_once_after_it_has_held_and_so_is_its_end(clock: Clock, route: AlertRoute):
    steps = [clock.told(seconds, GONE) for seconds in (0, 10, 10, 10, 10, 3600)]
    assert steps == [[], [], [], ["firing"], [], []]
    assert [clock.told(10) for _ in range(5)] == [[], [], [], ["resolved"], []]
    assert AlertNotice.objects.filter(told_at=None).exists()
    clock.told(3601)
    assert not AlertNotice.objects.exists()


def test_what_did_not_hold_is_not_told_and_what_comes_back_did_not_end(
    clock: Clock, route: AlertRoute
):
    for seconds in (0, 10, 10):
        assert clock.told(seconds, GONE) == []
    assert clock.told(5) == []
    assert [clock.told(10, GONE) for _ in range(4)] == [[], [], [], ["firing"]]
    assert [clock.told(10), clock.told(10), clock.told(5, GONE)] == [[], [], []]
    assert [clock.told(10), clock.told(10), clock.told(10)] == [[], [], []]


def test_what_comes_and_goes_is_told_four_times_an_hour_at_most(clock: Clock, route: AlertRoute):
    told = []
    for _ in range(20):
        for seconds, alerts in ((30, [GONE]), (30, [GONE]), (30, []), (30, [])):
            told += clock.told(seconds, *alerts)
    assert told == ["firing", "resolved", "firing", "resolved"]
    assert [clock.told(3600, GONE), clock.told(30, GONE)] == [[], ["firing"]]


def test_what_another_process_has_claimed_is_not_sent_again(clock: Clock, route: AlertRoute):
    clock.told(0, GONE)
    assert clock.told(30, GONE) == ["firing"]
    assert clock.told(0, GONE) == []
    route.refresh_from_db()
    assert route.outcome == "unknown"


def test_how_long_it_held_before_this_process_looked_does_not_count(
    clock: Clock, route: AlertRoute
):
    clock.told(0, GONE)
    clock.since = clock.now + timedelta(hours=1)
    assert clock.told(3600, GONE) == []
    assert clock.told(30, GONE) == ["firing"]


def test_in_quiet_hours_nothing_is_told_and_what_still_holds_then_is(
    clock: Clock, route: AlertRoute
):
    AlertRoute.objects.update(quiet_hours="11:00-13:00")
    clock.told(0, GONE, FULL)
    assert clock.told(40, GONE, FULL) == []
    clock.told(60, GONE)
    assert [one.message.alert.kind for one in clock.after(3600, GONE)] == ["disconnected"]


def test_a_route_is_told_of_the_kinds_that_were_chosen(clock: Clock):
    AlertRoute.objects.create(name="disk", alerts=["disk"])
    AlertRoute.objects.create(name="off", enabled=False)
    clock.told(0, GONE, FULL)
    (post,) = clock.after(30, GONE, FULL)
    assert (post.route.name, post.message.alert) == ("disk", FULL)


def test_what_surely_did_not_arrive_is_told_again_later_and_anything_else_is_not(
    clock: Clock, route: AlertRoute
):
    clock.told(0, GONE, FULL)
    first, second = clock.after(30, GONE, FULL)
    for post, outcome in ((first, RouteOutcome.NO_CONNECTION), (second, RouteOutcome.SLOW)):
        post.settle(outcome)
        note_post(post, outcome)
    assert clock.told(60, GONE, FULL) == []
    (again,) = clock.after(300, GONE, FULL)
    assert again.message.alert == first.message.alert


def said(account: str) -> set[str]:
    rows = Message.objects.filter(session__account=account, reason="owner_note")
    return set(rows.values_list("sender_id", flat=True))


def test_owners_are_told_through_another_account_once_theirs_is_gone(clock: Clock):
    route = AlertRoute.objects.create(name="us", kind="owners")
    owners = {"10001": {"7", "8"}, "10002": {"8", "9"}, "10003": set[str]()}
    look = {"owners": owners, "speaking": ("10003", "10002")}
    clock.after(0, GONE, **look)
    assert clock.after(30, GONE, **look) == []
    assert (said("10002"), said("10003"), said("10001")) == ({"8"}, {"7"}, set())
    assert all("10001 is gone." in one.text for one in Message.objects.all())
    route.refresh_from_db()
    assert route.outcome == "told"
    count = Message.objects.count()
    clock.after(30, GONE, **look)
    assert Message.objects.count() == count


def test_owners_are_told_once_somebody_can_tell_them(clock: Clock):
    route = AlertRoute.objects.create(name="us", kind="owners")
    owners = {"10001": {"7"}}
    clock.after(0, GONE, owners=owners)
    clock.after(30, GONE, owners=owners)
    route.refresh_from_db()
    assert (route.outcome, Message.objects.exists()) == ("nobody", False)
    clock.after(60, GONE, owners=owners, speaking=("10002",))
    assert said("10002") == {"7"}


# --- While nothing can be put down ----------------------------------------------


def test_an_outage_is_told_once_and_so_is_its_end_without_a_row(clock: Clock, route: AlertRoute):
    routes = [route, AlertRoute(pk=8, kind="owners"), AlertRoute(pk=9, alerts=["disk"])]
    outage, notices = DatabaseOutage(clock.now, UNREACHABLE, 3), OutageNotices(routes)
    told = []
    for seconds, found in ((10, outage), (20, outage), (9, outage), (60, None), (30, None)):
        clock.now += timedelta(seconds=seconds)
        told.append([str(one.message.state) for one in notices.find_posts(found)])
    assert told == [[], ["firing"], [], [], ["resolved"]]
    assert not AlertNotice.objects.exists()


def test_an_outage_that_surely_nobody_heard_of_is_told_again(clock: Clock, route: AlertRoute):
    outage, notices = DatabaseOutage(clock.now, UNREACHABLE, 3), OutageNotices([route])
    clock.now += timedelta(seconds=30)
    (post,) = notices.find_posts(outage)
    post.settle(RouteOutcome.NO_CONNECTION)
    assert not list(notices.find_posts(outage))
    clock.now += timedelta(minutes=6)
    assert list(notices.find_posts(outage))
