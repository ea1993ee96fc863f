"""What the model is told of the tools: for whom, in which order, in whose words."""

from typing import Any

import pytest

from tests.tools.fakes import Provider
from tools.contract import (
    LONG_RUNNING_NOTE,
    ToolAnnotation,
    ToolAvailabilityContext,
    ToolIcon,
    ToolInvocation,
    ToolSpec,
)
from tools.models.tool_config import ToolScope
from tools.registry.registry import DefinitionCache, ToolRegistry
from tools.registry.settings import ToolSettings

PRIVATE = ToolAvailabilityContext(is_group_chat=False)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "own"}, "days": {"type": "integer"}},
    "required": ["city"],
}


def registry_of(*specs: ToolSpec, **rows: ToolSettings) -> ToolRegistry:
    registry = ToolRegistry(lambda: rows)
    registry.register_provider(Provider("P", *specs))
    return registry


def spec(name: str, *audience: str, priority: float | None = None) -> ToolSpec:
    return ToolSpec(
        name=name, annotation=ToolAnnotation(audience=list(audience), priority=priority)
    )


async def told(registry: ToolRegistry) -> list[str]:
    return [definition["name"] for definition in await registry.get_llm_definitions()]


async def test_a_tool_for_people_is_listed_but_not_offered_to_the_model():
    registry = registry_of(
        spec("a", "user"), spec("b"), spec("c", "user", "assistant"), spec("d", "model")
    )
    assert await told(registry) == ["b", "c", "d"]
    assert [listed.name for listed in await registry.list_tools()] == ["a", "b", "c", "d"]
    assert (await registry.invoke(ToolInvocation("a"))).success


async def test_tools_are_offered_by_priority_and_otherwise_in_their_order():
    registry = registry_of(
        spec("a"), spec("b", priority=1), spec("c", priority=-1), spec("d", priority=1), spec("e")
    )
    assert await told(registry) == ["b", "d", "a", "e", "c"]
    assert [listed.name for listed in await registry.list_tools()] == ["a", "b", "c", "d", "e"]


async def test_nothing_but_name_words_and_parameters_is_told():
    full = ToolSpec(
        name="t",
        description=" d ",
        title="T",
        parameters_schema=SCHEMA,
        output_schema={"type": "object"},
        icons=[ToolIcon("i.png")],
        annotation=ToolAnnotation(metadata={"chat_scope": "group"}),
        metadata={"allowed_session": "5"},
    )
    [definition] = await registry_of(full, t=ToolSettings("t", scope="all")).get_llm_definitions()
    assert definition == {"name": "t", "description": "d", "parameters_schema": SCHEMA}


async def test_a_row_speaks_for_the_arguments_it_names():
    words = {"city": " Where? ", "days": " ", "gone": "x"}
    registry = registry_of(
        ToolSpec(name="t", parameters_schema=SCHEMA),
        t=ToolSettings("t", parameter_descriptions=words),
    )
    [definition] = await registry.get_llm_definitions()
    assert definition["parameters_schema"]["properties"] == {
        "city": {"type": "string", "description": "Where?"},
        "days": {"type": "integer"},
    }
    assert SCHEMA["properties"]["city"]["description"] == "own"


@pytest.mark.parametrize("schema", [None, {}, {"properties": [1]}, {"properties": {"city": True}}])
async def test_a_schema_without_that_argument_stays_as_it_is(schema):
    row = ToolSettings("t", parameter_descriptions={"city": "x"})
    [listed] = await registry_of(ToolSpec(name="t", parameters_schema=schema), t=row).list_tools()
    assert listed.parameters_schema == schema


async def test_a_long_running_tool_says_so_in_its_declaration_alone():
    running = {"is_long_running": True}
    registry = registry_of(
        ToolSpec(name="a", description="Wait.", metadata=running),
        ToolSpec(name="b", metadata=running),
        c := ToolSpec(name="c", description="Wait.", metadata=running),
        c=ToolSettings("c", description="Told."),
    )
    told_of = {
        definition["name"]: definition["description"]
        for definition in await registry.get_llm_definitions()
    }
    assert told_of == {
        "a": f"Wait.\n\n{LONG_RUNNING_NOTE}",
        "b": LONG_RUNNING_NOTE,
        "c": f"Told.\n\n{LONG_RUNNING_NOTE}",
    }
    assert c.description == "Wait."
    assert (await registry.invoke(ToolInvocation("a"))).metadata["is_long_running"]


async def test_a_schema_of_other_than_plain_values_is_told_as_it_is():
    odd = {"type": "object", "properties": {"n": {"enum": [ToolScope.GROUP]}}}
    [definition] = await registry_of(
        ToolSpec(name="t", parameters_schema=odd)
    ).get_llm_definitions()
    assert definition["parameters_schema"] == odd


async def test_a_new_spec_of_the_same_name_is_told_at_once():
    provider = Provider("P", ToolSpec(name="t", description="old"))
    registry = ToolRegistry()
    registry.register_provider(provider)
    for number in range(200):
        provider.specs = [ToolSpec(name="t", description=str(number))]
        assert (await registry.get_llm_definitions(PRIVATE))[0]["description"] == str(number)


def test_a_definition_is_the_same_object_for_as_long_as_the_spec_is():
    definitions, old, new = (
        DefinitionCache(),
        ToolSpec(name="t"),
        ToolSpec(name="t", description="new"),
    )
    assert definitions.of([old])[0] is definitions.of([old, new])[0]
    assert definitions.of([new]) == [{"name": "t", "description": "new"}]


def test_what_is_kept_of_old_specs_is_bounded(monkeypatch):
    monkeypatch.setattr("tools.registry.registry.MOST_KEPT", 10)
    definitions = DefinitionCache()
    for number in range(30):
        specs = [ToolSpec(name=str(number)), ToolSpec(name=f"{number}b")]
        assert [told["name"] for told in definitions.of(specs)] == [str(number), f"{number}b"]
        assert len(definitions) <= 10


async def test_a_changed_row_changes_the_definition_of_its_tool_alone():
    rows: dict[str, ToolSettings] = {}
    registry = ToolRegistry(lambda: rows)
    registry.register_provider(Provider("P", "t", "u"))
    before = (await registry.offering(PRIVATE)).definitions
    rows = {"t": ToolSettings("t", description="new")}
    after = (await registry.offering(PRIVATE)).definitions
    assert (before[0]["description"], after[0]["description"]) == ("", "new")
