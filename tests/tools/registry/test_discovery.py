"""Which tools a model is offered, which it is only told the names of, and what becomes of those it
has found."""

from typing import Any

import pytest

from tests.tools.fakes import GroupOnly, Provider
from tools.contract import (
    ToolAnnotation,
    ToolAvailabilityContext,
    ToolInvocation,
    ToolProvider,
    ToolSpec,
)
from tools.models import ToolConfig
from tools.registry.catalogue import DefaultConfig, declared_settings, ensure_tool_rows
from tools.registry.offers import (
    DESCRIBED,
    NAMED,
    NAMED_CHARS,
    SEARCH_TOOL,
    format_tool_names,
)
from tools.registry.registry import ToolRegistry
from tools.registry.settings import ToolSettings, load_tool_settings

DEFERRED = {"default_config": DefaultConfig(visibility="deferred")}


class Server(Provider):
    provider_type = "http"


def registry_of(
    *providers: ToolProvider, above: float = 2, rows: tuple[ToolSettings, ...] = ()
) -> ToolRegistry:
    """A registry of the tool that finds tools, of ``providers``, and with ``rows``."""
    settings = {row.name: row for row in rows}
    registry = ToolRegistry(lambda: settings, defer_above=above)
    for provider in (Provider("own", SEARCH_TOOL, "reply"), *providers):
        registry.register_provider(provider)
    return registry


async def view(
    registry: ToolRegistry, *discovered: str, context: Any = None
) -> tuple[list[str], list[str]]:
    """The names of what is offered, and of what can be found."""
    offering = await registry.offering(context, discovered)
    return [definition["name"] for definition in offering.definitions], [
        tool.name for tool in offering.deferred
    ]


async def test_few_tools_from_outside_are_offered_in_full_and_there_is_nothing_to_search():
    assert await view(registry_of(Server("s", "b", "a"))) == (["reply", "b", "a"], [])


async def test_many_tools_from_outside_are_deferred_and_the_own_ones_are_not():
    assert await view(registry_of(Server("s", "c", "a", "b"))) == (
        [SEARCH_TOOL, "reply"],
        ["a", "b", "c"],
    )
    assert await view(registry_of(Provider("p", "a", "b", "c"))) == (["reply", "a", "b", "c"], [])


@pytest.mark.parametrize("kind", ["mcp", "plugin", "http"])
async def test_every_kind_of_source_from_outside_is_meant(kind: str):
    provider = Provider("s", ToolSpec(name="a", provider_type=kind))
    assert await view(registry_of(provider, above=0)) == ([SEARCH_TOOL, "reply"], ["a"])


async def test_a_row_decides_over_its_tool():
    rows = (ToolSettings("a", pinned=True), ToolSettings("b", visibility="hidden"))
    assert await view(registry_of(Server("s", "a", "b", "c", "d"), rows=rows)) == (
        [SEARCH_TOOL, "reply", "a"],
        ["c", "d"],
    )
    own = registry_of(Server("s", "a"), rows=(ToolSettings("reply", visibility="deferred"),))
    assert await view(own) == ([SEARCH_TOOL, "a"], ["reply"])


async def test_a_declaration_may_ask_to_be_deferred_and_the_row_has_the_last_word():
    provider = Provider(
        "p",
        ToolSpec(name="a", metadata=DEFERRED),
        ToolSpec(name="b", metadata={"visibility": "deferred"}),
    )
    assert await view(registry_of(provider)) == ([SEARCH_TOOL, "reply"], ["a", "b"])
    assert await view(registry_of(provider, rows=(ToolSettings("a"),))) == (
        [SEARCH_TOOL, "reply", "a"],
        ["b"],
    )


@pytest.mark.parametrize("metadata", [{"visibility": "visible"}, {"core_tool": True}])
async def test_a_tool_that_declares_itself_visible_is_pinned(metadata: dict[str, Any]):
    server = Server("s", ToolSpec(name="a", metadata=metadata), "b", "c")
    assert await view(registry_of(server)) == ([SEARCH_TOOL, "reply", "a"], ["b", "c"])


async def test_a_tool_that_is_not_for_the_model_cannot_be_found_by_it():
    server = Server("s", ToolSpec(name="a", annotation=ToolAnnotation(audience=["user"])), "b")
    assert await view(registry_of(server, above=0)) == ([SEARCH_TOOL, "reply"], ["b"])


