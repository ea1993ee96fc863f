"""Events beyond the stored payloads: times, flags, and what is not what it says."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from onebot.protocol.events import HeartbeatEvent, MessageEvent, OtherEvent, parse_event, parse_time

MOMENT = datetime(2026, 11, 21, 2, 35, 33, tzinfo=UTC)


def message(**changes):
    event = {
        "post_type": "message",
        "message_type": "group",
        "self_id": 10001,
        "user_id": 20002,
        "group_id": 30003,
        "message": "hi",
    }
    return parse_event({**event, **changes})


@pytest.mark.parametrize(
    "value",
    [
        1795228533,
        "1795228533",
        1795228533.0,
        Decimal("1795228533.0"),
        1795228533000,
        "1795228533000",
    ],
)
def test_seconds_and_milliseconds_are_the_same_time(value):
    assert parse_time(value) == MOMENT


@pytest.mark.parametrize(
    "value",
    [
        0,
        -1,
        1790,
        978307199,
        4102444800,
        10**15,
        10**18,
        10**400,
        None,
        True,
        "",
        "now",
        "-1",
        "9" * 400,
        [],
        {},
        float("nan"),
    ],
)
def test_a_time_that_cannot_be_meant_is_none(value):
    assert parse_time(value) is None


def test_milliseconds_keep_their_fraction():
    assert parse_time(1795228533250) == MOMENT.replace(microsecond=250_000)


@pytest.mark.parametrize(
    ("sender", "name"),
    [
        ({"card": "Anna", "nickname": "Ann"}, "Anna"),
        ({"card": " ", "nickname": " Ann "}, "Ann"),
        ({"card": None, "nickname": "Ann"}, "Ann"),
        ({"card": "\u202e" * 500, "nickname": "\u2067Ann\u2069\n"}, "Ann"),
        ({"card": "\u05d0" * 500}, "\u05d0" * 500),
        ({"nickname": 42}, "42"),
        ({"nickname": {"a": 1}}, ""),
        ({}, ""),
        (None, ""),
        ("Ann", ""),
    ],
)
def test_the_senders_name_is_the_card_or_the_nickname(sender, name):
    assert message(sender=sender).sender_name == name


def test_a_groups_name_turns_nothing_around_that_stands_beside_it():
    assert message(group_name="\u202eTest\u2028 1").group_name == "Test 1"


@pytest.mark.parametrize(
    "field",
    [
        "self_id",
        "user_id",
        "sender",
        "message_id",
        "time",
        "sub_type",
        "message",
        "anonymous",
        "group_name",
    ],
)
@pytest.mark.parametrize("value", [None, True, 1.5, "x", [], {}, [{}]])
def test_no_odd_field_makes_a_group_message_unreadable(field, value):
    event = message(**{field: value})
    assert isinstance(event, MessageEvent)
    assert event.group_id == "30003"


def test_a_sender_without_id_is_not_the_bot_of_an_unknown_account():
    assert message(self_id=None, user_id=None).is_self is False


@pytest.mark.parametrize("group_id", [None, "", {}, True, "x" * 65])
def test_a_group_message_without_a_usable_group_is_an_other_event(group_id):
    event = message(group_id=group_id)
    assert isinstance(event, OtherEvent)
    assert (event.post_type, event.detail_type) == ("message", "group")


def test_a_temporary_session_without_a_group_number_has_none():
    assert (
        message(
            message_type="private", sub_type="group", group_id=0, sender={"group_id": "0"}
        ).temp_group_id
        == ""
    )


@pytest.mark.parametrize(
    ("online", "seen"),
    [(True, True), (1, True), (False, False), (0, False), (None, None), ("yes", None), ([], None)],
)
def test_a_heartbeat_tells_whether_the_account_is_online(online, seen):
    beat = parse_event(
        {"post_type": "meta_event", "meta_event_type": "heartbeat", "status": {"online": online}}
    )
    assert isinstance(beat, HeartbeatEvent)
    assert beat.online is seen
