"""What providers and functions give back is held to the contract before the run loop builds on
it."""

import asyncio
import json
import sys
from typing import Any

import pytest

from tests.tools.fakes import Provider
from tools.contract import (
    ToolAvailabilityContext,
    ToolContentItem,
    ToolExecutionResult,
    ToolInvocation,
    ToolSpec,
)
from tools.functions.function_tool import FunctionProvider, FunctionTool
from tools.registry import provider_set
from tools.registry.registry import ToolRegistry


def registry_of(*providers: Any) -> ToolRegistry:
    registry = ToolRegistry()
    for provider in providers:
        registry.register_provider(provider)
    return registry


async def returned(**fields: Any) -> ToolExecutionResult:
    """What the registry makes of a result with these fields."""

    async def answer(_: ToolInvocation) -> ToolExecutionResult:
        return ToolExecutionResult("t", **{"success": True, **fields})

    return await registry_of(Provider("P", "t", answer=answer)).invoke(ToolInvocation("t"))


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"success": "no"}, "success is str and no bool"),
        ({"success": None}, "success is NoneType and no bool"),
        ({"content": None}, "content is NoneType and no str"),
        ({"content": b"x"}, "content is bytes and no str"),
        ({"success": False, "error_message": None}, "error_message is NoneType and no str"),
        ({"content_items": None}, "content_items is NoneType and no list"),
        ({"content": "x", "content_items": ["x"]}, "str is no content item"),
        ({"content_items": [ToolContentItem("image", data=b"x")]}, "data is bytes and no str"),  # type: ignore[arg-type]
        (
            {"content": "x", "post_history_messages": "hi"},
            "post_history_messages is str and no list",
        ),
        (
            {"content": "x", "post_history_messages": ["hi"]},
            "post_history_messages are no messages",
        ),
        (
            {"content": "x", "post_history_messages": [{"content": {1}}]},
            "post_history_messages are no messages",
        ),
        ({"metadata": None}, "metadata is NoneType and no dict"),
    ],
)
async def test_a_result_of_other_types_than_the_contracts_is_a_failure(caplog, fields, problem):
    result = await returned(**fields)
    assert (result.success, result.error_message) == (False, f"工具执行失败: {problem}")


def endless() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    "value",
    [{1}, b"x", object(), endless(), {"a": {1}}],
    ids=["set", "bytes", "object", "loop", "inside"],
)
async def test_structured_content_that_is_no_json_becomes_its_text(value):
    result = await returned(structured_content=value)
    assert (result.success, result.structured_content) == (True, str(value))
    assert result.get_history_content() == str(value)


async def test_half_a_character_in_a_following_message_is_replaced():
    result = await returned(
        content="x", post_history_messages=[{"role": "user", "content": "a\ud83d"}]
    )
    assert result.post_history_messages == [{"role": "user", "content": "a\ufffd"}]


async def test_what_no_database_holds_in_an_item_is_replaced():
    item = ToolContentItem("resource_link", name="a\0\ud83d", data="AAAA")
    assert (await returned(content_items=[item])).content_items == [
        ToolContentItem("resource_link", name="a\ufffd\ufffd", data="AAAA")
    ]
    assert (await returned(content="a\0b")).content == "a?b"


async def test_a_provider_ends_a_run_but_says_nothing_that_is_the_systems_to_say():
    claims = {
        "refusal": "needs_approval",
        "mock": True,
        "pending": True,
        "worker": "w",
        "full_content": "x",
        "state_change": 1,
    }
    result = await returned(content="x", metadata={**claims, "pause_execution": True, "own": 1})
    by_whom = {"provider_name": "P", "verdict": "allowed", "decided_by": ""}
    assert result.metadata == {"pause_execution": True, "own": 1} | by_whom


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError()], ids=repr)
async def test_a_tool_can_end_nothing_but_itself(caplog, error):
    async def end() -> str:
        raise error

    def leave() -> str:
        sys.exit(3)

    registry = registry_of(
        FunctionProvider("p", "builtin", [FunctionTool(end), FunctionTool(leave)]),
        Provider("P", "t"),
    )
    for name in ("end", "leave"):
        assert (await registry.invoke(ToolInvocation(name))).error_message.startswith(
            "工具执行失败: "
        )
    assert (await registry.invoke(ToolInvocation("t"))).success


@pytest.mark.parametrize(
    "error", [SystemExit(3), asyncio.CancelledError(), MemoryError()], ids=repr
)
async def test_a_provider_that_wants_to_end_more_than_itself_is_broken(caplog, error):
    class Ending(Provider):
        async def list_tools(
            self, context: ToolAvailabilityContext | None = None
        ) -> list[ToolSpec]:
            raise error

        async def close(self) -> None:
            raise error

    registry, other = registry_of(Ending("A", "a")), Provider("B", "b")
    registry.register_provider(other)
    assert [spec.name for spec in await registry.list_tools()] == ["b"]
    await registry.close()
    assert other.closed == 1


async def test_a_provider_that_does_not_close_is_left_behind(caplog, monkeypatch):
    class Clinging(Provider):
        async def close(self) -> None:
            await asyncio.Event().wait()

    monkeypatch.setattr(provider_set, "CLOSE_SECONDS", 0.01)
    registry, other = registry_of(Clinging("A")), Provider("B")
    registry.register_provider(other)
    await registry.close()
    assert other.closed == 1
    assert "tool provider A could not be closed" in caplog.text


@pytest.mark.parametrize(
    "declared",
    [
        {"parameters_schema": {"type": "string"}},
        {"parameters_schema": {"type": "object", "properties": {"a": {"enum": {1, 2}}}}},
        {"parameters_schema": {"type": "object", "properties": endless()}},
        {"parameters_schema": {"type": "object", "description": "\ud800"}},
        {"description": "\ud800"},
    ],
    ids=["no object", "no json", "loop", "half a character", "half a character described"],
)
async def test_a_declaration_that_no_request_can_hold_costs_its_own_tool_only(caplog, declared):
    registry = registry_of(
        Provider("A", ToolSpec(name="bad", **declared), "good"), Provider("B", "b")
    )
    definitions = await registry.get_llm_definitions()
    assert [each["name"] for each in json.loads(json.dumps(definitions))] == ["good", "b"]
    assert len(caplog.records) == 1


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize("value", [{"n": float("nan")}, [float("inf")], nested(101), nested(400)])
async def test_structured_content_that_some_reader_would_refuse_becomes_its_text(value: Any):
    assert (await returned(structured_content=value)).structured_content == str(value)


async def test_structured_content_may_have_a_hundred_levels_and_any_width():
    wide: list[Any] = [[] for _ in range(1000)]
    for value in (nested(100), wide):
        assert (await returned(structured_content=value)).structured_content == value
