"""Providers made of other providers."""

import pytest

from tests.tools.fakes import Broken, GroupOnly, Provider
from tools.contract import (
    ToolAvailabilityContext,
    ToolExecutionContext,
    ToolInvocation,
    ToolProvider,
    ToolSpec,
)
from tools.errors import InvalidDeclaration
from tools.registry.registry import ToolRegistry
from tools.registry.toolsets import (
    CombinedToolset,
    FilteredToolset,
    PrefixedToolset,
    RenamedToolset,
)

PRIVATE = ToolExecutionContext(is_group_chat=False)
GROUP = ToolExecutionContext(is_group_chat=True)


async def names(provider: ToolProvider, context: ToolExecutionContext | None = None) -> list[str]:
    return [
        spec.name for spec in await provider.list_tools(context.availability() if context else None)
    ]


async def said(
    provider: ToolProvider, name: str, context: ToolExecutionContext | None = None
) -> str:
    return (await provider.invoke(ToolInvocation(name), context)).get_history_content()


async def test_a_filter_by_name_hides_the_rest_and_does_not_call_it():
    inner = Provider("files", "read", "write", "list")
    toolset = FilteredToolset(inner, {"read", "list"})
    assert await names(toolset) == ["read", "list"]
    assert await said(toolset, "write") == "Tool not found: write"
    assert inner.invocations == []


async def test_a_filter_may_look_at_the_chat_and_the_tool():
    def keep(chat: ToolAvailabilityContext | None, spec: ToolSpec) -> bool:
        return spec.name == "read" or (chat is not None and chat.is_group_chat is False)

    toolset = FilteredToolset(Provider("files", "read", "write"), keep)
    assert await names(toolset, GROUP) == ["read"]
    assert await names(toolset, PRIVATE) == ["read", "write"]
    assert await said(toolset, "write", GROUP) == "Tool not found: write"
    assert await said(toolset, "write", PRIVATE) == "{}"


async def test_a_prefix_is_known_outside_only():
    inner = Provider("files", "read")
    toolset = PrefixedToolset(inner, "disk")
    assert await names(toolset) == ["disk_read"]
    result = await toolset.invoke(ToolInvocation("disk_read", {"a": 1}, call_id="c"), PRIVATE)
    assert (result.tool_name, result.content) == ("disk_read", "{'a': 1}")
    assert inner.invocations == [ToolInvocation("read", {"a": 1}, call_id="c")]
    assert inner.contexts == [PRIVATE]
    assert await said(toolset, "read") == "Tool not found: read"


async def test_new_names_replace_the_old_ones():
    toolset = RenamedToolset(Provider("files", "read", "write"), {"open": "read"})
    assert await names(toolset) == ["open", "write"]
    assert (await toolset.invoke(ToolInvocation("open"))).success
    assert await said(toolset, "read") == "Tool not found: read"


async def test_names_may_be_exchanged():
    inner = Provider("files", "read", "write")
    toolset = RenamedToolset(inner, {"write": "read", "read": "write"})
    await toolset.invoke(ToolInvocation("read"))
    assert inner.invocations[0].tool_name == "write"


async def test_a_toolset_may_wrap_another():
    toolset = PrefixedToolset(FilteredToolset(Provider("files", "read", "write"), ["read"]), "disk")
    assert await names(toolset) == ["disk_read"]
    assert (await toolset.invoke(ToolInvocation("disk_read"))).success
    assert (toolset.provider_name, toolset.provider_type) == ("files", "builtin")


async def test_the_specs_stay_the_same_objects_until_the_tool_changes():
    inner = Provider("files", "read")
    toolset = PrefixedToolset(inner, "disk")
    [first], [second] = await toolset.list_tools(), await toolset.list_tools()
    assert first is second
    inner.specs = [ToolSpec(name="read", description="new")]
    assert (await toolset.list_tools())[0].description == "new"


async def test_several_providers_are_one():
    toolset = CombinedToolset(
        "all", "builtin", [Provider("A", "a", "t"), Provider("B", "t", "b"), GroupOnly("C", "c")]
    )
    assert await names(toolset, PRIVATE) == ["a", "t", "t", "b"]
    assert await said(toolset, "c", PRIVATE) == "Tool not found: c"
    registry = ToolRegistry()
    registry.register_provider(toolset)
    assert await names(registry, GROUP) == ["a", "t", "b", "c"]  # type: ignore[arg-type]
    assert (await registry.invoke(ToolInvocation("c"), GROUP)).metadata["provider_name"] == "all"


async def test_of_two_tools_of_one_name_the_one_that_is_listed_is_called():
    second = Provider("B", "t")
    toolset = CombinedToolset(
        "all", "builtin", [Provider("A", ToolSpec(name="t", enabled=False)), second]
    )
    registry = ToolRegistry()
    registry.register_provider(toolset)
    assert (await registry.invoke(ToolInvocation("t"))).success
    assert len(second.invocations) == 1


async def test_a_broken_part_hides_its_own_tools_only(caplog):
    toolset = CombinedToolset("all", "builtin", [Broken("A", "a"), Provider("B", "b")])
    assert await names(toolset) == ["b"]
    assert (await toolset.invoke(ToolInvocation("b"))).success


async def test_closing_reaches_what_is_inside_once():
    parts = [Provider("A"), Provider("B")]
    toolset = CombinedToolset(
        "all", "builtin", [parts[0], PrefixedToolset(FilteredToolset(parts[1], []), "x")]
    )
    await toolset.close()
    await toolset.close()
    assert [part.closed for part in parts] == [1, 1]


def test_what_cannot_work_is_refused_where_it_is_declared():
    inner = Provider("files", "read")
    for prefix in ("", "a b", "天", "x" * 64):
        if prefix:
            with pytest.raises(InvalidDeclaration):
                PrefixedToolset(inner, prefix)
    with pytest.raises(InvalidDeclaration):
        RenamedToolset(inner, {"天": "read"})
    with pytest.raises(InvalidDeclaration, match="two names"):
        RenamedToolset(inner, {"a": "read", "b": "read"})
    with pytest.raises(InvalidDeclaration, match="duplicate provider: files"):
        CombinedToolset("all", "builtin", [inner, Provider("files")])


def test_every_toolset_is_a_provider():
    inner = Provider("files")
    for toolset in (
        FilteredToolset(inner, []),
        PrefixedToolset(inner, "x"),
        CombinedToolset("all", "builtin", []),
    ):
        assert isinstance(toolset, ToolProvider)
