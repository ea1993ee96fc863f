"""Reading a chat completion: every shape that endpoints are known to send, and every one that is
none."""

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent.domain.errors import LLMError
from agent.llm.answers.completion import (
    NO_FUNCTION,
    NO_NAME,
    UNNAMED,
    is_empty_response,
    parse_completion,
    parse_recorded,
)
from agent.llm.requests.base import LLMResponse


def body(content: Any = "hi", **message: Any) -> dict[str, Any]:
    return {
        "choices": [
            {
                "message": {"role": "assistant", "content": content, **message},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 5},
    }


def asking(*calls: Any, content: Any = None) -> LLMResponse:
    return parse_completion(body(content, tool_calls=list(calls)))


def call(name: Any = "f", arguments: Any = "{}", **fields: Any) -> dict[str, Any]:
    return {
        "id": "c1",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
        **fields,
    }


def test_a_plain_answer_is_read_with_its_cost():
    response = parse_completion(body())
    assert (response.text, response.tool_calls, response.finish_reason) == ("hi", (), "stop")
    assert (response.input_tokens, response.output_tokens) == (3, 5)
    assert response.message == {"role": "assistant", "content": "hi"}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("", ""),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab"),
        ([{"type": "image_url", "image_url": {}}, "plain", {"text": None}, 7], "plain"),
        ({"text": "x"}, ""),
        (5, ""),
    ],
)
def test_content_may_be_null_or_in_parts(content, text):
    assert parse_completion(body(content)).text == text


def test_content_may_be_missing():
    assert parse_completion({"choices": [{"message": {}}]}).text == ""


def test_several_tool_calls_keep_their_order_and_ids():
    response = asking(call("f", '{"a": 1}', id="x"), call("g", "", id="y"), content="first this")
    assert [(one.call_id, one.name, one.arguments) for one in response.tool_calls] == [
        ("x", "f", '{"a": 1}'),
        ("y", "g", ""),
    ]
    assert response.text == "first this"


@pytest.mark.parametrize("missing", [None, "", 0])
def test_a_call_without_an_id_is_given_one(missing):
    first, second = asking(call(id=missing), call(id=missing)).tool_calls
    assert first.call_id.startswith("call_")
    assert first.call_id != second.call_id


def test_an_id_that_is_a_number_becomes_text():
    assert asking(call(id=7)).tool_calls[0].call_id == "7"


def test_arguments_that_are_an_object_already_become_their_text():
    assert json.loads(asking(call(arguments={"city": "巴黎"})).tool_calls[0].arguments) == {
        "city": "巴黎"
    }
    assert asking(call(arguments=None)).tool_calls[0].arguments == ""


@pytest.mark.parametrize(
    "broken", ["x", None, {}, {"function": None}, {"id": "c9", "name": "f", "arguments": {}}]
)
def test_what_is_no_call_goes_back_as_one_with_a_problem(broken):
    response = asking(broken, call("f"))
    assert [(one.name, one.problem) for one in response.tool_calls] == [
        (UNNAMED, NO_FUNCTION),
        ("f", ""),
    ]
    echoed = response.message["tool_calls"][0]
    assert echoed == {
        "id": echoed["id"],
        "type": "function",
        "function": {"name": UNNAMED, "arguments": "{}"},
    }
    assert echoed["id"] not in ("", "c1")


@pytest.mark.parametrize(
    "function", [{"name": ""}, {"name": None}, {"name": " "}, {"name": {}}, {"arguments": "{}"}]
)
def test_a_call_without_a_name_keeps_its_id_and_says_what_is_missing(function):
    (one,) = asking({"id": "c9", "function": {"arguments": '{"a": 1}', **function}}).tool_calls
    assert (one.call_id, one.name, one.problem) == ("c9", UNNAMED, NO_NAME)


def test_of_calls_with_one_id_each_has_its_own():
    response = asking(call("f"), call("g"), call("h", id="c2"))
    ids = [one.call_id for one in response.tool_calls]
    assert (ids[0], ids[2], len(set(ids))) == ("c1", "c2", 3)
    assert [one["id"] for one in response.message["tool_calls"]] == ids


def test_an_answer_on_record_is_read_as_it_was_when_it_came():
    calls = ["x", call("f"), {"function": {"arguments": "{"}}, call("g")]
    fresh = asking(*calls)
    recorded = parse_recorded(
        {"content": None, "tool_calls": calls}, [one.call_id for one in fresh.tool_calls]
    )
    assert (recorded.tool_calls, recorded.message) == (fresh.tool_calls, fresh.message)


def test_of_a_record_that_left_out_what_is_no_call_the_others_keep_their_ids():
    (one,) = parse_recorded({"tool_calls": [None, call("f", id="y")]}, ["x"]).tool_calls
    assert (one.call_id, one.name) == ("x", "f")


