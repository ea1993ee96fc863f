"""Recorded values as text."""

import pytest
from django.utils import translation

from tools.text.readable import (
    TEXT_LIMIT,
    arguments_text,
    format_readable,
    json_block,
    shorten_text,
)


def test_json_is_indented_with_chinese_as_it_is_and_real_line_breaks():
    assert format_readable({"文": ["一\n二", 1.5, None, True, {}, []]}) == (
        '{\n  "文": [\n    "一\n    二",\n    1.5,\n    null,\n    true,\n    {},\n    []\n  ]\n}'
    )


def test_quotes_and_backslashes_stay_escaped():
    assert format_readable('a"b\\n') == '"a\\"b\\\\n"'


def test_a_long_text_is_cut_and_says_by_how_much():
    with translation.override("en"):
        assert shorten_text("x" * (TEXT_LIMIT + 1_234)).endswith("x… (1,234 more characters)")
    assert shorten_text("x" * TEXT_LIMIT) == "x" * TEXT_LIMIT


def test_half_a_character_does_not_break_a_page():
    assert format_readable("\ud83d").encode() == b'"?"'


def test_deep_nesting_ends_in_an_ellipsis():
    value: list[object] = []
    for _ in range(500):
        value = [value]
    assert "…" in format_readable(value)


@pytest.mark.parametrize("nothing", [None, "", [], {}])
def test_nothing_is_a_dash_and_zero_is_not_nothing(nothing: object):
    assert json_block(nothing) == "-"
    assert "0" in json_block(0)


@pytest.mark.parametrize(
    ("recorded", "shown"),
    [('{"a": 1}', '{\n  "a": 1\n}'), ({"a": 1}, '{\n  "a": 1\n}'), ("{broken", "{broken")],
)
def test_arguments_are_read_out_of_the_models_text(recorded: object, shown: str):
    assert arguments_text(recorded) == shown
