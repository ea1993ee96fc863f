"""The persona's prompt as a template: the cases of Google ADK, and that plain prompts stay as they
are."""

import json
from datetime import datetime

import pytest
from hypothesis import given, strategies as st

from agent.domain.chat_state import (
    is_value_name,
    parse_prompt_placeholders,
    program_values,
    render_known_values,
)


def render_prompt(template, values, tools):
    rendering = render_known_values(template, values, tools)
    assert rendering.missing == ()
    return rendering.text


@pytest.mark.parametrize(
    ("template", "values", "expected"),
    [
        (
            "Hello {user_name}, you are in {app_state} state.",
            {"user_name": "Foo", "app_state": "active"},
            "Hello Foo, you are in active state.",
        ),
        ("Optional value: {optional_value?}", {}, "Optional value: "),
        ("Optional value: {optional_value?}", {"optional_value": 1}, "Optional value: 1"),
        ("Hello {invalid-key}!", {"invalid-key": "x"}, "Hello {invalid-key}!"),
        ("Hello {invalid:key}!", {"invalid:key": "x"}, "Hello {invalid:key}!"),
        ("Hello {app:user_name}!", {"app:user_name": "Foo"}, "Hello Foo!"),
        ("{user:name} {temp:name}", {"user:name": "a", "temp:name": "b"}, "a b"),
        ("Value: {test_key}", {"test_key": None}, "Value: "),
        ("{artifact.my_file} {artifact.}", {}, "{artifact.my_file} {artifact.}"),
        (
            "You are {name},\naged {age}.\n{ hint? }Be kind to { { all } }.",
            {"name": "Ann", "age": 30, "all": "everyone"},
            "You are Ann,\naged 30.\nBe kind to { everyone }.",
        ),
        ("{{name}} and {{{ name }}}", {"name": "Ann"}, "Ann and Ann"),
        ("{名字}你好", {"名字": "小霜"}, "小霜你好"),
    ],
)
def test_the_cases_of_adk(template, values, expected):
    assert render_prompt(template, values, ()) == expected


def test_a_value_that_is_missing_is_told_by_its_placeholder():
    rendering = render_known_values("Hello { missing_key }!", {"other": 1}, ())
    assert rendering.missing == ("{ missing_key }",)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (1.5, "1.5"),
        (["好", 1], '["好", 1]'),
        ({"a": None}, '{"a": null}'),
        ("", ""),
        (0, "0"),
    ],
)
def test_what_is_no_text_is_shown_as_json(value, text):
    assert render_prompt("[{v}]", {"v": value}, ()) == f"[{text}]"


def test_a_tool_stands_for_its_name_where_it_is_enabled():
    tools = ["get_weather", "web-search"]
    assert (
        render_prompt("Call {tool:get_weather} or { tool:web-search }.", {}, tools)
        == "Call get_weather or web-search."
    )
    assert (
        render_prompt("{tool:gone?}{tool:no such}{tool:}", {"gone": 1}, tools)
        == "{tool:no such}{tool:}"
    )
    gone = render_known_values("{tool:gone}", {"gone": 1, "tool:gone": 1}, tools)
    assert gone.missing == ("{tool:gone}",)


def test_what_is_missing_stays_as_written_and_is_reported_once():
    rendering = render_known_values("{a} { b } {tool:c} {a} {d} {e?}!", {"d": "D"}, ())
    assert rendering.text == "{a} { b } {tool:c} {a} D !"
    assert rendering.missing == ("{a}", "{ b }", "{tool:c}")


@pytest.mark.parametrize(
    "prompt",
    [
        '{"city": "北京", "days": [1, {"n": 2}]}',
        "function () { return 1; } ${x.y} {} { } {{}} {0} {a b} {a,b} {a.b} {a:b} {a!r} {?}",
        "}{ {{ }} {",
        json.dumps({"a": {"b": {}}}, indent=2),
        "css { color: red; }",
    ],
)
def test_a_prompt_without_placeholders_stays_exactly_as_it_is(prompt):
    assert parse_prompt_placeholders(prompt) == ()
    assert render_prompt(prompt, {"a": 1, "b": 2, "x": 3}, ["a"]) == prompt


def test_a_brace_of_the_text_around_a_placeholder_is_kept():
    assert render_prompt('{"city": {city}}', {"city": "北京"}, ()) == '{"city": 北京}'
    assert render_prompt('{"city": {{city}}', {"city": "北京"}, ()) == '{"city": 北京'
    assert render_known_values('{"city": {city}}', {}, ()).text == '{"city": {city}}'


def test_what_a_value_holds_is_not_a_template():
    assert render_prompt("{a}{b}", {"a": "{b}{tool:t}", "b": "{a}"}, ["t"]) == "{b}{tool:t}{a}"


@given(
    st.text("{}ab?: \ntol.-"),
    st.dictionaries(st.sampled_from(["a", "b", "ab", "app:a"]), st.integers()),
)
def test_every_prompt_is_rendered_and_what_is_missing_stays(template, values):
    rendering = render_known_values(template, values, ["a"])
    assert all(written in rendering.text for written in rendering.missing)
    assert parse_prompt_placeholders(template) or rendering.text == template


@pytest.mark.parametrize("name", ["a", "_a1", "名字", "app:a", "user:a", "temp:a", "class"])
def test_names_of_values(name):
    assert is_value_name(name)


@pytest.mark.parametrize(
    "name", ["", "1a", "a-b", "a b", "a.b", "app:", "tool:a", "x:a", "app:user:a", ":a", " a", "a?"]
)
def test_what_is_no_name_of_a_value(name):
    assert not is_value_name(name)


def test_the_program_knows_the_time_the_kind_of_chat_and_the_bots_name():
    values = program_values("Frosty", "group", datetime(2026, 11, 22, 7, 5))  # noqa: DTZ001
    text = render_prompt("{bot_name} {chat_kind} {date} {time} {weekday}", values, ())
    assert text == "Frosty 群聊 2026-11-22 07:05 星期日"


def test_a_bot_without_a_name_and_a_run_without_a_chat_have_no_such_values():
    assert set(program_values("", None, datetime(2026, 11, 22))) == {"date", "time", "weekday"}  # noqa: DTZ001
