"""Declaring tools: what the model is told of a function, and how the function is called."""

from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest

from tools.contract import InvalidArguments, InvalidDeclaration, ToolExecutionContext
from tools.plugin_sdk import Plugin, Tool, ToolParameterInfo, ToolParamType
from tools.plugin_sdk.calls import Call
from tools.plugin_sdk.declarations import declaration_of
from tools.plugins.handlers import ToolHandler, build_handler, to_jsonable

CALL = Call(
    "c1",
    session_id="s1",
    stream_id="s1",
    group_id="7",
    user_id="42",
    platform="qq",
    reasoning="because",
)


def handler(function: Any) -> ToolHandler:
    declaration = declaration_of(function)
    assert declaration is not None
    return build_handler(function, declaration)


def schema(function: Any) -> dict[str, Any]:
    return dict(handler(function).declared["parameters_schema"])


def given(**arguments: Any) -> dict[str, Any]:
    return arguments


def test_a_typed_function_needs_no_more_words():
    @Tool
    def repeat(text: str, times: int = 2) -> str:
        """Say it again.

        Args:
            text: What to say.
        """
        return text * times

    made = handler(repeat)
    assert made.declared["name"] == "repeat"
    assert made.declared["description"] == "Say it again."
    assert schema(repeat)["properties"]["text"] == {"type": "string", "description": "What to say."}
    assert schema(repeat)["required"] == ["text"]
    assert made.call({"text": "a", "times": 3}, CALL) == "aaa"
    assert repeat("b") == "bb"


def test_arguments_come_as_their_types():
    @dataclass
    class Trip:
        day: date

    @Tool("plan")
    def plan(trip: Trip) -> int:
        return trip.day.year

    assert handler(plan).call({"trip": {"day": "2026-11-21"}}, CALL) == 2026
    with pytest.raises(InvalidArguments):
        handler(plan).call({"trip": {"day": "someday"}}, CALL)


def test_parameters_can_be_a_list_of_infos():
    infos = [
        ToolParameterInfo("city", description="Where"),
        ToolParameterInfo(
            "days", ToolParamType.INTEGER, required=False, default=3, enum_values=[1, 3]
        ),
        ToolParameterInfo(
            "tags", ToolParamType.ARRAY, required=False, items_schema={"type": "string"}
        ),
    ]
    found = schema(Tool("t", "d", parameters=infos)(given))
    assert found["properties"]["city"] == {"type": "string", "description": "Where"}
    assert found["properties"]["days"] == {"type": "integer", "enum": [1, 3], "default": 3}
    assert found["properties"]["tags"] == {"type": "array", "items": {"type": "string"}}
    assert found["required"] == ["city"]


@pytest.mark.parametrize(
    ("parameters", "properties", "required"),
    [
        (
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"a": {"type": "string"}},
            ["a"],
        ),
        (
            {"a": {"type": "int", "description": "A", "required": True}},
            {"a": {"type": "integer", "description": "A"}},
            ["a"],
        ),
        ({"type": {"type": "string"}}, {"type": {"type": "string"}}, []),
        ({}, {}, []),
    ],
)
def test_parameters_can_be_a_schema_or_one_for_each_name(parameters, properties, required):
    found = schema(Tool("t", parameters=parameters)(given))
    assert found["properties"] == properties
    assert found["required"] == required


@pytest.mark.parametrize(
    "options",
    [
        {"name": "no name"},
        {"name": "t", "parameters": ["a"]},
        {"name": "t", "parameters": {"a": "string"}},
        {"name": "t", "timeout_ms": -1},
        {"name": "t", "timeout_ms": True},
        {"name": "t", "visibility": "sometimes"},
        {"name": "t", "chat_scope": "here"},
        {"name": "t", "parameters": {"type": "object", "properties": {"a": {"type": "nonsense"}}}},
        {"name": "t", "parameters": {"type": "array"}},
    ],
    ids=str,
)
def test_what_cannot_be_offered_is_refused(options):
    with pytest.raises(InvalidDeclaration):
        handler(Tool(**options)(given))


