"""Faults that only a tool itself can find are told together with those that its schema finds."""

from typing import Any

import pytest

from tests.tools.fakes import Provider
from tools.contract import ToolExecutionContext, ToolInvocation, ToolSpec
from tools.registry.registry import ToolRegistry

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "array", "items": {"type": "integer"}}, "b": {"type": "integer"}},
}


async def told(own_messages: Any, **arguments: Any) -> list[str]:
    registry = ToolRegistry()
    registry.register_provider(
        Provider(
            "p",
            ToolSpec(name="f", parameters_schema=SCHEMA, metadata={"own_messages": own_messages}),
        )
    )
    result = await registry.invoke(
        ToolInvocation("f", arguments), ToolExecutionContext(user_id="7")
    )
    return result.error_message.splitlines()


async def test_they_follow_those_of_the_schema_and_see_the_arguments_that_can_be_read():
    def own(arguments: dict[str, Any], context: ToolExecutionContext) -> list[str]:
        return [f"b {arguments['b']} {context.user_id}"]

    assert await told(own, a="x", b="5") == ["a 应为数组", "b 5 7"]


async def test_a_place_is_named_once():
    lines = ["a[1] again", "a[1].c deeper", "a[10] other", "a whole", "b fine"]
    assert await told(lambda *_: lines, a=[1, "x"]) == [
        "a[1] 应为整数",
        "a[1].c deeper",
        "a[10] other",
        "b fine",
    ]


@pytest.mark.parametrize("own", [lambda: 0, lambda *_: 5, lambda *_: [5], "f", None])
async def test_what_cannot_be_asked_hides_none(own: Any):
    assert await told(own, a="x") == ["a 应为数组"]
