"""Long answers are cut where a reader would pause, and never inside what a cut breaks."""

import re

import pytest
from hypothesis import given, settings, strategies as st

from agent.domain.answer_parts import split_answer, split_message
from agent.domain.types import MessagePart

FAMILY = "👨\u200d👩\u200d👧"
ADDRESS = "https://example.com/a/" + "b" * 70
WHOLE = [
    ADDRESS,
    "[CQ:at,qq=all]",
    FAMILY,
    "👍🏽",
    "🇨🇳",
    "e\u0301\u0302",
    "❤\ufe0f",
    "1\ufe0f\u20e3",
]
PIECES = [
    *("今天天气不错。", "We went out. ", "为什么？", "\n\n", "\n", " ", "，", "一" * 60),
    *(f"{whole}。" for whole in WHOLE),
]
CODE = [
    "\n```python\nprint(1)\nx = 2\n```\n",
    "\n~~~\n" + "line of code\n" * 30 + "~~~\n",
    "\n```\nopen",
]
FENCE = re.compile(r"^[ \t>]*(?:```|~~~).*$", re.MULTILINE)


def bare(text: str) -> str:
    """``text`` without spaces and the lines that open and close code."""
    return "".join(FENCE.sub("", text).split())


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES + CODE), max_size=60).map("".join), st.integers(100, 400))
def test_the_parts_are_short_not_blank_and_say_the_same(text, limit):
    """Checklist 84."""
    parts = split_answer(text, limit)
    assert all(part.strip() and len(part) <= limit for part in parts)
    assert bare("\n".join(parts)) == bare(text)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join), st.integers(100, 400))
def test_nothing_that_a_cut_would_break_is_cut(text, limit):
    """Checklist 84."""
    parts = split_answer(text, limit)
    for whole in WHOLE:
        assert sum(part.count(whole) for part in parts) == text.count(whole)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=600), st.integers(1, 150))
def test_any_text_at_all_is_split(text, limit):
    parts = split_answer(text, limit)
    assert all(part.strip() and len(part) <= limit for part in parts)
    assert bare("\n".join(parts)) == bare(text)


@pytest.mark.parametrize(
    ("text", "limit", "parts"),
    [
        ("  short \n", 100, ["short"]),
        (" \n ", 100, []),
        ("一段话。\n\n另一段。尾巴很长很长", 12, ["一段话。", "另一段。尾巴很长很长"]),
        ("第一行没有句号\n第二行也没有句号", 12, ["第一行没有句号", "第二行也没有句号"]),
        ("他说：“好的。”然后他就走了，再没回来", 14, ["他说：“好的。”", "然后他就走了，再没回来"]),
        ("First one here. Second one is here", 20, ["First one here.", "Second one is here"]),
        ("version 3.14 of it, e.g. this thing", 22, ["version 3.14 of it,", "e.g. this thing"]),
    ],
)
def test_a_cut_stands_at_the_best_end(text, limit, parts):
    assert split_answer(text, limit) == parts


def test_code_that_fits_is_in_one_part_and_longer_code_is_closed_and_opened_again():
    """Checklist 84."""
    short = "```python\n" + "x = 1\n" * 12 + "```"
    assert split_answer("前言。" * 20 + "\n" + short, 100) == ["前言。" * 20, short]
    parts = split_answer("```python\n" + "x = 1\n" * 60 + "```\n完", 100)
    assert all(part.startswith("```python\nx = 1\n") for part in parts)
    assert all(part.endswith("\nx = 1\n```") for part in parts[:-1])
    assert parts[-1].endswith("x = 1\n```\n完")


def test_a_row_that_says_more_than_a_client_takes_is_not_obeyed():
    assert max(map(len, split_answer("字" * 20_000, 10_000))) == 4_500


@pytest.mark.parametrize(
    "text",
    [
        *("字" * 100_000, "\n" * 50_000 + "x" * 50_000, "a " * 50_000, "e" + "\u0301" * 100_000),
        *("🇨" * 100_000, "[CQ:" * 25_000, "```\n" * 25_000, "`" * 100_000, "http:" * 20_000),
        *("\n" + " " * 99_999 + "x", "\n  " * 33_000 + "x", "。" * 100_000, FAMILY * 20_000),
    ],
)
def test_a_hundred_thousand_characters_of_any_kind_are_split(text):
    parts = split_answer(text, 100)
    assert all(len(part) <= 100 for part in parts)
    assert bare("".join(parts)) == bare(text)


def test_what_is_no_text_stays_beside_the_words_it_stood_beside():
    quote, mention = MessagePart("quote", message_id="5"), MessagePart("mention_user")
    picture = MessagePart("image", url="https://a.example/a.png")
    words = MessagePart("plain", text=" 一句。" * 30)
    messages = split_message([quote, mention, words, picture], 50)
    assert messages[0][:2] == [quote, mention]
    assert messages[0][2].text.startswith(" 一句。")
    assert messages[-1][-1] == picture
    texts = [part.text for parts in messages for part in parts]
    assert max(sum(len(part.text) for part in parts) for parts in messages) <= 50
    assert "".join(texts).replace(" ", "") == words.text.replace(" ", "")


def test_a_message_that_fits_is_left_alone():
    parts = [MessagePart("plain", text=" a "), MessagePart("image", path="b")]
    assert split_message(parts, 3) == [parts]


def test_a_short_text_behind_a_long_one_stands_in_the_last_message():
    parts = [MessagePart("plain", text="一句。" * 20), MessagePart("plain", text="完")]
    assert [part.text for part in split_message(parts, 50)[-1]] == ["一句。" * 4, "完"]
