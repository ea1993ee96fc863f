"""Answers that end in a loop, and lists, songs and laughter that do not."""

import pytest

from agent.llm.answers.repetition import cut_repetition, is_repeating
from tests.agent.llm.answers import recorded_text

ANIMALS = "猫狗鸟鱼牛羊马兔鸡鸭鹅虎龙蛇猴猪鼠熊鹿狼"


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("今天天气真好。" * 30, "今天天气真好。"),
        (
            "你好。\n" + "北京是中国的首都，历史悠久。" * 12 + "北京是",
            "你好。\n北京是中国的首都，历史悠久。",
        ),
        (
            "Well. " + "I do not know what to say. " * 12 + "I do",
            "Well. I do not know what to say.",
        ),
        ("哈" * 150, "哈" * 12 + "…"),
        ("Yes, and then " * 30, "Yes, and then…"),
        ("One.\n\nTwo.\n\nThree.\n\n" * 20, "One.\n\nTwo.\n\nThree."),
    ],
)
def test_a_loop_to_the_end_is_cut_after_its_first_occurrence(text, cut):
    assert is_repeating(text)
    assert cut_repetition(text) == cut


def test_a_loop_longer_than_what_is_looked_at_is_cut_at_its_beginning():
    text = "先说一句。" + "今天天气真好。" * 5000
    assert cut_repetition(text) == "先说一句。今天天气真好。"
    lines = "先说：\n" + "\n".join(f"{number}. 苹果" for number in range(9000))
    assert cut_repetition(lines) == "先说：\n0. 苹果\n1. 苹果"


def test_the_list_that_a_real_model_repeated_under_growing_numbers_is_cut():
    text = recorded_text("qwen_repeats_list")
    assert is_repeating(text)
    assert cut_repetition(text).endswith("\n9. 花椒\n10. 橘子")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "哈" * 40,
        "hahahahahahahahahaha",
        "好的。" * 5,
        "Row, row, row your boat\n" * 4,
        "一闪一闪亮晶晶，\n满天都是小星星。\n" * 3,
        "| 一 | 二 |\n| --- | --- |\n" + "".join(f"| {n} | {n * n} |\n" for n in range(60)),
        "\n".join(f"{n}月：{n * 5}元" for n in range(1, 13)),
        "\n".join(f"{n}. {animal}" for n, animal in enumerate(ANIMALS)),
        "x = [\n" + "    0,\n" * 80 + "]\n",
        "-" * 300,
        "....\n" * 100,
        "今天天气真好。" * 30 + "说完了，下面讲点别的。",
    ],
)
def test_lists_tables_songs_code_and_short_laughter_are_no_loop(text):
    assert not is_repeating(text)
    assert cut_repetition(text) == text


@pytest.mark.parametrize(
    "name", ["qwen_cut_zh", "qwen_cut_en", "qwen_cut_code", "qwen_about_calls", "qwen_weather_en"]
)
def test_other_answers_of_a_real_model_are_no_loop(name):
    assert not is_repeating(recorded_text(name))
