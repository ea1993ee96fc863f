"""When something is due, read from words: a table, and what nobody should type."""

import random
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from django.utils import translation

from agent.reminders.unclear import Unclear, UnclearTime
from agent.reminders.when import read_when, split_when

TABLE = Path(__file__).with_name("phrases.txt")
SHANGHAI = ZoneInfo("Asia/Shanghai")
NOW = datetime(2026, 11, 25, 21, 10, tzinfo=SHANGHAI)


def rows() -> Iterator[tuple[str, datetime, str, str]]:
    """What about, the time, a phrase, and what it means."""
    about, now = "", NOW
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if head := re.fullmatch(r"\[(.+)\] (\S+) (\S+)", line):
            about = head[1]
            now = datetime.fromisoformat(head[2]).replace(tzinfo=ZoneInfo(head[3]))
        elif " => " in line and not line.startswith("#"):
            phrase, _, meaning = line.partition(" => ")
            yield about, now, phrase, meaning


def read(phrase: str, now: datetime) -> str:
    """``phrase`` as the table writes what it means."""
    assert isinstance(now.tzinfo, ZoneInfo)
    try:
        when, rest = split_when(phrase, now, now.tzinfo)
    except UnclearTime as error:
        return f"? {error.reason.value}"[: 99 if error.say() else 0]
    assert when.due_at.tzinfo is UTC
    due = when.due_at.astimezone(now.tzinfo)
    shown = f"{due:%Y-%m-%d %H:%M}" + (f":{due:%S}" if due.second else "")
    return " ".join(filter(None, [shown, when.repeat])) + (f" … {rest}" if rest else "")


def test_phrases_mean_what_the_table_says():
    table = list(rows())
    assert len(table) > 600
    wrong = [
        f"{about}: {phrase} => {found}, not {meaning}"
        for about, now, phrase, meaning in table
        if (found := read(phrase, now)) != meaning
    ]
    assert wrong == []


def test_the_whole_has_to_be_a_time_where_there_is_no_text():
    assert read_when("明天8点。", NOW, SHANGHAI).due_at == datetime(2026, 11, 26, tzinfo=UTC)
    with pytest.raises(UnclearTime) as caught:
        read_when("明天8点 吃药", NOW, SHANGHAI)
    assert caught.value.reason == Unclear.NO_TIME


def test_what_to_ask_is_a_sentence_in_both_languages():
    with pytest.raises(UnclearTime) as caught:
        read_when("every Friday at 3", NOW, SHANGHAI)
    with translation.override("en"):
        assert caught.value.say() == "In the morning or in the afternoon: 03:00 or 15:00?"
    with translation.override("zh-hans"):
        assert caught.value.say() == "是上午还是下午：03:00 还是 15:00？"


def test_signs_that_turn_the_direction_are_not_repeated():
    with pytest.raises(UnclearTime) as caught:
        split_when("\u202e明天\u202c 好", NOW, SHANGHAI)
    assert caught.value.data["words"] == "明天"


def test_a_due_instant_is_never_before_a_span_is_over():
    late = NOW.replace(microsecond=400_000)
    assert (split_when("3s", late, SHANGHAI)[0].due_at - late).total_seconds() == 3.6


def test_hostile_words_take_no_longer_than_their_beginning():
    """Counted in lines of code, not in time: nothing behind the longest phrase is looked at."""
    lines = 0

    def count(frame, event, _):
        nonlocal lines
        lines += 1
        return count if "reminders" in frame.f_code.co_filename else None

    def measure(words: str) -> int:
        nonlocal lines
        lines = 0
        sys.settrace(count)
        try:
            read(words, NOW)
        finally:
            sys.settrace(None)
        return lines

    for word in (
        "1",
        "一",
        "8点",
        "每",
        "周一、",
        "a ",
        "one ",
        "in ",
        "每周一",
        "(",
        "1:",
        "p1",
        "除",
        "周一、周二",
        "到",
        "until ",
        " ",
    ):
        for start in ("", "明天8点 ", "每天8点 "):
            assert measure(start + word * 30_000) <= measure(start + word * 300) * 1.01, word


def test_whatever_is_said_is_a_time_or_asked_back():
    chosen = random.Random(7)
    phrases = [phrase for _, _, phrase, _ in rows()]
    pieces = [piece for phrase in phrases for piece in re.findall(r"\d+|[a-z]+|.", phrase.lower())]
    for _ in range(1_500):
        parts = chosen.choices([*phrases, *pieces], k=chosen.randrange(1, 7))
        read(chosen.choice(["", " "]).join(parts), NOW)
