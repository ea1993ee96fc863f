"""A registry narrowed to some of its tools: the same in everything else."""

import pytest

from tests.tools.fakes import Provider
from tools.contract import ToolInvocation
from tools.registry.registry import ToolRegistry
from tools.registry.settings import ToolSettings


@pytest.fixture
def registry() -> ToolRegistry:
    registry = ToolRegistry(
        lambda: {"a": ToolSettings("a", calls_per_minute_chat=1, description="told")}
    )
    registry.register_provider(Provider("P", "a", "b", "c"))
    return registry


async def names(registry: ToolRegistry) -> list[str]:
    return [definition["name"] for definition in await registry.get_llm_definitions()]


async def test_only_the_tools_that_are_kept_are_listed_and_called(registry):
    view = registry.narrowed(lambda spec: spec.name in "ab")
    assert [await names(view), await names(registry)] == [["a", "b"], ["a", "b", "c"]]
    assert [await view.has_tool("c"), (await view.invoke(ToolInvocation("b"))).success] == [
        False,
        True,
    ]
    refused = await view.invoke(ToolInvocation("c"))
    assert (refused.success, refused.metadata["refusal"]) == (False, "unknown")
    assert refused.error_message.startswith("Tool not found: c")


async def test_what_is_narrowed_twice_has_what_both_keep(registry):
    assert await names(
        registry.narrowed(lambda spec: spec.name in "ab").narrowed(lambda spec: spec.name in "bc")
    ) == ["b"]


async def test_rows_and_rates_are_those_of_the_whole(registry):
    view = registry.narrowed(lambda spec: spec.name == "a")
    assert [spec.description for spec in await view.list_tools()] == ["told"]
    assert (await view.invoke(ToolInvocation("a"))).success
    assert (await registry.invoke(ToolInvocation("a"))).metadata["refusal"] == "rate_limited"


async def test_a_provider_that_comes_later_is_there_too(registry):
    view = registry.narrowed(lambda spec: spec.name > "b")
    registry.register_provider(Provider("Q", "d"))
    assert await names(view) == ["c", "d"]


async def test_under_other_rows_everything_but_the_rows_is_that_of_the_whole(registry):
    view = registry.under(
        lambda: {
            "b": ToolSettings("b", enabled=False),
            "a": ToolSettings("a", description="otherwise"),
        }
    )
    assert [await names(view), await names(registry)] == [["a", "c"], ["a", "b", "c"]]
    assert next(spec.description for spec in await view.list_tools()) == "otherwise"
    assert next(spec.description for spec in await registry.list_tools()) == "told"
    assert (await view.invoke(ToolInvocation("b"))).metadata["refusal"] == "disabled"
