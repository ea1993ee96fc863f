"""Thoughts in the text of an answer: what nobody may read, and what only talks about tags."""

import time

import pytest
from hypothesis import given, strategies as st

from agent.llm.answers.bounds import ANSWER_LIMIT
from agent.llm.answers.thoughts import SplitText, split_thoughts
from tests.agent.llm.answers import recorded_text

HARMONY = "<|channel|>analysis<|message|>Greet.<|end|><|start|>assistant<|channel|>final<|message|>"


@pytest.mark.parametrize(
    ("text", "said", "thoughts"),
    [
        ("<think>\nhm\n</think>\n\n你好", "你好", "hm"),
        ("<THINK>a</Think>b", "b", "a"),
        ("<thinking>a</thinking>b", "b", "a"),
        ("<thought>a</thought>b", "b", "a"),
        ('<reasoning effort="low">a</reasoning>b', "b", "a"),
        ("<seed:think>a</seed:think>b", "b", "a"),
        ("<mm:think>a</mm:think>b", "b", "a"),
        ("[THINK]a[/THINK]b", "b", "a"),
        ("◁think▷a◁/think▷b", "b", "a"),
        ("<|begin_of_thought|>a<|end_of_thought|>b", "b", "a"),
        ("<|START_THINKING|>a<|END_THINKING|><|START_RESPONSE|>b<|END_RESPONSE|>", "b", "a"),
        ("<|channel>thought\na<channel|>b", "b", "a"),
        ("<|open|>think<|sep|>a<|close|>think<|sep|>b", "b", "a"),
        ("<think>a</think><answer>b</answer>", "b", "a"),
        ("<thinking>a</think>b", "b", "a"),
        ("<think>\n\n</think>\n\nb", "b", ""),
    ],
)
def test_the_thoughts_of_each_known_model_are_split_off(text, said, thoughts):
    assert split_thoughts(text) == SplitText(said, thoughts)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<think>cut", ""),
        ("你好。\n<think>\ncut", "你好。"),
        ("<think>a<think>b</think>c", "c"),
        ("<think>a\n<think>b</think>\nc</think>d", "d"),
        ("<think><think>a</think>b", "b"),
        ("<think>a</think>b\n<think>c</think>d", "b\nd"),
        ("<think>a</think><think>b</think>c", "c"),
        ("> <think>a\n> </think>\nb", "> \nb"),
        ("<think>I end with `</think>`, then\n</think>\nb", "b"),
        ("<think>\n```py\nx\n</think>\nb\n```py\ny\n```\nc", "b\n```py\ny\n```\nc"),
        ("好的。<think>用户想知道天气。要查。</think>晴", "好的。晴"),
        ("<think>call it\n<tool_call>\n{}\n</tool_call>", "<tool_call>\n{}\n</tool_call>"),
    ],
)
def test_unclosed_nested_and_repeated_thoughts_are_not_said(text, said):
    assert split_thoughts(text).text == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("I need to think.</think>The answer is 42.", "The answer is 42."),
        ("so\n</think>\n\nb", "b"),
        ("用户提到 <think> 标签\n</think>\nb", "b"),
        ("only thoughts\n</think>", ""),
        ("</think>\n\nb", "b"),
        ("<think>a</think>b\n</think>", "b"),
        ("<think>a</think>\nb, no: c\n</think>\nd", "d"),
    ],
)
def test_what_stands_before_a_lone_closing_tag_is_thoughts(text, said):
    assert split_thoughts(text).text == said


@pytest.mark.parametrize(
    "text",
    [
        "the <think> tag is closed by </think> in prose",
        "`<think>` opens, `</think>` closes",
        "```xml\n<think>\na\n</think>\n```",
        "~~~\n<think>\n~~~\nb",
        "用</think>标签结束思考",
        "Tags: <think>, <answer>.",
        "I [think] so; a <thinker> thinks",
        "analysis of the market",
        "`<|channel|>final<|message|>` begins the answer",
        "in harmony, <|channel|> names a channel",
        "  nothing here  ",
        "",
    ],
)
def test_tags_in_code_and_in_the_middle_of_prose_stay(text):
    assert split_thoughts(text) == SplitText(text, "")


@pytest.mark.parametrize(
    ("text", "said", "thoughts"),
    [
        (HARMONY + "Hello<|return|>", "Hello", "Greet."),
        ("Greet.<|end|><|start|>assistant<|channel|>final<|message|>Hello", "Hello", "Greet."),
        ("<|channel|>analysis<|message|>cut", "", "cut"),
        ("<|channel|>commentary<|message|>One moment.<|end|>", "One moment.", ""),
        ("analysisGreet.assistantfinalHello", "Hello", "Greet."),
    ],
)
def test_of_harmony_channels_only_what_is_for_the_user_stays(text, said, thoughts):
    assert split_thoughts(text) == SplitText(said, thoughts)


def test_a_call_in_a_harmony_channel_stays_for_those_who_read_calls():
    call = "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>"
    assert split_thoughts("<|channel|>analysis<|message|>a<|end|>" + call).text == call


@pytest.mark.parametrize(
    "name", ["qwen_version_zh", "qwen_about_calls", "qwen_cut_code", "qwen_weather_en"]
)
def test_answers_of_a_real_model_without_thoughts_stay_as_they_are(name):
    text = recorded_text(name)
    assert split_thoughts(text) == SplitText(text, "")


@pytest.mark.parametrize(
    "piece", ["<think>", "</think>", "`<think>", "a. <think> ", "…<think>", "```\n", "` ``"]
)
def test_hostile_answers_take_linear_time(piece):
    def seconds(length: int) -> float:
        began = time.process_time()
        split_thoughts((piece * length)[:length])
        return time.process_time() - began

    seconds(1000)
    assert seconds(ANSWER_LIMIT // 32) < 24 * max(seconds(ANSWER_LIMIT // 256), 0.02)


PIECES = ["<think>", "</think>", "`", "```", "\n", "。", "a ", "<|channel|>", "final<|message|>"]


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_nothing_is_invented_and_splitting_again_changes_no_plain_text(text):
    said, thoughts = split_thoughts(text)
    assert len(said) + len(thoughts) <= len(text) + text.count("think>")
    if "<" not in text:
        assert said == text
