"""Tool calls written as text: every format that models are known to use, and prose about it."""

import json

import pytest
from hypothesis import given, strategies as st

from agent.llm.answers.bounds import ANSWER_LIMIT
from agent.llm.answers.text_calls import MOST_CALLS, TextCall, looks_like_calls, parse_text_calls
from tests.agent.llm.answers import recorded_text

OFFERED = {"get_weather", "game_version"}
PARIS = TextCall("get_weather", '{"city": "Paris"}')
LONDON = TextCall("get_weather", '{"city": "London"}')
BARE = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
HERMES = f"<tool_call>\n{BARE}\n</tool_call>"
DSML = (
    '<｜DSML｜{0}>\n<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city" '
    'string="true">Paris</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜{0}>'
)


def deepseek(*calls: str) -> str:
    marked = "\n".join(f"<｜tool▁call▁begin｜>{call}<｜tool▁call▁end｜>" for call in calls)
    return f"<｜tool▁calls▁begin｜>{marked}<｜tool▁calls▁end｜><｜end▁of▁sentence｜>"


@pytest.mark.parametrize(
    "text",
    [
        HERMES,
        HERMES.removesuffix("\n</tool_call>"),
        HERMES.replace("{", "{{", 1).replace("}}", "}}}"),
        HERMES + "<|im_end|>",
        f"```xml\n{HERMES}\n```",
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n"
        "</tool_call>",
        "<function=get_weather><parameter=city>Paris</parameter></function></tool_call>",
        '<function=get_weather>{"city": "Paris"}</function>',
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n</tool_call>",
        "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value></tool_call>",
        BARE,
        f"[{BARE}]",
        f"```json\n{BARE}\n```",
        BARE.replace("arguments", "parameters"),
        BARE.replace('{"city": "Paris"}', json.dumps('{"city": "Paris"}')),
        f'{{"id": "1", "type": "function", "function": {BARE}}}',
        f"[TOOL_CALLS] [{BARE}]",
        '[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}</s>',
        '[TOOL_CALLS]get_weather[CALL_ID]abc123def[ARGS]{"city": "Paris"}',
        f"<|python_tag|>{BARE}<|eom_id|>",
        f"<tool_calls>[{BARE}]</tool_calls>",
        deepseek('function<｜tool▁sep｜>get_weather\n```json\n{"city": "Paris"}\n```'),
        deepseek('get_weather<｜tool▁sep｜>{"city": "Paris"}'),
        DSML.format("function_calls"),
        DSML.format("tool_calls"),
        '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Paris</parameter>'
        "\n</invoke>\n</minimax:tool_call>",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
        '<|tool_call_argument_begin|>{"city": "Paris"}<|tool_call_end|><|tool_calls_section_end|>',
        "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
        '{"city": "Paris"}<|call|>',
    ],
)
def test_a_call_in_each_known_format_is_read(text):
    assert parse_text_calls(text, OFFERED) == [PARIS]


@pytest.mark.parametrize(
    "text",
    [
        f"{HERMES}\n{HERMES.replace('Paris', 'London')}",
        f"{BARE}\n{BARE.replace('Paris', 'London')}",
        f"```json\n{BARE}\n```\n```json\n{BARE.replace('Paris', 'London')}\n```",
        '[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}'
        '[TOOL_CALLS]get_weather[ARGS]{"city": "London"}',
        deepseek(
            'get_weather<｜tool▁sep｜>{"city": "Paris"}',
            'get_weather<｜tool▁sep｜>{"city": "London"}',
        ),
    ],
)
def test_several_calls_are_read_in_their_order(text):
    assert parse_text_calls(text, OFFERED) == [PARIS, LONDON]


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('<tool_call>{"name": "get_weather", "arguments": {"city": "Pa', '{"city": "Pa'),
        ('<tool_call>{"name": "get_weather"', ""),
        ('<|python_tag|>{"name": "get_weather", "parameters": {city: Paris}}', "{city: Paris}}"),
        ('[TOOL_CALLS]get_weather[ARGS]{"ci', '{"ci'),
        (deepseek('get_weather<｜tool▁sep｜>{"ci'), '{"ci'),
        ("<function=get_weather>\n<parameter=city>\nPa", "<parameter=city>\nPa"),
    ],
)
def test_between_marks_a_broken_call_is_a_call_with_what_there_is(text, arguments):
    assert parse_text_calls(text, OFFERED) == [TextCall("get_weather", arguments)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "你好",
        f"I will call {BARE}",
        f"{BARE} That is how.",
        f"{HERMES}\nDone.",
        f"Let me look.\n{HERMES}",
        '{"name": "get_weather"}',
        '{"name": "get_weather", "arguments": {}, "age": 3}',
        '{"name": "get_weather", "arguments": [1]}',
        '{"name": "get_weather", "arguments": "Paris"}',
        '{"name": "get_weather", "arguments": {"city": "Pa',
        '{"name": "other", "arguments": {}}',
        f"{HERMES}{HERMES.replace('get_weather', 'other')}",
        "[1, 2]",
        "[]",
        "7",
        "<tool_call>",
        "<tool_call></tool_call>",
        HERMES * (MOST_CALLS + 1),
    ],
)
def test_what_is_not_only_calls_of_offered_tools_is_none(text):
    assert parse_text_calls(text, OFFERED) is None


