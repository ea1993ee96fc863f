"""Rules of repeats: which are taken, when they are due, and how they are said."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.utils import translation

from agent.reminders.repeats import check_repeat, count_missed, least_gap, next_due, say_repeat
from agent.reminders.unclear import Unclear, UnclearTime
from agent.reminders.workdays import WorkCalendar, load_calendar

PLAIN = WorkCalendar()
BERLIN = ZoneInfo("Europe/Berlin")
NEW_YORK = ZoneInfo("America/New_York")
SHANGHAI = ZoneInfo("Asia/Shanghai")
WORKING_DAYS = "FREQ=DAILY;BYDAY=MO,TU,WE,TH,FR"


def dues(rule, first, count, zone=SHANGHAI, calendar=PLAIN):
    """The next instants, as the clock of ``zone`` shows them."""
    start = datetime.fromisoformat(first).replace(tzinfo=zone)
    after = start - timedelta(seconds=1)
    found: list[str] = []
    while len(found) < count and (due := next_due(rule, start, after, zone, calendar)):
        found.append(f"{due.astimezone(zone):%Y-%m-%d %H:%M}")
        after = due
    return found


def reason(rule):
    with pytest.raises(UnclearTime) as caught:
        check_repeat(rule)
    return caught.value.reason


# --- Which are taken ------------------------------------------------------------


def test_a_rule_is_kept_in_one_form():
    written = "rrule:INTERVAL=01;freq=weekly;byday=FR,mo;wkst=MO;count=+5;"
    assert check_repeat(written) == "FREQ=WEEKLY;BYDAY=MO,FR;COUNT=5"
    assert check_repeat("FREQ=MONTHLY;BYDAY=-1FR,+1MO") == "FREQ=MONTHLY;BYDAY=-1FR,1MO"
    assert check_repeat("FREQ=DAILY;UNTIL=20300101T000000Z;BYHOUR=09") == (
        "FREQ=DAILY;BYHOUR=9;UNTIL=20300101T000000Z"
    )


def test_what_is_no_rule_is_refused_with_its_reason():
    nonsense = ("", "x", "FREQ", "FREQ=", "FREQ=NEVER", "BYDAY=MO", "FREQ=DAILY;FREQ=DAILY")
    assert {reason(rule) for rule in nonsense} == {Unclear.RULE}
    parts = (
        "X=1",
        "COUNT=0",
        "COUNT=-1",
        "INTERVAL=0",
        "INTERVAL=999999999",
        "BYHOUR=24",
        "BYMONTHDAY=0",
        "BYMONTHDAY=32",
        "BYDAY=XX",
        "BYDAY=1MO",
        "BYDAY=",
        "BYHOUR=1,,2",
        "BYSETPOS=1",
        "BYWEEKNO=1",
        "UNTIL=tomorrow",
        "UNTIL=20261301",
        "DTSTART=20260101",
        "EXDATE=20260101",
    )
    assert {reason(f"FREQ=DAILY;{part}") for part in parts} == {Unclear.RULE_PART}
    assert reason("FREQ=DAILY;COUNT=1;UNTIL=20300101") == Unclear.RULE
    assert reason("FREQ=DAILY;BYHOUR=" + "1," * 30_000) == Unclear.TOO_LONG


def test_a_rule_of_days_names_no_more_times_than_can_be_made():
    hours, minutes = (",".join(map(str, range(count))) for count in (24, 60))
    rule = f"FREQ=YEARLY;BYHOUR={hours};BYMINUTE={minutes}"
    assert reason(rule) == Unclear.RULE_PART
    assert check_repeat("FREQ=DAILY;BYHOUR=8,20;BYMINUTE=0,30")


def test_nothing_repeats_more_often_than_every_ten_seconds():
    for rule in ("FREQ=SECONDLY", "FREQ=SECONDLY;INTERVAL=9", "FREQ=MINUTELY;BYSECOND=0,5"):
        assert reason(rule) == Unclear.TOO_OFTEN
    assert check_repeat("FREQ=SECONDLY;INTERVAL=10") == "FREQ=SECONDLY;INTERVAL=10"


@pytest.mark.parametrize(
    ("rule", "seconds"),
    [
        ("FREQ=MINUTELY", 60),
        ("FREQ=MINUTELY;INTERVAL=7", 420),
        ("FREQ=HOURLY;BYMINUTE=0,10", 600),
        ("FREQ=MINUTELY;BYMINUTE=0,30", 1800),
        ("FREQ=DAILY;BYHOUR=9,21;BYMINUTE=0,5", 300),
        ("FREQ=DAILY;BYHOUR=0,23;BYMINUTE=0,59", 60),
        ("FREQ=YEARLY", 86_400),
    ],
)
def test_the_time_between_two_instants_is_known_without_looking_for_them(rule, seconds):
    first = datetime(2026, 1, 1, 9, 0, tzinfo=UTC)
    assert least_gap(rule, first, ZoneInfo("UTC")).total_seconds() == seconds


# --- When they are due ----------------------------------------------------------


def test_a_time_that_does_not_exist_is_due_at_the_next_that_does():
    days = dues("FREQ=DAILY", "2027-03-27T02:30", 3, BERLIN)
    assert days == ["2027-03-27 02:30", "2027-03-28 03:00", "2027-03-29 02:30"]
    hour = dues("FREQ=MINUTELY;INTERVAL=30", "2027-03-28T01:30", 3, BERLIN)
    assert hour == ["2027-03-28 01:30", "2027-03-28 03:00", "2027-03-28 03:30"]


def test_a_time_that_comes_twice_is_due_once():
    assert dues("FREQ=DAILY", "2026-10-31T01:30", 3, NEW_YORK) == [
        "2026-10-31 01:30",
        "2026-11-01 01:30",
        "2026-11-02 01:30",
    ]
    second = datetime(2026, 11, 1, 1, 10, fold=1, tzinfo=NEW_YORK)
    first = datetime(2026, 10, 31, 1, 30, tzinfo=NEW_YORK)
    due = next_due("FREQ=DAILY", first, second, NEW_YORK, PLAIN)
    assert due == datetime(2026, 11, 2, 6, 30, tzinfo=UTC)


def test_half_hours_of_zones_and_of_changes_count():
    lord_howe = ZoneInfo("Australia/Lord_Howe")
    assert dues("FREQ=DAILY", "2026-10-03T02:10", 2, lord_howe)[1] == "2026-10-04 02:30"
    kathmandu = ZoneInfo("Asia/Kathmandu")
    first = datetime(2026, 1, 1, 9, tzinfo=kathmandu)
    assert next_due("FREQ=DAILY", first, first, kathmandu, PLAIN) == datetime(
        2026, 1, 2, 3, 15, tzinfo=UTC
    )


def test_days_that_a_month_or_a_year_lacks_are_left_out():
    assert dues("FREQ=MONTHLY", "2027-01-31T09:00", 3) == [
        "2027-01-31 09:00",
        "2027-03-31 09:00",
        "2027-05-31 09:00",
    ]
    assert dues("FREQ=YEARLY", "2028-02-29T09:00", 2)[1] == "2032-02-29 09:00"
    assert dues("FREQ=MONTHLY;BYMONTHDAY=-1", "2027-01-31T09:00", 3)[1] == "2027-02-28 09:00"


def test_parts_of_the_rule_choose_as_the_standard_says():
    """Examples of RFC 5545, section 3.8.5.3."""
    assert dues("FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13", "1998-02-13T09:00", 2)[1][:7] == "1998-03"
    assert dues(
        "FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8", "1996-11-05T09:00", 3
    )[1:] == ["2000-11-07 09:00", "2004-11-02 09:00"]
    assert dues("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2", "1997-09-29T09:00", 3)[1:] == [
        "1997-10-30 09:00",
        "1997-11-27 09:00",
    ]
    assert dues("FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", "1997-05-12T09:00", 2)[1] == "1998-05-11 09:00"
    assert dues("FREQ=YEARLY;INTERVAL=3;BYYEARDAY=1,100,200", "1997-01-01T09:00", 4)[3] == (
        "2000-01-01 09:00"
    )
    weeks = "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU"
    assert dues(weeks, "1997-08-05T09:00", 9)[1:] == [
        "1997-08-10 09:00",
        "1997-08-19 09:00",
        "1997-08-24 09:00",
    ]
    assert dues(weeks + ";WKST=SU", "1997-08-05T09:00", 9)[1] == "1997-08-17 09:00"
    assert dues("FREQ=MINUTELY;INTERVAL=90;COUNT=4", "1997-09-02T09:00", 9)[3] == "1997-09-02 13:30"


def test_a_rule_ends_after_its_count_and_its_day():
    assert len(dues("FREQ=DAILY;COUNT=3", "2026-01-01T09:00", 9)) == 3
    assert len(dues("FREQ=DAILY;UNTIL=20260103", "2026-01-01T09:00", 9)) == 3
    assert len(dues("FREQ=DAILY;UNTIL=20260103T005959Z", "2026-01-01T09:00", 9)) == 2


def test_what_never_happens_has_no_next_instant():
    for rule in (
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=DAILY;BYMONTHDAY=1;BYSETPOS=2",
        "FREQ=DAILY;INTERVAL=99999999",
        "FREQ=YEARLY;INTERVAL=99999999",
    ):
        assert dues(check_repeat(rule), "2026-01-02T09:00", 9) in ([], ["2026-01-02 09:00"])


def test_a_million_instances_are_counted_without_being_made():
    first = datetime(2026, 1, 1, tzinfo=UTC)
    rule, zone = "FREQ=MINUTELY;COUNT=1000000", ZoneInfo("UTC")
    after = first + timedelta(minutes=999_998, seconds=30)
    last = first + timedelta(minutes=999_999)
    assert next_due(rule, first, after, zone, PLAIN) == last
    assert next_due(rule, first, last, zone, PLAIN) is None
    assert count_missed(rule, first, first, last + timedelta(days=99), zone, PLAIN) == 999_999


def test_missed_instants_are_counted():
    first = datetime(2026, 1, 1, 9, tzinfo=SHANGHAI)
    week = first + timedelta(days=7)
    assert count_missed("FREQ=DAILY", first, first, week, SHANGHAI, PLAIN) == 7
    assert count_missed("FREQ=DAILY", first, first, first, SHANGHAI, PLAIN) == 0
    assert count_missed("FREQ=DAILY;COUNT=3", first, first, week, SHANGHAI, PLAIN) == 2
    assert count_missed("FREQ=DAILY;UNTIL=20260103", first, first, week, SHANGHAI, PLAIN) == 2


# --- Working days ---------------------------------------------------------------


def test_each_day_of_monday_to_friday_means_working_days():
    china = load_calendar()
    spring = dues(WORKING_DAYS, "2026-02-12T09:00", 5, calendar=china)
    assert [day[5:10] for day in spring] == ["02-12", "02-13", "02-14", "02-24", "02-25"]
    week = dues("FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR", "2026-02-12T09:00", 3, calendar=china)
    assert [day[5:10] for day in week] == ["02-12", "02-13", "02-16"]


# --- How they are said ----------------------------------------------------------


def test_rules_are_said_in_the_language_of_the_reader():
    said = {
        "FREQ=DAILY": ("every day", "每天"),
        WORKING_DAYS: ("every working day", "每个工作日"),
        "FREQ=WEEKLY;BYDAY=MO": ("every Monday", "每周一"),
        "FREQ=WEEKLY;BYDAY=MO,TU": ("every Monday, Tuesday", "每周一、周二"),
        "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO": ("every 2 weeks on Monday", "每 2 周的周一"),
        "FREQ=MONTHLY;BYMONTHDAY=-1": ("every month on the last day", "每月的最后一天"),
        "FREQ=MONTHLY;BYMONTHDAY=15": ("every month on day 15", "每月的 15 日"),
        "FREQ=MONTHLY;BYDAY=-1FR": ("every month on the last Friday", "每月的最后一个周五"),
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29": ("every year on 02-29", "每年的02-29"),
        "FREQ=MINUTELY;INTERVAL=10;COUNT=3": ("every 10 minutes, 3 times", "每 10 分钟，共 3 次"),
        "FREQ=DAILY;UNTIL=20300101": ("every day, until 2030-01-01", "每天，到 2030-01-01 为止"),
        "FREQ=DAILY;BYHOUR=8,9": ("FREQ=DAILY;BYHOUR=8,9",) * 2,
    }
    for number, language in enumerate(("en", "zh-hans")):
        with translation.override(language):
            assert {rule: say_repeat(rule) for rule in said} == {
                rule: words[number] for rule, words in said.items()
            }
