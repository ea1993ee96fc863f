"""Function tools as one source of tools."""

import pytest

from tools.contract import InvalidDeclaration, ToolAvailabilityContext, ToolInvocation
from tools.functions.function_tool import FunctionProvider, tool

PRIVATE = ToolAvailabilityContext(session_id="s", is_group_chat=False)


@tool
async def everywhere() -> str:
    return "here"


@tool(available=lambda chat: chat.is_group_chat is True)
async def in_groups() -> str:
    return "there"


async def test_specs_carry_the_provider_and_stay_the_same_objects():
    provider = FunctionProvider("samples", "builtin", [everywhere])
    [spec] = await provider.list_tools()
    assert (spec.provider_name, spec.provider_type) == ("samples", "builtin")
    assert (await provider.list_tools())[0] is spec
    assert everywhere.spec.provider_name == ""


async def test_a_tool_is_offered_only_where_it_is_available():
    provider = FunctionProvider("p", "builtin", [everywhere, in_groups])
    assert [spec.name for spec in await provider.list_tools(PRIVATE)] == ["everywhere"]
    assert [
        spec.name for spec in await provider.list_tools(ToolAvailabilityContext(is_group_chat=True))
    ] == [
        "everywhere",
        "in_groups",
    ]
    assert len(await provider.list_tools(None)) == 2


async def test_a_call_reaches_the_function_of_that_name():
    provider = FunctionProvider("p", "builtin", [everywhere, in_groups])
    assert (await provider.invoke(ToolInvocation("in_groups"))).content == "there"
    assert (await provider.invoke(ToolInvocation("other"))).error_message == "Tool not found: other"


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(InvalidDeclaration, match="duplicate tool: everywhere"):
        FunctionProvider("p", "builtin", [everywhere, everywhere])