def test_values_without_a_type_are_strings_and_others_keep_theirs():
    qwen = "<function=get_weather>\n<parameter=a>\n1\n2\n</parameter>\n</function>"
    dsml = DSML.format("tool_calls").replace('"true">Paris', '"false">[5]')
    assert parse_text_calls(qwen, OFFERED) == [TextCall("get_weather", '{"a": "1\\n2"}')]
    assert parse_text_calls(dsml, OFFERED) == [TextCall("get_weather", '{"city": [5]}')]


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("qwen_weather_en", ["get_weather"]),
        ("qwen_weather_zh", ["get_weather"]),
        ("qwen_version_en", ["game_version"]),
        ("qwen_two_cities", ["get_weather"]),
        ("qwen_after_result_zh", ["get_weather", "game_version"]),
    ],
)
def test_the_calls_that_a_real_model_wrote_as_text_are_read(name, calls):
    found = parse_text_calls(recorded_text(name), OFFERED)
    assert found is not None
    assert [call.name for call in found] == calls
    assert all(isinstance(json.loads(call.arguments), dict) for call in found)


@pytest.mark.parametrize(
    "name", ["qwen_version_zh", "qwen_about_calls", "qwen_cut_zh", "qwen_cut_en", "qwen_cut_code"]
)
def test_what_a_real_model_said_about_tools_stays_prose(name):
    text = recorded_text(name)
    assert parse_text_calls(text, OFFERED) is None
    assert not looks_like_calls(text)


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        (f"Let me look.\n{HERMES}", True),
        (HERMES.replace("get_weather", "other"), True),
        ("好的。" + deepseek("f<｜tool▁sep｜>{}"), True),
        ("<|tool_call>call:f{}<tool_call|>", True),
        ('{"name": "get_weather", "arguments": {"city": "Pa', True),
        ("<tool_call>", True),
        ("Hermes writes <tool_call> before a call.", False),
        (f"`{BARE}` and `{HERMES!r}` are calls.", False),
        (f"Like this:\n```\n{HERMES}\n```", False),
        ("[TOOL_CALLS] is a token of Mistral's.", False),
        ('Sure. [TOOL_CALLS]other[ARGS]{"a": 1}', True),
        ("你好", False),
        (f"Qwen writes <tool_call>{BARE}</tool_call> when it calls.", False),
        (f"Qwen writes <tool_call>{BARE}</tool_call>", True),
        (f"So: <tool_call>{BARE}</tool_call> is one.\n{HERMES}", True),
    ],
)
def test_marks_of_calls_are_seen_where_they_are_no_mention(text, marked):
    assert looks_like_calls(text) is marked


@pytest.mark.parametrize(
    "piece", ["<tool_call>", "{", "[", "```json\n{}\n```\n", '<invoke name="f">', " ", '{"a":']
)
def test_hostile_answers_are_read_within_seconds(piece):
    text = (piece * ANSWER_LIMIT)[: ANSWER_LIMIT // 16]
    assert parse_text_calls(text, OFFERED) is None
    looks_like_calls(text)


MARKS = [
    "<tool_call>",
    "</tool_call>",
    "{",
    "}",
    '"name": ',
    '"f"',
    ",",
    "[TOOL_CALLS]",
    "\n",
    "```",
]


@given(
    st.lists(st.sampled_from([*MARKS, '"arguments": {}', "<function=f>", "<arg_key>"])).map("".join)
)
def test_no_text_raises(text):
    for call in parse_text_calls(text, {"f"}) or []:
        assert call.name == "f"
    looks_like_calls(text)
