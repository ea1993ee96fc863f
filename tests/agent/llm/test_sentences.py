"""A cut answer ends at a sentence."""

import pytest

from agent.llm.answers.sentences import end_at_sentence
from tests.agent.llm.answers import recorded, recorded_text


@pytest.mark.parametrize(
    ("text", "ended"),
    [
        ("一。二。三", "一。二。"),
        ("他说：“好。”然后走", "他说：“好。”"),
        ("（真的！）但是", "（真的！）"),
        ("Really? Yes, it is. And th", "Really? Yes, it is."),
        ("See www.example.com. It costs 3.14 or 3.", "See www.example.com."),
        ("1. 苹果\n2. 香蕉\n3.", "1. 苹果\n2. 香蕉"),
        ("先热锅，再放油。\n\n步骤如下：", "先热锅，再放油。"),
        ("说完了。", "说完了。"),
        ("full stop…", "full stop…"),
    ],
)
def test_a_cut_text_ends_at_its_last_sentence_or_line(text, ended):
    assert end_at_sentence(text) == ended


@pytest.mark.parametrize("text", ["你好，我是", "Hi. This sentence is far longer than the first"])
def test_a_text_that_would_lose_more_than_half_stays_with_an_ellipsis(text):
    assert end_at_sentence(text) == text + "…"


def test_an_open_code_fence_is_closed_after_its_last_full_line():
    assert end_at_sentence("```py\na = 1\nb = 2\nc =") == "```py\na = 1\nb = 2\n```"
    assert end_at_sentence("看：\n~~~~\nprint(1") == "看：\n~~~~\nprint(1\n~~~~"


@pytest.mark.parametrize(
    "name", ["qwen_cut_zh", "qwen_cut_en", "qwen_cut_code", "qwen_about_calls"]
)
def test_what_a_limit_cut_of_a_real_model_ends_whole(name):
    assert recorded(name)["choices"][0]["finish_reason"] == "length"
    text = recorded_text(name)
    ended = end_at_sentence(text)
    assert ended.endswith(("。", ".", "```"))
    assert len(ended) * 2 > len(text)
    assert ended.removesuffix("\n```") in text
    assert ended.count("```") % 2 == 0
