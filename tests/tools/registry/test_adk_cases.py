"""Google ADK's own test cases for function tools, through the registry as the run loop calls it."""

from typing import Any, NotRequired, TypedDict

import pytest

from tools.contract import (
    LONG_RUNNING_NOTE,
    InvalidDeclaration,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolInvocation,
)
from tools.functions.function_tool import FunctionProvider, FunctionTool, tool
from tools.registry.registry import ToolRegistry


class Sum(TypedDict):
    sum: int


class Report(TypedDict):
    status: str
    report: str


async def called(function: FunctionTool, arguments: Any = None) -> ToolExecutionResult:
    registry = ToolRegistry()
    registry.register_provider(FunctionProvider("p", "builtin", [function]))
    return await registry.invoke(ToolInvocation(function.spec.name, arguments))


@tool
def add(a: int, b: int) -> Sum:
    """sums two integers"""
    return {"sum": a + b}


@tool
def weather(city: str) -> Report:
    reports = {"london": "Cloudy.", "paris": "Sunny."}
    if city not in reports:
        raise LookupError(f"no weather for {city}")
    return {"status": "success", "report": reports[city]}


async def test_a_sum_is_an_object():
    assert (await called(add, {"a": 2, "b": 3})).structured_content == {"sum": 5}
    assert add.spec.output_schema == {
        "type": "object",
        "properties": {"sum": {"type": "integer"}},
        "required": ["sum"],
    }


@pytest.mark.parametrize(("city", "report"), [("london", "Cloudy."), ("paris", "Sunny.")])
async def test_a_known_city_has_a_report(city, report):
    assert (await called(weather, {"city": city})).structured_content == {
        "status": "success",
        "report": report,
    }


async def test_an_unknown_city_is_an_error_and_no_crash(caplog):
    result = await called(weather, {"city": "new york"})
    assert (result.success, result.error_message) == (
        False,
        "工具执行失败: no weather for new york",
    )
    assert result.metadata["error_detail"] == "LookupError: no weather for new york"
    assert "Traceback" not in result.get_history_content()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (None, "a 不能为空\nb 不能为空"),
        ("", "a 不能为空\nb 不能为空"),
        ({"a": 2}, "b 不能为空"),
        ({"a": 2, "b": 3, "c": 4}, "c 不是已知参数"),
        ({"a": 2, "b": "three"}, "b 应为整数"),
        ({"a": 2, "b": 1.5}, "b 应为整数"),
        ({"a": 2, "b": True}, "b 应为整数"),
        ({"a": 2, "b": [3]}, "b 应为整数"),
        ("[2, 3]", "参数应为 JSON 对象"),
        (5, "参数应为 JSON 对象"),
    ],
)
async def test_arguments_the_function_does_not_take_never_reach_it(arguments, told):
    assert (await called(add, arguments)).error_message == told


async def test_nothing_at_all_is_an_empty_object():
    @tool
    def rest() -> None:
        return None

    nothings: list[Any] = [None, "", "null", {}, "{}"]
    assert [(await called(rest, nothing)).success for nothing in nothings] == [True] * 5


async def test_whole_numbers_in_any_dress_are_integers():
    @tool
    def total(numbers: list[int], extra: int | None = None) -> int:
        return sum(numbers) + (extra or 0)

    assert (await called(total, {"numbers": [1.0, "2", 3], "extra": 4.0})).structured_content == {
        "result": 10
    }


class Leg(TypedDict):
    """One leg of a way."""

    to: str
    days: NotRequired[int]


@tool
def travel(legs: list[Leg], last: Leg | None = None) -> dict[str, Leg]:
    return {leg["to"]: leg for leg in [*legs, *([last] if last else [])]}


async def test_a_typed_dict_is_an_object_with_its_own_required_keys():
    result = await called(travel, {"legs": [{"to": "a", "days": "2"}], "last": {"to": "b"}})
    assert result.structured_content == {"a": {"to": "a", "days": 2}, "b": {"to": "b"}}
    assert (await called(travel, {"legs": [{"days": 1}]})).error_message == "legs[0].to 不能为空"
    [(name, leg)] = (travel.spec.parameters_schema or {})["$defs"].items()
    assert (name, leg["required"]) == ("Leg", ["to"])


def test_two_tools_are_two_declarations_and_a_name_cannot_be_taken_twice():
    with pytest.raises(InvalidDeclaration, match="duplicate tool: add"):
        FunctionProvider("p", "builtin", [add, weather, tool(name="add")(weather.function)])


def test_a_long_running_tool_keeps_its_own_description():
    @tool(is_long_running=True)
    def brew() -> dict[str, str]:
        """Make tea."""
        return {"status": "pending"}

    assert brew.spec.is_long_running
    assert brew.spec.description == "Make tea."
    assert brew.spec.llm_definition()["description"] == f"Make tea.\n\n{LONG_RUNNING_NOTE}"
    assert not add.spec.is_long_running


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"status": "pending"}, '{"status": "pending"}'),
        ("still waiting", "still waiting"),
        (None, ""),
    ],
)
async def test_the_first_result_of_a_long_running_tool_is_marked(value, told):
    @tool(is_long_running=True)
    def brew() -> Any:
        return value

    result = await called(brew)
    assert (result.success, result.get_history_content()) == (True, told)
    assert result.metadata["is_long_running"] is True


async def test_a_parameter_called_tool_context_is_the_context():
    @tool
    def look(city: str, tool_context) -> str:
        return f"{city} {tool_context.user_id}"

    assert list((look.spec.parameters_schema or {})["properties"]) == ["city"]
    assert (await look({"city": "x"}, ToolExecutionContext(user_id="7"))).content == "x 7"


async def test_a_context_cannot_be_written_by_the_model():
    @tool
    def look(chat: ToolExecutionContext) -> str:
        return chat.user_id

    assert (await called(look, {"chat": {"user_id": "1"}})).error_message == "chat 不是已知参数"


def test_what_yields_is_no_tool():
    def some():
        yield 1

    async def more():
        yield 1

    for function in (some, more):
        with pytest.raises(InvalidDeclaration, match="yields"):
            FunctionTool(function)


async def test_keys_that_are_numbers_are_read_as_such():
    @tool
    def total(counts: dict[int, int]) -> int:
        return sum(key * value for key, value in counts.items())

    assert (await called(total, {"counts": {"10": 2, "1": 3}})).structured_content == {"result": 23}
