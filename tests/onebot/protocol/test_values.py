"""Ids and numbers stay exact whatever JSON type a client gives them."""

import json
from decimal import Decimal

import pytest

from onebot.protocol.segments import (
    json_text,
    parse_id,
    parse_message_id,
    to_plain_json,
    value_text,
)
from tools.text.storable import make_storable


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (10001, "10001"),
        (-5, "-5"),
        (3127306807.0, "3127306807"),
        (Decimal("3127306807.0"), "3127306807"),
        (Decimal("3.127306807e9"), "3127306807"),
        (Decimal("9007199254740993.0"), "9007199254740993"),
        (" 10001 ", "10001"),
        ("BAC-x_1", "BAC-x_1"),
        ("00123", "00123"),
        (2**63, "9223372036854775808"),
    ],
)
def test_an_id_is_exact_text(value, text):
    assert parse_id(value) == text


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        1.5,
        Decimal("1e-9"),
        float("nan"),
        float("inf"),
        Decimal("1e999999"),
        {},
        [],
        [1],
        "x" * 65,
        10**64,
        "a b",
        "a/b",
        "<b>",
        "１２",
    ],
)
def test_what_is_no_id_is_empty(value):
    assert parse_id(value) == ""


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, ""), ("0", ""), (-1, ""), ("-1", ""), (0.0, ""), (None, ""), (-5, "-5"), (7, "7")],
)
def test_a_message_id_that_stands_for_nothing_is_empty(value, text):
    assert parse_message_id(value) == text


def test_a_message_id_may_be_longer_than_other_ids():
    assert parse_message_id("m" * 128) == "m" * 128
    assert parse_message_id("m" * 129) == ""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ("a", "a"),
        (True, "true"),
        (116.0, "116"),
        (Decimal("39.904"), "39.904"),
        (Decimal("1e22"), "1" + "0" * 22),
        (Decimal("1e-7"), "0.0000001"),
        (1e-7, "0.0000001"),
        ({"a": [1.0, Decimal("2.0"), None]}, '{"a":[1,2,null]}'),
    ],
)
def test_a_value_as_text_is_no_float_and_not_scientific(value, text):
    assert value_text(value) == text


def test_plain_json_keeps_everything_but_the_type_of_numbers():
    value = {
        "id": Decimal("9007199254740993.0"),
        "list": [1.0, "1.0", True, None, {"x": Decimal("0.5")}],
    }
    plain = to_plain_json(value)
    assert plain == {"id": 9007199254740993, "list": [1, "1.0", True, None, {"x": 0.5}]}
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


def test_a_number_that_is_none_becomes_text_in_plain_json():
    assert json_text([float("nan"), Decimal("1e999999")]) == '["NaN","1E+999999"]'


def test_storable_text_has_no_nul_and_no_lone_surrogate_but_keeps_pairs():
    assert make_storable({"a\0": ["\ud800", "\ud83d\ude00", "é"]}) == {
        "a\ufffd": ["\ufffd", "😀", "é"]
    }
