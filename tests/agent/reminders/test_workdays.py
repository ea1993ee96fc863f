"""Which days people work, as a file says."""

from datetime import date

import pytest

from agent.reminders.workdays import load_calendar, parse_calendar

WORKED = ["01-04", "02-14", "02-28", "05-09", "09-20", "10-10"]


def test_holidays_are_off_and_the_days_in_their_place_are_worked():
    calendar = parse_calendar(
        "# mine\noff 2026-10-01..2026-10-02 # National Day\nwork 2026-10-10\n"
    )
    days = [date(2026, 9, 30), date(2026, 10, 1), date(2026, 10, 2), date(2026, 10, 3)]
    assert [calendar.is_working(day) for day in days] == [True, False, False, False]
    assert calendar.is_working(date(2026, 10, 10))
    assert not calendar.is_working(date(2026, 10, 11))


def test_the_calendar_that_is_shipped_is_that_of_china():
    china = load_calendar()
    worked = [day for day in sorted(china.worked) if day.year == 2026]
    assert [f"{day:%m-%d}" for day in worked] == WORKED
    assert sum(day.year == 2026 for day in china.off) == 33


def test_a_file_of_ones_own_replaces_it(tmp_path):
    own = tmp_path / "workdays.txt"
    assert load_calendar(own) == load_calendar()
    own.write_text("\ufeffwork 2026-10-03\r\n", encoding="utf-8")
    assert load_calendar(own).is_working(date(2026, 10, 3))
    assert load_calendar(own).is_working(date(2026, 10, 1))


@pytest.mark.parametrize(
    "line",
    ["2026-10-01", "holiday 2026-10-01", "off 2026-02-30", "off 2026-10-02..2026-10-01", "off"],
)
def test_a_line_that_is_wrong_is_named(line):
    with pytest.raises(ValueError, match=line.partition("..")[0]):
        parse_calendar(f"off 2026-01-01\n{line}  # oh\n")
