"""Requests in the forms that endpoints take which refuse another one."""

from typing import Any

import pytest

from agent.domain.endpoint import Endpoint
from agent.llm.errors.refusals import RefusalKind
from agent.llm.requests.adapting import adapt, build_parameters
from tools.text import fences

SYSTEM = {"role": "system", "content": "be brief"}
TOOLS = [{"name": "f", "description": ""}]
PICTURE = {"type": "image_url", "image_url": {"url": "kept:x"}}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def said(content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


CALLING = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    ],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "42"}


def adapted(messages: list[dict[str, Any]], *kinds: str) -> list[dict[str, Any]]:
    return adapt(messages, [], frozenset(kinds))[0]


def test_an_endpoint_that_refuses_nothing_is_sent_the_very_same():
    messages, tools = [SYSTEM, user("hi"), CALLING, RESULT], TOOLS
    assert adapt(messages, tools, frozenset())[0] is messages
    changed, offered = adapt(messages, tools, frozenset({RefusalKind.NO_ARRAY_CONTENT}))
    assert (changed is messages, offered is tools) == (True, True)


def test_without_tools_calls_and_results_are_words():
    messages, tools = adapt([user("hi"), CALLING, RESULT], TOOLS, {RefusalKind.NO_TOOLS})
    assert tools == []
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert "f" in messages[1]["content"]
    assert fences.is_framed(messages[2]["content"])
    assert messages[2]["content"].endswith("\n42")


def test_calls_of_another_model_are_words_where_their_thoughts_are_missed():
    own = {**CALLING, "reasoning_content": "hm"}
    messages, tools = adapt([own, RESULT], TOOLS, {RefusalKind.MISSING_REASONING})
    assert (messages, tools) == ([own, RESULT], TOOLS)
    assert adapted([CALLING, RESULT], RefusalKind.MISSING_REASONING)[1]["role"] == "user"


@pytest.mark.parametrize(
    ("kind", "messages", "form"),
    [
        (RefusalKind.NO_SYSTEM, [SYSTEM, user("hi")], [user("be brief\n\nhi")]),
        (
            RefusalKind.NO_SYSTEM,
            [SYSTEM, user([PICTURE])],
            [user([{"type": "text", "text": "be brief"}, PICTURE])],
        ),
        (RefusalKind.NO_SYSTEM, [SYSTEM, said("a")], [user("be brief"), said("a")]),
        (
            RefusalKind.LATE_SYSTEM,
            [SYSTEM, user("hi"), {"role": "system", "content": "now"}],
            [{"role": "system", "content": "be brief\n\nnow"}, user("hi")],
        ),
        (
            RefusalKind.NO_CONSECUTIVE_USER,
            [SYSTEM, user("a"), user("b"), said("c"), said("d"), user("e")],
            [SYSTEM, user("a\n\nb"), said("c\n\nd"), user("e")],
        ),
        (RefusalKind.NO_NULL_CONTENT, [CALLING], [{**CALLING, "content": ""}]),
        (
            RefusalKind.NO_ARRAY_CONTENT,
            [user([{"type": "text", "text": "look"}, PICTURE])],
            [user("look\n[图片]")],
        ),
        (
            RefusalKind.NO_PICTURES,
            [user([{"type": "text", "text": "look"}, PICTURE])],
            [user([{"type": "text", "text": "look"}, {"type": "text", "text": "[图片]"}])],
        ),
        (RefusalKind.NO_EXTRAS, [{**said("a"), "reasoning": "hm"}], [said("a")]),
    ],
)
def test_each_kind_of_refusal_has_its_form(kind, messages, form):
    assert adapted(messages, kind) == form


def test_one_that_takes_neither_system_nor_two_users_in_a_row_is_sent_one():
    kinds = (RefusalKind.NO_SYSTEM, RefusalKind.NO_CONSECUTIVE_USER)
    assert adapted([SYSTEM, user("a"), user("b")], *kinds) == [user("be brief\n\na\n\nb")]


# --- Parameters -------------------------------------------------------------------------


def test_what_the_operator_entered_comes_last_and_wins():
    endpoint = Endpoint(
        "http://h",
        model="deepseek-flash",
        preset="deepseek",
        thinking="on",
        parameters={"temperature": 0.5, "thinking": {"type": "disabled"}, "model": "other"},
    )
    assert build_parameters(endpoint) == {"thinking": {"type": "disabled"}, "temperature": 0.5}
    assert build_parameters(Endpoint("http://h", is_streamed=True)) == {
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.parametrize(
    ("kind", "left"),
    [
        (RefusalKind.NO_TEMPERATURE, {"max_tokens": 9, "thinking": {"type": "disabled"}}),
        (RefusalKind.NO_THINKING_SWITCH, {"temperature": 1, "max_tokens": 9}),
        (
            RefusalKind.MAX_COMPLETION_TOKENS,
            {"temperature": 1, "max_completion_tokens": 9, "thinking": {"type": "disabled"}},
        ),
    ],
)
def test_a_parameter_that_is_refused_is_left_out_or_renamed(kind, left):
    endpoint = Endpoint(
        "http://h",
        preset="deepseek",
        thinking="off",
        parameters={"temperature": 1, "max_tokens": 9},
    )
    assert build_parameters(endpoint, {kind}) == left
