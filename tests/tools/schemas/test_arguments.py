"""A model's arguments, from its text to an object that may reach a tool."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tools.contract import InvalidArguments, JsonSchema, ToolFailed
from tools.schemas.arguments import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_VALUES,
    TOO_DEEP,
    TOO_LARGE,
    TOO_MANY,
    check_arguments,
    parse_arguments,
)

ANYTHING: JsonSchema = {"type": "object"}


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


def problems_of(schema: JsonSchema | None, arguments: dict[str, Any]) -> list[str]:
    with pytest.raises(InvalidArguments) as caught:
        check_arguments(schema, arguments)
    return caught.value.problems


@pytest.mark.parametrize("raw", ["", "  \n", None, "{}", "null", {}, '""'])
def test_nothing_is_an_empty_object(raw):
    assert parse_arguments(raw) == {}


@pytest.mark.parametrize(
    "raw", ['{"a": [1, "好"]}', {"a": [1, "好"]}, json.dumps('{"a": [1, "好"]}')]
)
def test_an_object_is_read_from_text_and_taken_as_it_is(raw):
    assert parse_arguments(raw) == {"a": [1, "好"]}


@pytest.mark.parametrize(
    "raw",
    ["[]", "1", '"city"', "{oops", '{"a": NaN}', '{"a": -Infinity}', '{"a": 1e999}', "{'a': 1}"],
)
def test_what_is_no_object_is_refused_with_one_line(raw):
    with pytest.raises(InvalidArguments) as caught:
        parse_arguments(raw)
    assert len(caught.value.problems) == 1


def test_text_of_endless_depth_is_refused():
    with pytest.raises(InvalidArguments) as caught:
        parse_arguments('{"a":' + "[" * 100_000)
    assert caught.value.problems == [TOO_DEEP]


def test_text_beyond_a_mebibyte_is_refused_before_it_is_read():
    with pytest.raises(InvalidArguments) as caught:
        parse_arguments('{"a": "' + "好" * (MAX_BYTES // 3) + '"}')
    assert caught.value.problems == [TOO_LARGE]


@given(st.text())
def test_no_text_raises_anything_else(raw):
    with contextlib.suppress(InvalidArguments):
        assert isinstance(parse_arguments(raw), dict)


def test_depth_is_counted_in_lists_and_objects():
    assert check_arguments(ANYTHING, {"a": nested(MAX_DEPTH - 1)})
    assert problems_of(ANYTHING, {"a": nested(MAX_DEPTH)}) == [TOO_DEEP]


def test_huge_arguments_have_one_problem():
    assert problems_of(ANYTHING, {"a": "x" * MAX_BYTES}) == [TOO_LARGE]
    assert problems_of(None, {"a": [0] * MAX_VALUES}) == [TOO_MANY]


def test_depth_hidden_in_a_string_is_refused_as_well():
    schema = {"type": "object", "properties": {"a": {"type": "array"}}}
    assert problems_of(schema, {"a": "[" * 40 + "]" * 40}) == [TOO_DEEP]
    endless = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/l"}},
        "$defs": {"l": {"type": "array", "items": {"$ref": "#/$defs/l"}}},
    }
    assert problems_of(endless, {"a": "[" * 400 + "]" * 400}) == [TOO_DEEP]


def test_values_hidden_in_several_strings_are_counted_together():
    schema = {"type": "object", "additionalProperties": {"type": "array"}}
    zeros = json.dumps([0] * (MAX_VALUES // 2))
    assert problems_of(schema, {"a": zeros, "b": zeros}) == [TOO_MANY]


def test_without_a_schema_everything_else_passes():
    assert check_arguments(None, {"a": {"b": 1}}) == {"a": {"b": 1}}


def test_the_given_arguments_are_not_changed():
    given_arguments = {"n": "1", "list": ["2"]}
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "list": {"items": {"type": "integer"}}},
    }
    assert check_arguments(schema, given_arguments) == {"n": 1, "list": [2]}
    assert given_arguments == {"n": "1", "list": ["2"]}


def test_unknown_fields_pass_unless_the_schema_is_closed():
    assert check_arguments({"type": "object", "properties": {}}, {"x": 1}) == {"x": 1}
    assert problems_of(
        {"type": "object", "properties": {}, "additionalProperties": False}, {"x": 1}
    ) == ["x 不是已知参数"]


def test_half_a_surrogate_pair_is_replaced():
    assert check_arguments(ANYTHING, parse_arguments('{"a": ["\\ud83d!", "\\ud83d\\ude00"]}')) == {
        "a": ["?!", "😀"]
    }


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense"},
        {"properties": []},
        {"properties": {"a": {"$ref": "#/$defs/missing"}}},
        {"properties": {"a": {"$ref": "http://example.com/schema.json"}}},
        {"properties": {"a": {"pattern": "("}}},
        {"properties": {"a": {"allOf": [{"$ref": "#/properties/a"}]}}},
    ],
)
def test_a_schema_that_cannot_be_used_is_no_problem_of_the_model(schema):
    with pytest.raises(ToolFailed):
        check_arguments(schema, {"a": "x"})


def test_a_schema_of_an_older_draft_is_read_as_such():
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"a": {"items": [{"type": "string"}]}},
    }
    assert problems_of(schema, {"a": [True]}) == ["a[0] 应为字符串"]


def test_a_schema_changed_in_place_is_read_anew():
    schema: dict[str, Any] = {"type": "object", "required": []}
    assert check_arguments(schema, {}) == {}
    schema["required"].append("city")
    assert problems_of(schema, {}) == ["city 不能为空"]