@pytest.mark.parametrize("calls", [None, {}, "f", []])
def test_tool_calls_that_are_no_list_are_none(calls):
    response = parse_completion(body("hi", tool_calls=calls))
    assert (response.tool_calls, response.message) == ((), {"role": "assistant", "content": "hi"})


@pytest.mark.parametrize(
    ("arguments", "echoed"),
    [('{"a": 1}', '{"a": 1}'), ("{broken", "{}"), ("[1]", "{}"), ("", "{}"), ("[" * 100_000, "{}")],
)
def test_broken_arguments_go_back_to_the_endpoint_as_an_empty_object(arguments, echoed):
    response = asking(call(arguments=arguments))
    assert response.tool_calls[0].arguments == arguments
    assert response.message["tool_calls"][0]["function"]["arguments"] == echoed


def test_an_answer_with_calls_and_no_words_goes_back_with_null_content():
    assert asking(call(), content="").message["content"] is None
    assert asking(call(), content="wait").message["content"] == "wait"


@pytest.mark.parametrize("thought", ["I need the weather.", ""])
def test_the_reasoning_behind_calls_goes_back_with_them_as_some_endpoints_demand(thought):
    # https://api-docs.deepseek.com/guides/thinking_mode: without it a request with the calls is
    # refused (400)
    message = {"content": None, "reasoning_content": thought, "tool_calls": [call()]}
    response = parse_completion({"choices": [{"message": message}]})
    assert response.message["reasoning_content"] == thought
    assert parse_recorded(message, ["c1"]).message == response.message


MARKED, DISARMED = "a<|im_end|>", "a〔|im_end|〕"


def test_what_a_model_said_ends_no_turn_when_it_goes_back():
    response = parse_completion(body(MARKED, reasoning_content=MARKED))
    assert (response.text, response.message["content"]) == (MARKED, DISARMED)
    assert response.message["reasoning_content"] == DISARMED
    assert response.recorded_message["content"] == MARKED


def test_arguments_end_no_turn_when_they_go_back_and_reach_the_tool_as_they_were_written():
    written = '{"a": ["\\u003c|im_end|>", "x\\n### Response:"], "</s>": 1}'
    response = asking(call(arguments=written), content=MARKED)
    (made,) = response.message["tool_calls"]
    assert json.loads(made["function"]["arguments"]) == {
        "a": ["〔|im_end|〕", "x\n＃＃＃ Response:"],
        "〔/s〕": 1,
    }
    assert response.tool_calls[0].arguments == written
    assert response.message["content"] == DISARMED
    assert parse_recorded(response.recorded_message, ["c1"]).message == response.message


def test_what_a_model_signed_goes_back_as_it_came():
    blocks = [{"type": "thinking", "thinking": MARKED, "signature": "s"}, {"text": MARKED}]
    message = parse_completion(body(thinking_blocks=blocks)).message
    assert message["thinking_blocks"] == [blocks[0], {"text": DISARMED}]


@pytest.mark.parametrize("depth", [33, 200])
def test_thoughts_of_any_depth_go_back(depth: int):
    blocks: Any = MARKED
    for _ in range(depth):
        blocks = [blocks]
    assert parse_completion(body(reasoning_details=blocks)).message["content"] == "hi"
    deep = f'{{"a": {"[" * depth}{"]" * depth}}}'
    assert asking(call(arguments=deep)).message["tool_calls"]


@pytest.mark.parametrize("nothing", [None, [], {}])
def test_what_says_nothing_does_not_go_back(nothing):
    message = {"reasoning_content": nothing, "annotations": nothing, "tool_calls": [call()]}
    response = parse_completion({"choices": [{"message": message}]}, speaker="a")
    assert response.message.keys() == {"role", "content", "tool_calls"}


def test_the_answer_is_kept_for_the_record_as_it_came():
    message = {"content": None, "refusal": "no", "tool_calls": [call(arguments="{broken")]}
    assert parse_completion({"choices": [{"message": message}]}).recorded_message is message


TEXT_CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'


def read_text(text: str, mode: str = "auto", offered: tuple[str, ...] = ("f",)) -> LLMResponse:
    return parse_completion(body(text), offered=offered, text_calls=mode)


def test_text_that_is_nothing_but_calls_of_offered_tools_is_calls():
    response = read_text(TEXT_CALL)
    (one,) = response.tool_calls
    assert (one.name, json.loads(one.arguments), response.text) == ("f", {"a": 1}, "")
    assert response.message["tool_calls"][0]["function"]["name"] == "f"


@pytest.mark.parametrize(
    ("text", "mode", "offered"),
    [
        (TEXT_CALL, "auto", ()),
        (TEXT_CALL, "auto", ("g",)),
        (TEXT_CALL, "off", ("f",)),
        (f"Let me look.\n{TEXT_CALL}", "auto", ("f",)),
        (f"{TEXT_CALL}\nThat is how it is written.", "on", ("f",)),
    ],
)
def test_other_text_stays_text(text, mode, offered):
    response = read_text(text, mode, offered)
    assert (response.tool_calls, response.text) == ((), text)


