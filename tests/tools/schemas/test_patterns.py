"""Patterns are searched for as JSON Schema says, by a matcher that reads a text once."""

import pytest

from tools.schemas.patterns import PatternRefused, compile_pattern, search_pattern


@pytest.mark.parametrize(
    ("pattern", "text", "is_found"),
    [
        ("b", "abc", True),  # anywhere
        ("^b", "abc", False),
        ("^abc$", "abc\n", False),
        ("^a.c$", "a\nc", False),
        ("^a.c$", "a北c", True),
        ("", "", True),
        (r"^[\s\S]*$", "a\n北", True),
        (r"^\u4e00$", "一", True),
        (r"^[\u4e00-\u9fff]+$", "北京", True),
        (r"^\u{1F600}$", "😀", True),
        (r"^\U0001F600$", "😀", True),
        (r"^\\u4e00$", r"\u4e00", True),
        (r"^\x41\t\/\-$", "A\t/-", True),
        (r"^\p{Han}+$", "北京", True),
        (r"^\p{Script=Han}+$", "北京", True),
        (r"^\P{sc=Han}+$", "abc", True),
        (r"^\p{L}+$", "Zürich", True),
        (r"^\w+$", "北京", False),
        (r"^\d+$", "１２", False),
        (r"^\d+$", "12", True),
        (r"^\s$", "\u3000", False),
        (r"\bab\b", "x ab y", True),
        (r"^a\Z", "a", True),
        (r"^(?i)straße$", "STRAßE", True),
        (r"^(?P<year>\d{4})-(?<month>\d\d)$", "2026-11", True),
        ("^.$", "\ud800", True),
    ],
)
def test_a_pattern_means_what_json_schema_says(pattern, text, is_found):
    assert search_pattern(pattern, text) is is_found


@pytest.mark.parametrize(
    "pattern",
    ["a++", "(?>a)", r"\k<n>", "[", "*", r"\ud800", "\ud800", r"[\q]", "a{1001}", "(?#x)"],
)
def test_what_the_matcher_does_not_know_is_refused(pattern):
    with pytest.raises(PatternRefused, match=r"."):
        compile_pattern(pattern)
