"""Days of an installation whose time zone is changed: none begins twice, none is lost."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from tools.local_time import Clock, current_day, find_zone, page_clock, present_clock, set_clock


@pytest.fixture(autouse=True)
def _machine(settings):
    settings.MACHINE_TIME_ZONE = "UTC"
    yield
    set_clock(Clock())


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_a_zone_ahead_counts_the_day_before_with_the_day_of_the_change_until_midnight_there():
    clock = Clock().move_to("Asia/Shanghai", at("2026-11-23T20:00"))
    assert clock.day_at(at("2026-11-23T20:00")) == "2026-11-24"
    assert clock.first_of("2026-11-24") == "2026-11-23"
    assert clock.day_at(at("2026-11-24T15:59")) == "2026-11-24"
    assert clock.day_at(at("2026-11-24T16:00")) == "2026-11-25"
    assert clock.first_of("2026-11-25") == "2026-11-25"


def test_a_zone_behind_begins_no_day_that_is_over():
    shanghai = Clock("Asia/Shanghai")
    clock = shanghai.move_to("", at("2026-11-23T20:00"))
    assert shanghai.day_at(at("2026-11-23T20:00")) == "2026-11-24"
    days = [clock.day_at(at(f"2026-11-{day}T20:00")) for day in (23, 24, 25)]
    assert days == ["2026-11-24", "2026-11-24", "2026-11-25"]
    assert clock.first_of("2026-11-24") == "2026-11-24"


def test_to_and_fro_within_a_day_begins_nothing_anew():
    clock, now = Clock(), at("2026-10-31T20:00")
    for zone in ("Asia/Shanghai", "America/New_York", "Pacific/Kiritimati", ""):
        clock = clock.move_to(zone, now)
    assert clock.first_of(clock.day_at(now)) == "2026-10-31"
    assert clock.day_at(at("2026-11-02T00:00")) == "2026-11-02"


def test_a_change_within_the_same_day_changes_no_day():
    clock = Clock().move_to("Asia/Shanghai", at("2026-11-23T02:00"))
    assert (clock.changed_on, clock.begun_on) == ("2026-11-23", "2026-11-23")


def test_the_zone_counts_in_the_process_and_pages_keep_theirs():
    now = timezone.now()
    set_clock(Clock("Pacific/Kiritimati"))
    assert timezone.localtime(now).utcoffset() == now.astimezone(find_zone()).utcoffset()
    assert current_day() == timezone.localtime(now).date().isoformat()
    with page_clock(Clock("Pacific/Niue")):
        assert str(timezone.get_current_timezone()) == present_clock().name == "Pacific/Niue"
        assert current_day() < now.astimezone(ZoneInfo("Pacific/Kiritimati")).date().isoformat()
    assert str(timezone.get_current_timezone()) == "Pacific/Kiritimati"


def test_a_zone_that_this_machine_does_not_know_is_the_machines():
    clock = Clock("Mars/Olympus")
    assert (clock.name, clock.is_chosen) == ("UTC", False)
    assert str(find_zone("Mars/Olympus")) == str(timezone.get_current_timezone())