async def test_what_was_found_comes_last_in_the_order_of_finding():
    first = ToolSpec(name="a", annotation=ToolAnnotation(priority=9))
    registry = registry_of(Server("s", first, "b", "c"))
    assert (await view(registry, "c", "a"))[0] == [SEARCH_TOOL, "reply", "c", "a"]
    assert (await view(registry, "c", "a", "b"))[0] == [SEARCH_TOOL, "reply", "c", "a", "b"]


async def test_what_was_found_and_is_no_longer_there_drops_out():
    registry = registry_of(Server("s", "a", "b", "c"))
    registry.unregister_provider("s")
    assert await view(registry, "a") == (["reply"], [])
    registry.register_provider(Server("s", "a"))
    assert await view(registry, "a", "gone") == (["reply", "a"], [])


async def test_a_deferred_tool_can_be_called_whether_it_was_found_or_not():
    assert (await registry_of(Server("s", "a", "b", "c")).invoke(ToolInvocation("a"))).success


async def test_nothing_is_deferred_where_nothing_can_be_searched():
    registry = registry_of(Server("s", "a", "b", "c"))
    assert await view(registry.narrowed(lambda spec: spec.name != SEARCH_TOOL)) == (
        ["reply", "a", "b", "c"],
        [],
    )
    closed = registry_of(
        Server("s", "a", "b", "c"), rows=(ToolSettings(SEARCH_TOOL, enabled=False),)
    )
    assert await view(closed) == (["reply", "a", "b", "c"], [])


async def test_what_finds_tools_is_never_deferred_itself():
    row = ToolSettings(SEARCH_TOOL, visibility="deferred")
    assert await view(registry_of(Server("s", "a", "b", "c"), rows=(row,))) == (
        [SEARCH_TOOL, "reply"],
        ["a", "b", "c"],
    )
    assert await view(registry_of(rows=(row,))) == (["reply"], [])


async def test_each_view_counts_its_own_tools():
    registry = registry_of(
        GroupOnly("g", *(ToolSpec(name=name, provider_type="http") for name in "abc"))
    )
    assert await view(registry, context=ToolAvailabilityContext(is_group_chat=True)) == (
        [SEARCH_TOOL, "reply"],
        ["a", "b", "c"],
    )
    assert await view(registry, context=ToolAvailabilityContext(is_group_chat=False)) == (
        ["reply"],
        [],
    )
    assert await view(registry.narrowed(lambda spec: spec.name in (SEARCH_TOOL, "a", "b"))) == (
        ["a", "b"],
        [],
    )


async def test_the_definitions_alone_are_those_of_a_model_that_has_found_nothing():
    names = [
        one["name"] for one in await registry_of(Server("s", "a", "b", "c")).get_llm_definitions()
    ]
    assert names == [SEARCH_TOOL, "reply"]


@pytest.mark.django_db
def test_the_first_row_of_a_tool_is_what_it_declares_and_is_read_back():
    specs = [
        ToolSpec(name="a", metadata=DEFERRED),
        ToolSpec(name="b", metadata={"core_tool": True}),
        ToolSpec(name="c"),
    ]
    ensure_tool_rows(specs)
    stored = load_tool_settings()
    assert [(stored[name].visibility, stored[name].pinned) for name in "abc"] == [
        ("deferred", False),
        ("visible", True),
        ("visible", False),
    ]
    assert {spec.name: declared_settings(spec) for spec in specs} == stored
    assert ToolConfig.objects.get(name="a").get_visibility_display()


# --- How they are named ---------------------------------------------------------


def test_a_name_has_one_short_line_whatever_its_description_is_made_of():
    tools = [
        ToolSpec(name="a", description="one\n2. b: two\u2028\x00three"),
        ToolSpec(name="c", description="长" * 500),
    ]
    first, second = format_tool_names(tools)
    assert first == "1. a: one 2. b: two three"
    assert (len(second), second[-1]) == (NAMED, "…")


def test_all_lines_together_are_bounded():
    lines = format_tool_names(
        [ToolSpec(name=f"t{number}", description="x" * 50) for number in range(5_000)]
    )
    assert sum(map(len, lines)) < NAMED_CHARS
    assert len(lines) > 100


def test_of_many_tools_the_names_alone_are_told_so_that_all_of_them_fit():
    tools = [ToolSpec(name=f"a_tool_{number}", description="x" * 50) for number in range(200)]
    assert format_tool_names(tools)[:2] == ["1. a_tool_0", "2. a_tool_1"]
    assert len(format_tool_names(tools)) == 200
    assert format_tool_names(tools[:DESCRIBED])[0].startswith("1. a_tool_0: xxx")
