"""The checks of the page: in threads, within their time, one lot at a time."""

import threading
from collections.abc import Iterator

from frostproject.cockpit.check_desk import FRESH_SECONDS, CheckDesk
from frostproject.doctor.checks import Check
from tools.findings import Finding, fail_finding, ok_finding


def findings(*found: Finding) -> Iterator[Finding]:
    yield from found


def breaks(_url: str) -> Iterator[Finding]:
    yield ok_finding("first")
    raise RuntimeError("a secret")


def test_what_is_found_is_kept_and_not_looked_for_again_while_it_is_fresh():
    now, asked = [0.0], list[str]()
    desk = CheckDesk(lambda: now[0])

    def find(url: str) -> Iterator[Finding]:
        asked.append(url)
        return findings(fail_finding("bad", "mend"))

    check = Check("a", "A", find)
    lot = desk.start([check], "http://here", asks_others=False)
    assert lot.done.wait(10)
    assert (lot.worst, [one.text for one in lot.parts[0].findings or ()]) == ("FAIL", ["bad"])
    assert desk.start([check], "http://here", asks_others=False) is lot
    now[0] = FRESH_SECONDS + 1
    again = desk.start([check], "http://here", asks_others=False)
    assert again.done.wait(10)
    assert asked == ["http://here"] * 2


def test_a_check_that_breaks_says_so_without_its_words_and_the_rest_goes_on():
    desk = CheckDesk()
    checks = [Check("a", "A", breaks), Check("b", "B", lambda _url: findings(ok_finding("last")))]
    lot = desk.start(checks, "", asks_others=False)
    assert lot.done.wait(10)
    texts = [one.text for part in lot.parts for one in part.findings or ()]
    assert (texts[0], texts[-1], len(texts)) == ("first", "last", 3)
    assert "secret" not in "".join(texts)


def test_a_check_past_its_time_is_left_and_no_second_lot_begins_beside_it():
    end = threading.Event()
    desk = CheckDesk()

    def hangs(_url: str) -> Iterator[Finding]:
        end.wait(30)
        yield ok_finding("too late")

    lot = desk.start([Check("a", "A", hangs, seconds=0.01)], "", asks_others=True)
    assert lot.done.wait(10)
    assert lot.worst == "WARN"
    other = desk.start([Check("b", "B", breaks)], "", asks_others=False)
    assert other.parts == []
    end.set()


def test_while_a_lot_is_under_way_it_is_the_answer_to_all_who_ask():
    end = threading.Event()
    desk = CheckDesk()
    check = Check("a", "A", lambda _url: (end.wait(30) and findings()) or findings())
    first = desk.start([check], "", asks_others=False)
    assert desk.start([check], "", asks_others=False) is first
    assert first.is_running
    end.set()
    assert first.done.wait(10)
