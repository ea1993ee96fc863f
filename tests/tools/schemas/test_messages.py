"""One line for each fault, in words the model can act on."""

from typing import Any

import pytest

from tools.schemas.arguments import schema_messages
from tools.schemas.validation_messages import MAX_SHOWN, format_path, limit_lines

MESSAGES: dict[str, Any] = {
    "type": "object",
    "properties": {
        "messages": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {
                    "type": {"type": "string", "enum": ["plain", "image"]},
                    "text": {"type": "string", "minLength": 1},
                },
                "required": ["type"],
                "if": {"properties": {"type": {"const": "plain"}}},
                "then": {"required": ["text"]},
            },
        }
    },
    "required": ["messages"],
}


def problems(schema: Any, value: Any) -> list[str]:
    """The faults of ``value`` as the argument ``a``."""
    return schema_messages({"type": "object", "properties": {"a": schema}}, {"a": value})


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, ["messages 不能为空"]),
        ({"messages": []}, ["messages 不能为空"]),
        ({"messages": None}, ["messages 不能为空"]),
        ({"messages": "hi"}, ["messages 应为数组"]),
        ({"messages": ["hi"]}, ["messages[0] 应为对象"]),
        ({"messages": [{"type": "plain"}]}, ["messages[0].text 不能为空"]),
        ({"messages": [{"type": "plain", "text": ""}]}, ["messages[0].text 不能为空"]),
        ({"messages": [{"type": "foo"}]}, ["messages[0].type 不支持: foo"]),
        (
            {"messages": [{"type": "image"}, {"text": 1, "type": "image"}]},
            ["messages[1].text 应为字符串"],
        ),
    ],
)
def test_problems_name_the_place_and_what_is_wanted(arguments, expected):
    assert schema_messages(MESSAGES, arguments) == expected


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": "integer"}, 1.5, "a 应为整数"),
        ({"type": "integer"}, True, "a 应为整数"),
        ({"type": ["integer", "boolean"]}, "x", "a 应为整数或布尔值"),
        ({"type": "string"}, None, "a 不能为空"),
        ({"enum": [1, 2]}, {"x": "好"}, 'a 不支持: {"x": "好"}'),
        ({"const": "x"}, "y", "a 应为 x"),
        ({"minLength": 3}, "xy", "a 至少 3 个字符"),
        ({"maxLength": 1}, "xy", "a 最多 1 个字符"),
        ({"pattern": r"\S"}, "  ", "a 不能为空"),
        ({"pattern": "^x$"}, "y", "a 格式不正确，应匹配 ^x$"),
        ({"minimum": 1}, 0, "a 不能小于 1"),
        ({"maximum": 1}, 2, "a 不能大于 1"),
        ({"exclusiveMinimum": 1}, 1, "a 应大于 1"),
        ({"exclusiveMaximum": 1}, 1, "a 应小于 1"),
        ({"multipleOf": 2}, 3, "a 应为 2 的倍数"),
        ({"minItems": 2}, [1], "a 至少 2 项"),
        ({"maxItems": 1}, [1, 2], "a 最多 1 项"),
        ({"uniqueItems": True}, [1, 1], "a 不能有重复项"),
        ({"not": {"type": "string"}}, "x", "a 不符合要求"),
        ({"dependentRequired": {"x": ["y"]}}, {"x": 1}, "a.y 不能为空"),
        (
            {"patternProperties": {"^x": {}}, "additionalProperties": False},
            {"xa": 1, "b": 1},
            "a.b 不是已知参数",
        ),
        (
            {"contains": {"const": 1}},
            [2],
            "a 不符合要求: [2] does not contain items matching the given schema",
        ),
    ],
)
def test_every_kind_of_problem_has_words(schema, value, expected):
    assert problems(schema, value) == [expected]


@pytest.mark.parametrize(
    ("branches", "value", "expected"),
    [
        ([{"type": "integer"}, {"type": "null"}], "x", ["a 应为整数或null"]),
        (
            [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}],
            [1, "x"],
            ["a[1] 应为整数"],
        ),
        ([{"type": "string", "enum": ["x"]}, {"type": "null"}], "y", ["a 不支持: y"]),
        ([{"minimum": 5}, {"multipleOf": 2}], 3, ["a 不能小于 5"]),
        ([{"required": ["x", "y"]}, {"required": ["z"]}], {}, ["a.z 不能为空"]),
        ([False, False], 3, ["a 不符合要求: False schema does not allow 3"]),
    ],
)
def test_of_alternatives_the_one_that_was_meant_is_spoken_of(branches, value, expected):
    assert problems({"anyOf": branches}, value) == expected


def test_a_fixed_field_decides_which_alternative_was_meant():
    branches = [
        {"properties": {"kind": {"const": kind}, "n": {"type": wanted}}, "required": ["kind"]}
        for kind, wanted in (("x", "integer"), ("y", "array"))
    ]
    assert problems({"oneOf": branches}, {"kind": "y", "n": 1}) == ["a.n 应为数组"]
    assert problems({"oneOf": branches}, {"kind": "z"}) == ["a.kind 不支持: z"]


def test_more_than_one_alternative_at_once_is_a_problem():
    assert problems({"oneOf": [{"minimum": 1}, {"maximum": 5}]}, 3) == ["a 不符合要求"]


def test_each_missing_field_has_one_line():
    assert schema_messages({"required": ["x", "y"]}, {}) == ["x 不能为空", "y 不能为空"]


def test_a_problem_of_the_whole_is_of_the_arguments():
    assert schema_messages({"minProperties": 1}, {}) == ["参数 不能为空"]


def test_after_twenty_lines_the_rest_is_counted():
    lines = problems({"items": {"type": "string"}}, list(range(25)))
    assert len(lines) == 21
    assert lines[19] == "a[19] 应为字符串"
    assert lines[20] == "……还有 5 处"
    assert limit_lines(str(n) for n in range(20)) == [str(n) for n in range(20)]


def test_what_a_line_repeats_is_cut_and_stays_on_one_line():
    [line] = problems({"enum": ["x"]}, "a\nb" + "c" * 1000)
    assert line.startswith("a 不支持: a b")
    assert len(line) < MAX_SHOWN + 20
    assert format_path(["a\nb", 0]) == "a b[0]"
