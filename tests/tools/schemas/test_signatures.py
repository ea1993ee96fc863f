"""What is inferred from a function: its words and its schemas."""

import datetime
import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from tools.contract import InvalidDeclaration, ToolExecutionContext
from tools.schemas.signatures import (
    DocstringParts,
    Function,
    FunctionParameters,
    result_adapter,
    result_schema,
)

GOOGLE = """Find it.

    Slowly.

    Args:
        city: where
        days (int): how many

    Returns:
        The answer.
    """
NUMPY = """Find it.

    Slowly.

    Parameters
    ----------
    city : str
        where
    days : int
        how many
    """
SPHINX = """Find it.

    Slowly.

    :param city: where
    :param int days: how many
    """


class Colour(enum.Enum):
    RED = "red"


class Place(BaseModel):
    city: str
    colour: Colour = Colour.RED


@dataclass
class Row:
    n: int


class Tree(BaseModel):
    children: "list[Tree]" = []


def schema_of(function: Function) -> dict[str, Any]:
    return FunctionParameters(function, DocstringParts.of(function).parameters).schema()


def property_of(annotation: Any) -> Any:
    """The schema of one parameter annotated ``annotation``."""

    def function(a):
        pass

    function.__annotations__["a"] = annotation
    return schema_of(function)["properties"]["a"]


def output_of(annotation: Any) -> Any:
    return result_schema(result_adapter(annotation))


@pytest.mark.parametrize("doc", [GOOGLE, NUMPY, SPHINX])
def test_a_docstring_of_any_style_gives_the_words(doc):
    def find(city: str, days: int):
        pass

    find.__doc__ = doc
    words = DocstringParts.of(find)
    assert words.description == "Find it.\n\nSlowly."
    assert words.parameters == {"city": "where", "days": "how many"}
    assert schema_of(find)["properties"]["days"] == {"type": "integer", "description": "how many"}


def test_a_function_without_a_docstring_has_no_words():
    assert DocstringParts.of(lambda: None) == DocstringParts("", {})


def test_annotations_win_over_the_docstring():
    def find(a: Annotated[str, Field(description="field")], b: Annotated[str, "text"], c: str):
        """Find.

        Args:
            a: doc
            b: doc
            c: doc
        """

    properties = schema_of(find)["properties"]
    assert [properties[name]["description"] for name in "abc"] == ["field", "text", "doc"]


def test_the_schema_is_a_closed_object_in_the_order_of_the_parameters():
    def find(city: str, days: int = 3, kind: Literal["a", "b"] = "a"):
        pass

    assert schema_of(find) == {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer", "default": 3},
            "kind": {"enum": ["a", "b"], "type": "string", "default": "a"},
        },
        "required": ["city"],
        "additionalProperties": False,
    }


def test_a_function_without_parameters_takes_an_empty_object():
    assert schema_of(lambda: None) == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (bool, {"type": "boolean"}),
        (float, {"type": "number"}),
        (Any, {}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (datetime.datetime, {"type": "string", "format": "date-time"}),
        (Annotated[int, Field(ge=1, le=9)], {"type": "integer", "minimum": 1, "maximum": 9}),
        (Annotated[str, Field(title="Own")], {"type": "string", "title": "Own"}),
    ],
)
def test_types_become_schemas(annotation, schema):
    assert property_of(annotation) == schema


def test_models_are_defined_beside_the_properties_without_titles():
    def go(place: Place):
        pass

    schema = schema_of(go)
    assert schema["properties"] == {"place": {"$ref": "#/$defs/Place"}}
    assert schema["$defs"]["Colour"] == {"enum": ["red"], "type": "string"}
    assert "title" not in schema["$defs"]["Place"]


def test_any_name_may_be_a_parameter():
    def go(
        json: str, schema: str, model_config: str, _private: str, self: str = "", title: str = ""
    ):
        pass

    assert list(schema_of(go)["properties"]) == [
        "json",
        "schema",
        "model_config",
        "_private",
        "self",
        "title",
    ]
    given = {"json": "1", "schema": "2", "model_config": "3", "_private": "4"}
    _, values = FunctionParameters(go, {}).bind(given, ToolExecutionContext())
    assert values == {**given, "self": "", "title": ""}


def test_a_default_may_be_declared_as_a_field():
    def go(
        n: int = Field(7, description="how many", le=9),
        label: Annotated[str, Field(alias="from")] = "x",
    ):
        pass

    properties = schema_of(go)["properties"]
    assert properties["n"] == {
        "default": 7,
        "description": "how many",
        "maximum": 9,
        "type": "integer",
    }
    assert "from" in properties
    assert FunctionParameters(go, {}).bind({"from": "y"}, ToolExecutionContext()) == (
        [],
        {"n": 7, "label": "y"},
    )


def test_a_mutable_default_is_not_shared_between_calls():
    def go(seen: list[int] = []):  # noqa: B006 - what is tested
        pass

    parameters = FunctionParameters(go, {})
    parameters.bind({}, ToolExecutionContext())[1]["seen"].append(1)
    assert parameters.bind({}, ToolExecutionContext())[1] == {"seen": []}


def test_postponed_annotations_are_read():
    def go(n: "int", context: "ToolExecutionContext") -> "int":
        return n

    assert schema_of(go)["properties"] == {"n": {"type": "integer"}}


@pytest.mark.parametrize(
    "annotation",
    [Callable[[int], int], Function, "Missing", 5],
    ids=["callable", "any callable", "unknown name", "no type"],
)
def test_what_cannot_be_described_is_refused_at_its_declaration(annotation):
    with pytest.raises(InvalidDeclaration):
        property_of(annotation)


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (
            int,
            {
                "type": "object",
                "properties": {"result": {"type": "integer"}},
                "required": ["result"],
            },
        ),
        (Row, {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Row | None, None),
        (str, None),
        (None, None),
        (Any, None),
    ],
)
def test_results_are_described_as_structured_content(annotation, schema):
    assert output_of(annotation) == schema


def test_definitions_of_a_wrapped_result_stay_within_reach():
    assert output_of(list[Row]) == {
        "type": "object",
        "properties": {"result": {"type": "array", "items": {"$ref": "#/$defs/Row"}}},
        "required": ["result"],
        "$defs": {
            "Row": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        },
    }


def test_a_result_that_holds_itself_is_described_as_an_object():
    schema: Mapping[str, Any] = output_of(Tree)
    assert schema["type"] == "object"
    assert "Tree" in schema["$defs"]