def test_words_before_a_call_in_the_text_are_said_where_the_row_says_so():
    response = read_text(f"Let me look.\n\n{TEXT_CALL}", "on")
    assert (response.text, [one.name for one in response.tool_calls]) == ("Let me look.", ["f"])


@pytest.mark.parametrize("text", [TEXT_CALL, f"Let me look.\n{TEXT_CALL}"])
def test_a_call_in_a_recorded_text_is_one_again(text):
    fresh = read_text(text, "on")
    recorded = parse_recorded({"content": text}, [one.call_id for one in fresh.tool_calls])
    assert (recorded.tool_calls, recorded.message) == (fresh.tool_calls, fresh.message)
    assert parse_recorded({"content": text}, []).tool_calls == ()


def test_a_call_in_the_form_of_2023_is_one():
    legacy = {"content": None, "function_call": {"name": "f", "arguments": "{}"}}
    (one,) = parse_completion({"choices": [{"message": legacy}]}).tool_calls
    assert (one.name, one.arguments) == ("f", "{}")


@pytest.mark.parametrize("arguments", [None, "null", " null\n"])
def test_null_is_no_arguments(arguments):
    assert asking(call(arguments=arguments)).tool_calls[0].arguments == ""


def test_half_an_object_goes_to_the_tool_as_it_is():
    assert asking(call(arguments='{"a": ')).tool_calls[0].arguments == '{"a": '


@pytest.mark.parametrize(
    "message",
    [
        {"content": "hi", "reasoning_content": "hm"},
        {"content": "hi", "reasoning": "hm"},
        {"content": "hi", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]},
        {"content": "hi", "reasoning": "hm", "reasoning_details": [{"summary": "hm"}]},
        {"content": "<think>hm</think>hi"},
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                {"type": "text", "text": "hi"},
            ]
        },
    ],
)
def test_thoughts_are_told_apart_wherever_they_stand(message):
    response = parse_completion({"choices": [{"message": message}]})
    assert (response.text, response.reasoning, response.message["content"]) == ("hi", "hm", "hi")


def test_the_thoughts_behind_a_call_are_handed_to_its_tool():
    message = {"content": "<think>hm</think>", "tool_calls": [call()]}
    (one,) = parse_completion({"choices": [{"message": message}]}).tool_calls
    assert one.reasoning == "hm"


@pytest.mark.parametrize("reason", ["length", "content_filter", None])
def test_why_an_answer_ended_is_kept(reason):
    choice = {"message": {"content": "hi"}, "finish_reason": reason}
    response = parse_completion({"id": "x", "choices": [choice]})
    assert response.finish_reason == (reason or "")
    assert response.rest == {"id": "x", "choices": [{"finish_reason": reason}]}


@pytest.mark.parametrize("choice", [{"message": None}, {}, {"message": {"content": "\u200b \n"}}])
def test_nothing_that_can_be_seen_is_an_empty_answer(choice):
    response = parse_completion({"choices": [{**choice, "finish_reason": "content_filter"}]})
    assert is_empty_response(response)


@pytest.mark.parametrize("count", [None, "7", -1, 1.5, 2**31])
def test_counts_that_are_none_are_zero(count):
    response = parse_completion(
        {**body(), "usage": {"prompt_tokens": count, "completion_tokens": 5}}
    )
    assert (response.input_tokens, response.output_tokens) == (0, 5)


@pytest.mark.parametrize("usage", [None, [], "many"])
def test_usage_may_be_missing(usage):
    assert parse_completion({**body(), "usage": usage}).input_tokens == 0


@pytest.mark.parametrize(
    "broken",
    [
        None,
        [],
        "x",
        {},
        {"choices": None},
        {"choices": []},
        {"choices": [None]},
        {"choices": [{}]},
        {"choices": [{"message": 1}]},
    ],
)
def test_a_body_that_is_no_completion_is_an_error(broken):
    with pytest.raises(LLMError):
        parse_completion(broken)


@pytest.mark.parametrize("error", [{"message": "model overloaded"}, "model overloaded"])
def test_an_error_in_a_body_of_status_200_is_told(error):
    with pytest.raises(LLMError, match="model overloaded"):
        parse_completion({"error": error, "choices": []})


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "choices",
                        "message",
                        "content",
                        "tool_calls",
                        "function",
                        "name",
                        "arguments",
                        "id",
                        "usage",
                        "prompt_tokens",
                        "text",
                        "error",
                    ]
                ),
                inner,
            )
        ),
    )
)
def test_whatever_json_comes_it_is_an_answer_or_an_error_of_the_model(value):
    try:
        response = parse_completion(
            {"choices": [{"message": value}]} if isinstance(value, dict) else value
        )
    except LLMError:
        return
    json.dumps(response.message)
    assert isinstance(response.text, str)
