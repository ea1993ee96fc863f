"""Checklist items 27 to 30 of connections: silence after heartbeats, by a clock of the test."""

from typing import Any

import pytest

from onebot.connections.client import BUSY, Socket
from onebot.connections.silence import SilenceWatch
from onebot.protocol.events import HeartbeatEvent, parse_event

ACCOUNT = "10001"


class Clock:
    """A loop whose time the test makes: one look a second."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.due = 100.0, 0.0
        self.calls: list[Any] = []
        monkeypatch.setattr("asyncio.get_running_loop", lambda: self)

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Any) -> Any:
        self.calls.append(call)
        return call

    def pass_by(self, seconds: int, *alive: Socket) -> None:
        for _ in range(seconds):
            self.now += 1
            for socket in alive:
                socket.silent_since = 0.0
            due, self.calls = self.calls, []
            for call in due:
                call()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def socket() -> Socket:
    async def send(message: dict[str, Any]) -> None:
        raise AssertionError(message)

    return Socket(send, "universal")


class Line:
    """The link of a socket."""

    received = 0

    def __init__(self) -> None:
        self.asked: list[bool] = []

    def require_pongs(self, are_required: bool) -> None:
        self.asked.append(are_required)


def watch() -> tuple[SilenceWatch, list[Socket]]:
    closed: list[Socket] = []
    return SilenceWatch(lambda _account, one: closed.append(one)), closed


def test_27_a_half_open_socket_is_told_after_three_intervals(clock: Clock):
    (watched, closed), one = watch(), socket()
    watched.hear(ACCOUNT, one, 30.0)
    clock.pass_by(90)
    assert closed == []
    clock.pass_by(2)
    assert closed == [one]
    clock.pass_by(200)
    assert closed == [one]


def test_28_a_changed_interval_counts(clock: Clock):
    (watched, closed), short, longer = watch(), socket(), socket()
    for one in (short, longer):
        watched.hear(ACCOUNT, one, 5.0)
    watched.hear(ACCOUNT, longer, 30.0)
    clock.pass_by(17)
    assert closed == [short]
    clock.pass_by(70)
    assert closed == [short]
    clock.pass_by(10)
    assert closed == [short, longer]


def test_28_less_than_fifteen_seconds_are_no_silence(clock: Clock):
    (watched, closed), one = watch(), socket()
    watched.hear(ACCOUNT, one, 0.1)
    clock.pass_by(15)
    assert closed == []
    clock.pass_by(2)
    assert closed == [one]


@pytest.mark.parametrize("intervals", [[], [0.0], [None], [5.0, 0.0]])
def test_29_without_heartbeats_to_come_no_silence_counts(
    clock: Clock, intervals: list[float | None]
):
    (watched, closed), one = watch(), socket()
    for interval in intervals:
        watched.hear(ACCOUNT, one, interval)
    clock.pass_by(700)
    assert closed == []


def test_30_heartbeats_alone_keep_a_socket_and_nothing_else_is_asked_of_it(clock: Clock):
    (watched, closed), one, quiet_api_socket = watch(), socket(), socket()
    one.link = line = Line()
    for _ in range(24):
        watched.hear(ACCOUNT, one, 5.0)
        clock.pass_by(5, one)
    assert closed == []
    assert line.asked == [False]
    watched.hear(ACCOUNT, one, 0.0)
    assert line.asked == [False, True]
    assert quiet_api_socket.is_open


def test_any_frame_is_life_and_so_is_one_that_waits_to_be_put_on_record(clock: Clock):
    (watched, closed), talking, waiting = watch(), socket(), socket()
    for one in (talking, waiting):
        watched.hear(ACCOUNT, one, 5.0)
    waiting.silent_since = BUSY
    clock.pass_by(60, talking)
    assert closed == []


def test_a_part_of_a_large_frame_is_life(clock: Clock):
    (watched, closed), one = watch(), socket()
    one.link = line = Line()
    watched.hear(ACCOUNT, one, 5.0)
    for _ in range(60):
        line.received += 100_000
        clock.pass_by(1)
    assert closed == []
    clock.pass_by(17)
    assert closed == [one]


def test_a_server_that_was_held_up_reads_first_what_came_meanwhile(clock: Clock):
    (watched, closed), one = watch(), socket()
    watched.hear(ACCOUNT, one, 5.0)
    clock.pass_by(5)
    clock.now += 60
    clock.pass_by(1)
    assert closed == []


def test_no_timer_runs_while_no_socket_is_watched(clock: Clock):
    (watched, _closed), one = watch(), socket()
    assert clock.calls == []
    watched.hear(ACCOUNT, one, 5.0)
    one.is_open = False
    clock.pass_by(1)
    assert clock.calls == []


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        (5000, 5.0),
        ("5000", 5.0),
        (2.5, 0.0025),
        (0, 0.0),
        (None, None),
        (True, None),
        (-1, None),
        (10**18, None),
        ("1" * 5000, None),
        ({"a": 1}, None),
        ("²", None),
    ],
)
def test_an_interval_is_believed_where_it_is_one(said: object, seconds: float | None):
    frame = {"post_type": "meta_event", "meta_event_type": "heartbeat", "interval": said}
    event = parse_event({**frame, "self_id": 10001})
    assert isinstance(event, HeartbeatEvent)
    assert event.interval == seconds
