"""The one view of all tools: order, names, switches and chats."""

import logging

import pytest

from tests.tools.fakes import Broken, GroupOnly, Provider
from tools.contract import ToolAvailabilityContext, ToolExecutionContext, ToolInvocation, ToolSpec
from tools.registry.registry import ToolRegistry
from tools.registry.settings import ToolSettings

PRIVATE = ToolAvailabilityContext(is_group_chat=False)
GROUP = ToolAvailabilityContext(is_group_chat=True)


def registry_of(*providers: Provider, **rows: ToolSettings) -> ToolRegistry:
    registry = ToolRegistry(lambda: rows)
    for provider in providers:
        registry.register_provider(provider)
    return registry


async def names(
    registry: ToolRegistry, context: ToolAvailabilityContext | None = None
) -> list[str]:
    return [spec.name for spec in await registry.list_tools(context)]


async def said_by(registry: ToolRegistry, tool: str) -> str:
    return str((await registry.invoke(ToolInvocation(tool))).metadata["provider_name"])


async def test_a_provider_registered_again_replaces_itself_at_the_end():
    registry = registry_of(Provider("A", "old"), Provider("B", "b"), Provider("A", "new"))
    assert await names(registry) == ["b", "new"]


async def test_the_first_of_two_tools_of_one_name_wins(caplog):
    registry = registry_of(Provider("A", "t"), Provider("B", "t", "u"))
    assert await names(registry) == ["t", "u"]
    assert await said_by(registry, "t") == "A"
    [warning] = [
        record.getMessage() for record in caplog.records if record.levelno == logging.WARNING
    ]
    assert "t" in warning
    assert "B" in warning


async def test_a_duplicate_is_reported_once_and_not_for_every_message(caplog):
    registry = registry_of(Provider("A", "t"), Provider("B", "t"))
    for _ in range(3):
        await registry.list_tools(GROUP)
    assert len(caplog.records) == 1


async def test_a_disabled_tool_makes_room_for_another_of_its_name(caplog):
    registry = registry_of(Provider("A", ToolSpec(name="t", enabled=False)), Provider("B", "t"))
    assert await names(registry) == ["t"]
    assert await said_by(registry, "t") == "B"
    assert not caplog.records


async def test_a_tool_disabled_by_its_row_is_neither_listed_nor_callable():
    provider = Provider("A", "t")
    registry = registry_of(provider, t=ToolSettings("t", enabled=False))
    assert not await registry.has_tool("t")
    assert (await registry.invoke(ToolInvocation("t"))).metadata["refusal"] == "disabled"
    assert provider.invocations == []


async def test_a_row_does_not_enable_what_the_provider_disabled():
    registry = registry_of(
        Provider("A", ToolSpec(name="t", enabled=False)), t=ToolSettings("t", enabled=True)
    )
    assert await names(registry) == []


async def test_a_row_is_obeyed_from_the_next_listing_on():
    rows = {"t": ToolSettings("t", enabled=False)}
    registry = ToolRegistry(lambda: rows)
    registry.register_provider(Provider("A", "t"))
    assert await names(registry) == []
    rows = {"t": ToolSettings("t", description="x")}
    assert [spec.description for spec in await registry.list_tools()] == ["x"]
    rows = {"t": ToolSettings("t", description="y")}
    assert [spec.description for spec in await registry.list_tools()] == ["y"]
    rows = {}
    assert [spec.description for spec in await registry.list_tools()] == [""]


async def test_a_row_with_a_description_replaces_what_the_model_is_told():
    provider = Provider(
        "A", ToolSpec(name="t", description="own"), ToolSpec(name="u", description="own")
    )
    registry = registry_of(
        provider, t=ToolSettings("t", description=" told "), u=ToolSettings("u", description=" ")
    )
    assert await registry.get_llm_definitions() == [
        {"name": "t", "description": "told"},
        {"name": "u", "description": "own"},
    ]
    assert provider.specs[0].description == "own"


