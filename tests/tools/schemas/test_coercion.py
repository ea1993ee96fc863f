"""Readings that lose nothing, and values that stay for the validator to refuse."""

from typing import Any

import pytest
from hypothesis import given, strategies as st

from tools.schemas.arguments import coerce_value

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
KINDS = ["string", "integer", "number", "boolean", "array", "object", "null"]


def read(schema: Any, value: Any) -> Any:
    """``value`` as the argument ``a`` of a tool."""
    root = {
        "type": "object",
        "properties": {"a": schema},
        "$defs": {"n": {"type": "integer"}, "t": {"items": {"$ref": "#/$defs/n"}}},
    }
    return coerce_value(root, {"a": value}, root).get("a", "absent")


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("integer", "10", 10),
        ("integer", " -3 ", -3),
        ("integer", 2.0, 2),
        ("number", "1.5", 1.5),
        ("number", "10", 10),
        ("boolean", "true", True),
        ("boolean", "False", False),
        ("string", 12345678901, "12345678901"),
        ("string", 1.2345e19, "12345000000000000000"),
        ("string", 2.0, "2"),
        ("string", 0.0000001, "0.0000001"),
        ("array", '["x"]', ["x"]),
        ("object", '{"x": 1}', {"x": 1}),
    ],
)
def test_harmless_readings(kind, value, expected):
    result = read({"type": kind}, value)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("integer", "1.5"),
        ("integer", 1.5),
        ("integer", True),
        ("integer", "9" * 5000),
        ("integer", ""),
        ("number", "nan"),
        ("number", "1e999"),
        ("boolean", 1),
        ("boolean", "yes"),
        ("string", True),
        ("string", ["x"]),
        ("array", "x"),
        ("array", '{"x": 1}'),
        ("object", "[1]"),
        ("object", "[" * 100_000),
        ("null", "null"),
        ("nonsense", "x"),
    ],
)
def test_everything_else_stays_as_it_is(kind, value):
    result = read({"type": kind}, value)
    assert result == value
    assert type(result) is type(value)


def test_a_float_that_no_id_can_be_stays():
    assert read({"type": "string"}, float("inf")) == float("inf")


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"$ref": "#/$defs/n"}, "1", 1),
        ({"$ref": "#/$defs/t"}, ["1", "2"], [1, 2]),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "1", 1),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "1", "1"),
        (
            {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
            '["1"]',
            [1],
        ),
        ({"oneOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]}, 3.0, 3),
        ({"allOf": [{"type": "integer"}]}, "1", 1),
        ({"type": ["integer", "string"]}, "1", "1"),
        ({"type": ["integer", "null"]}, "1", 1),
        ({"prefixItems": [{"type": "string"}], "items": {"type": "integer"}}, [1, "2"], ["1", 2]),
        ({"additionalProperties": {"type": "integer"}}, {"x": "1"}, {"x": 1}),
        ({"additionalProperties": False}, {"x": "1"}, {"x": "1"}),
    ],
)
def test_nested_schemas_are_followed(schema, value, expected):
    assert read(schema, value) == expected


def test_an_alternative_is_told_by_its_fixed_field():
    branches = [
        {"type": "object", "properties": {"kind": {"const": kind}, "n": {"type": wanted}}}
        for kind, wanted in (("x", "integer"), ("y", "string"))
    ]
    assert read({"oneOf": branches}, {"kind": "x", "n": "1"}) == {"kind": "x", "n": 1}
    assert read({"oneOf": branches}, {"kind": "y", "n": 1}) == {"kind": "y", "n": "1"}
    assert read({"oneOf": branches}, {"n": "1"}) == {"n": "1"}


def test_null_for_an_optional_field_is_not_given():
    assert read({"type": "string"}, None) == "absent"
    assert read({"enum": ["x", "y"]}, None) == "absent"
    assert read({"$ref": "#/$defs/n"}, None) == "absent"


@pytest.mark.parametrize(
    "schema",
    [{}, True, {"type": ["string", "null"]}, {"anyOf": [{"type": "null"}]}, {"enum": ["x", None]}],
)
def test_null_stays_where_it_is_a_value(schema):
    assert read(schema, None) is None


def test_null_for_a_required_field_stays():
    schema = {"properties": {"a": {"type": "string"}}, "required": ["a"]}
    assert coerce_value(schema, {"a": None}, schema) == {"a": None}


@given(st.sampled_from(KINDS), json_values)
def test_no_value_of_any_kind_raises(kind, value):
    coerce_value({"type": kind}, value, {})


@given(json_values)
def test_a_schema_that_wants_nothing_changes_nothing(value):
    assert repr(coerce_value({}, value, {})) == repr(value)