def test_a_function_that_yields_its_results_is_refused():
    @Tool
    def count():
        yield 1

    with pytest.raises(InvalidDeclaration, match="yields"):
        handler(count)


def test_a_description_may_be_given_in_three_ways():
    assert handler(Tool("t", "d", brief_description="b")(given)).declared["description"] == "d"
    assert handler(Tool("t", brief_description="b")(given)).declared["description"] == "b"
    assert (
        handler(Tool("t", "d", detailed_description="long")(given)).declared["description"] == "d"
    )


def test_metadata_travels_with_the_declaration():
    made = Tool(
        "t", core_tool=True, timeout_ms=500, allowed_session={"qq:7"}, visibility="visible"
    )(given)
    assert handler(made).declared["metadata"] == {
        "core_tool": True,
        "timeout_ms": 500,
        "allowed_session": ["qq:7"],
        "visibility": "visible",
    }


# --- Who calls -------------------------------------------------------------------

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}


def test_a_handler_takes_the_context_by_name_where_the_model_has_no_say():
    @Tool("t", parameters=TEXT)
    def handle(text, user_id, **rest):
        return text, user_id, rest

    text, user_id, rest = handler(handle).call(
        {"text": "a", "user_id": "forged", "stream_id": "forged"}, CALL
    )
    assert (text, user_id, rest["stream_id"], rest["chat_id"], rest["group_id"]) == (
        "a",
        "42",
        "s1",
        "s1",
        "7",
    )


def test_a_handler_that_takes_no_context_is_given_none():
    assert handler(Tool("t", parameters=TEXT)(lambda text: text)).call({"text": "a"}, CALL) == "a"


@pytest.mark.parametrize(
    ("said", "taken"), [({"user_id": "99"}, "99"), ({"user_id": ""}, "42"), ({}, "42")]
)
def test_a_declared_name_is_the_models_and_the_context_stands_in(said, taken):
    declared = {"user_id": {"type": "string"}}
    assert (
        handler(Tool("t", parameters=declared)(lambda user_id: user_id)).call(said, CALL) == taken
    )


def test_where_a_call_comes_from_is_never_asked_of_the_model():
    made = Tool("t", parameters=[ToolParameterInfo("stream_id"), ToolParameterInfo("text")])(given)
    assert schema(made)["properties"] == {"text": {"type": "string"}}
    assert schema(made)["required"] == ["text"]
    assert handler(made).call({"stream_id": "forged", "text": "a"}, CALL)["stream_id"] == "s1"


def test_a_typed_function_gets_the_context_from_the_server_alone():
    @Tool
    def whoami(user_id: str, where: ToolExecutionContext, name: str = "") -> str:
        return f"{user_id} {where.group_id} {name}"

    assert list(schema(whoami)["properties"]) == ["name"]
    assert handler(whoami).call({"name": "x"}, CALL) == "42 7 x"
    with pytest.raises(InvalidArguments):
        handler(whoami).call({"user_id": "forged"}, CALL)


def test_a_method_is_called_on_its_plugin():
    class Counting(Plugin):
        def __init__(self) -> None:
            self.count = 0

        @Tool("count_up", parameters={})
        def up(self, **_: Any) -> int:
            self.count += 1
            return self.count

    plugin = Counting()
    made = handler(plugin.up)
    assert [made.call({}, CALL), made.call({}, CALL)] == [1, 2]


# --- What comes back -------------------------------------------------------------


def test_whatever_is_returned_becomes_json():
    circle: list[Any] = []
    circle.append(circle)

    @dataclass
    class Point:
        x: int

    value = {1: (2, {3}), "at": date(2026, 1, 2), "raw": b"\x00", "point": Point(4), "odd": int}
    assert to_jsonable(value) == {
        "1": [2, [3]],
        "at": "2026-01-02",
        "raw": "AA==",
        "point": {"x": 4},
        "odd": "<class 'int'>",
    }
    assert isinstance(to_jsonable(circle), str)