async def test_a_tool_of_another_chat_kind_is_not_found():
    registry = registry_of(GroupOnly("A", "t"))
    assert await names(registry, PRIVATE) == []
    result = await registry.invoke(ToolInvocation("t"), ToolExecutionContext(is_group_chat=False))
    assert result.metadata["refusal"] == "wrong_chat"
    assert (
        await registry.invoke(ToolInvocation("t"), ToolExecutionContext(is_group_chat=True))
    ).success


async def test_without_a_chat_every_tool_is_listed():
    registry = registry_of(GroupOnly("A", "t"))
    assert await names(registry, None) == ["t"]
    assert (await registry.invoke(ToolInvocation("t"))).success


async def test_unregistering_takes_the_tools_away():
    registry = registry_of(Provider("A", "t"))
    registry.unregister_provider("nobody")
    registry.unregister_provider("A")
    assert not await registry.has_tool("t")


async def test_a_spec_is_found_by_its_name():
    registry = registry_of(Provider("A", ToolSpec(name="t", title="T")))
    spec = await registry.get_tool_spec("t")
    assert spec is not None
    assert spec.title == "T"
    assert await registry.get_tool_spec("u") is None


async def test_a_broken_provider_hides_only_its_own_tools(caplog):
    registry = registry_of(Broken("A", "a"), Provider("B", "b"))
    assert [await names(registry) for _ in range(2)] == [["b"], ["b"]]
    assert (await registry.invoke(ToolInvocation("b"))).success
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


async def test_a_provider_that_breaks_again_is_reported_again(caplog):
    provider = Broken("A", "a")
    registry = registry_of(provider)
    for provider.mended in (False, True, False):
        await registry.list_tools()
    assert len(caplog.records) == 2


async def test_closing_reaches_every_provider_once_even_after_a_failure(caplog):
    class Stuck(Provider):
        async def close(self) -> None:
            raise OSError("stuck")

    providers = [Provider("A"), Stuck("B"), Provider("C")]
    registry = registry_of(*providers)
    await registry.close()
    await registry.close()
    assert [provider.closed for provider in providers] == [1, 0, 1]
    assert "B" in caplog.text


@pytest.mark.parametrize("described", [False, True])
async def test_definitions_may_be_changed_by_the_caller(described):
    spec = ToolSpec(name="t", parameters_schema={"type": "object", "properties": {}})
    registry = registry_of(
        Provider("A", spec), t=ToolSettings("t", description="x" if described else "")
    )
    (await registry.get_llm_definitions())[0]["parameters_schema"]["properties"]["n"] = {}
    assert (await registry.get_llm_definitions())[0]["parameters_schema"]["properties"] == {}


class Versioned(Provider):
    """A provider that says when its list has changed, and counts how often it is asked."""

    key: object = 1
    asked = 0

    def listing_key(self, context: ToolAvailabilityContext | None) -> object:
        if isinstance(self.key, Exception):
            raise self.key
        return self.key

    async def list_tools(self, context: ToolAvailabilityContext | None = None) -> list[ToolSpec]:
        self.asked += 1
        return list(self.specs)


async def test_a_listing_is_made_once_for_each_key():
    provider = Versioned("A", "a", "b")
    registry = registry_of(provider)
    assert await names(registry, GROUP) == await names(registry, GROUP) == ["a", "b"]
    assert provider.asked == 1
    provider.specs.pop()
    provider.key = 2
    assert await names(registry, GROUP) == ["a"]
    assert "refusal" in (await registry.invoke(ToolInvocation("b"))).metadata


@pytest.mark.parametrize("key", [None, ValueError("no key")])
async def test_a_provider_without_a_key_is_asked_each_time(key):
    provider = Versioned("A", "a")
    provider.key = key
    registry = registry_of(provider)
    assert await names(registry) == await names(registry) == ["a"]
    assert provider.asked == 2


async def test_a_provider_that_takes_anothers_place_is_listed_anew():
    registry = registry_of(Versioned("A", "a"))
    assert await names(registry) == ["a"]
    registry.register_provider(Versioned("A", "b"))
    assert await names(registry) == ["b"]
    registry.unregister_provider("A")
    assert await names(registry) == []
