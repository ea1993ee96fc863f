"""A flood of lines is one line a minute, and what was held back is told."""

import logging

import pytest

from tools import error_boundary
from tools.error_boundary import REMEMBERED, LogLimit


@pytest.fixture
def logger(request):
    logger = logging.getLogger(f"flood.{request.node.name}")
    yield logger
    logger.filters.clear()


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands, and no timer: ``clock(seconds)`` moves it on."""
    now = [1000.0]
    monkeypatch.setattr("tools.error_boundary.time.monotonic", lambda: now[0])
    monkeypatch.setattr(LogLimit, "_look_later", lambda self: None)
    return lambda seconds: now.__setitem__(0, now[0] + seconds)


def test_what_was_held_back_is_told_with_the_newest_line_once_the_minute_is_over(
    logger, caplog, clock
):
    limit = LogLimit(logger)
    for number in range(1_899):
        logger.warning("Message %s is refused", number)
    assert caplog.messages == ["Message 0 is refused"]
    limit.tell()
    assert len(caplog.messages) == 1
    clock(60)
    limit.tell()
    assert caplog.messages[1:] == ["Message 1898 is refused (1897 more like it before)"]


def test_a_flood_that_goes_on_is_a_line_a_minute(logger, caplog, clock):
    limit = LogLimit(logger)
    for _ in range(600):
        logger.warning("again")
        clock(1)
        limit.tell()
    assert 10 <= len(caplog.messages) <= 11


def test_the_end_of_a_flood_is_told_without_anything_following(logger, caplog, monkeypatch):
    monkeypatch.setattr(error_boundary, "QUIET_SECONDS", 0.01)
    limit = LogLimit(logger)
    logger.warning("flood")
    logger.warning("flood")
    timer = limit._timer
    assert timer is not None
    timer.join(5)
    assert caplog.messages == ["flood", "flood"]


def test_kinds_are_told_apart(logger, caplog, clock):
    caplog.set_level(logging.INFO)
    limit = LogLimit(logger, named=1)
    logger.warning("tool %s raised %s", "a", 1)
    logger.warning("tool %s raised %s", "a", 2)
    logger.warning("tool %s raised %s", "b", 3)
    for account in (1, 1, 2):
        logger.info("Account %s connected", account)
    limit.warn("peer", "Refused %s", 1)
    limit.warn("peer", "Refused %s", 2)
    limit.warn("another", "Refused %s", 3)
    assert caplog.messages == [
        "tool a raised 1",
        "tool b raised 3",
        "Account 1 connected",
        "Account 2 connected",
        "Refused 1",
        "Refused 3",
    ]


def test_problems_of_different_types_are_different_kinds(logger, caplog, clock):
    LogLimit(logger)
    for error in (KeyError("a"), KeyError("b"), ValueError("c")):
        logger.error("It failed", exc_info=error)
    assert [record.exc_info[1].args for record in caplog.records] == [("a",), ("c",)]


def test_nothing_is_forgotten_untold_when_there_are_too_many_kinds(logger, caplog, clock):
    limit = LogLimit(logger)
    for number in range(REMEMBERED + 1):
        limit.warn(number, "kind %d", number)
        limit.warn(number, "kind %d", number)
    assert caplog.messages.count("kind 5") == 2
    assert len(limit._said) <= REMEMBERED
