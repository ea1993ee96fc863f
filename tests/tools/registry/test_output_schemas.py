"""A result that is not what the tool's output schema promises is a failure, whoever made it."""

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, Field

from tests.tools.fakes import Provider
from tools.contract import ToolExecutionResult, ToolInvocation, ToolSpec
from tools.functions.function_tool import FunctionProvider, FunctionTool
from tools.registry.registry import ToolRegistry
from tools.registry.settings import ToolSettings
from tools.schemas.arguments import MAX_VALUES

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


async def returned(
    schema: Any, row: ToolSettings | None = None, **result: Any
) -> ToolExecutionResult:
    async def answer(_: ToolInvocation) -> ToolExecutionResult:
        return ToolExecutionResult("t", success=result.pop("success", True), **result)

    registry = ToolRegistry(lambda: {"t": row} if row else {})
    registry.register_provider(
        Provider("P", ToolSpec(name="t", output_schema=schema), answer=answer)
    )
    return await registry.invoke(ToolInvocation("t"))


@pytest.mark.parametrize(
    ("value", "problem"), [({"n": "x"}, "n 应为整数"), ({}, "n 不能为空"), ([1], "参数 应为对象")]
)
async def test_structured_content_that_breaks_the_promise_is_a_failure(value, problem):
    result = await returned(SCHEMA, structured_content=value)
    assert result.error_message == f"工具执行失败: 工具返回的结果与其声明不符: {problem}"
    assert not result.success


async def test_what_keeps_the_promise_passes():
    assert (await returned(SCHEMA, structured_content={"n": 1})).structured_content == {"n": 1}
    assert (await returned(None, structured_content={"n": "x"})).success


async def test_text_failures_and_mocks_are_not_held_to_it():
    assert (await returned(SCHEMA, content="text")).content == "text"
    failed = await returned(SCHEMA, success=False, structured_content={}, error_message="busy")
    assert failed.error_message == "工具执行失败: busy"
    assert (
        await returned(SCHEMA, ToolSettings("t", mock_enabled=True, mock_value="m"))
    ).content == "m"


async def test_a_schema_that_cannot_be_used_costs_the_tool_nothing(caplog):
    assert (await returned({"type": "nonsense"}, structured_content={"n": 1})).success
    assert (
        await returned({"$ref": "http://example.com/schema"}, structured_content={"n": 1})
    ).success
    assert "output schema" in caplog.text


@pytest.mark.may_block("a large value is checked in a thread, which still shares the interpreter")
async def test_a_large_result_is_checked_too():
    schema = {
        "type": "object",
        "properties": {"rows": {"type": "array", "items": {"type": "integer"}}},
    }
    assert (await returned(schema, structured_content={"rows": [1] * MAX_VALUES})).success
    assert not (
        await returned(schema, structured_content={"rows": [1] * MAX_VALUES + ["x"]})
    ).success


class Aliased(BaseModel):
    size: int = Field(alias="the size")


@dataclass
class Row:
    parts: tuple[int, ...]
    kinds: set[str]


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (Aliased, Aliased.model_validate({"the size": 3}), {"the size": 3}),
        (Row, Row((1, 2), {"x"}), {"parts": [1, 2], "kinds": ["x"]}),
        (dict[str, float], {"a": 1.5}, {"a": 1.5}),
        (list[Aliased], [], {"result": []}),
        (int | None, 5, {"result": 5}),
    ],
)
async def test_what_is_inferred_of_a_function_fits_what_it_returns(annotation, value, expected):
    async def give() -> Any:
        return value

    give.__annotations__["return"] = annotation
    registry = ToolRegistry()
    registry.register_provider(FunctionProvider("p", "builtin", [made := FunctionTool(give)]))
    assert made.spec.output_schema is not None
    assert (await registry.invoke(ToolInvocation("give"))).structured_content == expected
