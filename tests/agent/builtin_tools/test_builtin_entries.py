"""The central list of the engine's own tools, and who is offered what of it."""

from typing import Any

import pytest

from agent.builtin_tools.course import MaisakaBuiltinToolProvider
from agent.run.engine import Engine
from agent.run.gate import is_timing_tool
from agent.run.tool_results import PROVIDER_NAME
from agent.runtime.wiring import build_builtin_tools, build_chat_tools
from agent.subagents.runner import SubagentRunner
from tests.agent.talk import Script
from tools.contract import (
    ToolAvailabilityContext,
    ToolExecutionContext,
    ToolInvocation,
)
from tools.functions.function_tool import FunctionTool
from tools.registry.catalogue import DefaultConfig
from tools.registry.registry import ToolRegistry
from tools.registry.settings import ToolSettings

GROUP = ToolAvailabilityContext(session_id="onebot:group:7", is_group_chat=True)
PRIVATE = ToolAvailabilityContext(session_id="onebot:private:7", is_group_chat=False)


async def _done() -> str:
    return "done"


def own(*, visibility: str = "visible", scope: str = "all", **options: Any) -> FunctionTool:
    config = DefaultConfig(visibility=visibility, scope=scope)
    return FunctionTool(_done, name="f", default_config=config, **options)


def registry(*tools: FunctionTool, **rows: ToolSettings) -> ToolRegistry:
    made = ToolRegistry(lambda: rows)
    made.register_provider(MaisakaBuiltinToolProvider(tools))
    return made


def test_the_list_holds_every_tool_with_its_stage():
    tools = build_builtin_tools(SubagentRunner(ToolRegistry()), None, build_chat_tools(None))
    specs = MaisakaBuiltinToolProvider(tools).specs
    stages = {spec.name: spec.metadata.get("builtin_stage", "action") for spec in specs}
    actions = "send_message reply use_subagent finish stay_silent tool_search send_emoji send_image"
    memory = "view_complex_message fetch_history remember forget query_memory query_person_profile"
    reminders = "set_reminder list_reminders change_reminder cancel_reminder"
    group = "list_members get_member get_group list_files get_file poke like react"
    special = "send_face send_music send_forward"
    acts = "mute_member unmute_member mute_group kick_member recall_message set_member_card"
    more = "set_member_title set_essence announce delete_file"
    texts = (actions, memory, reminders, group, special, acts, more)
    names = [name for text in texts for name in text.split()]
    expected = dict.fromkeys(names, "action")
    assert stages == expected | {"wait": "both", "no_action": "both", "continue": "timing"}
    assert {spec.provider_name for spec in specs} == {PROVIDER_NAME}


@pytest.mark.parametrize(
    ("entry", "group", "private"),
    [
        (own(), True, True),
        (own(is_on=lambda: False), False, False),
        (own(visibility="hidden"), False, False),
        (own(scope="group"), True, False),
        (own(scope="private"), False, True),
    ],
)
async def test_what_an_entry_says_of_itself_counts_without_a_row(
    entry: FunctionTool, group: bool, private: bool
):
    tools = registry(entry)
    assert [await tools.has_tool("f", chat) for chat in (GROUP, PRIVATE)] == [group, private]


@pytest.mark.parametrize(
    ("entry", "row", "group", "private"),
    [
        (own(), ToolSettings("f", enabled=False), False, False),
        (own(visibility="hidden"), ToolSettings("f"), True, True),
        (own(scope="group"), ToolSettings("f", scope="private"), False, True),
        (own(is_on=lambda: False), ToolSettings("f"), False, False),
    ],
)
async def test_the_row_wins_over_the_entry_but_not_over_its_switch(
    entry: FunctionTool, row: ToolSettings, group: bool, private: bool
):
    tools = registry(entry, f=row)
    assert [await tools.has_tool("f", chat) for chat in (GROUP, PRIVATE)] == [group, private]


@pytest.mark.parametrize(
    ("stage", "planner", "gate"),
    [("action", True, False), ("timing", False, True), ("both", True, True)],
)
async def test_a_stage_decides_between_planner_and_gate(stage: Any, planner: bool, gate: bool):
    tools = registry(own(stage=stage))
    engine = Engine(Script(), tools)
    assert await engine.registry.has_tool("f", GROUP) == planner
    assert await tools.narrowed(is_timing_tool).has_tool("f", GROUP) == gate


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        (own(is_on=lambda: False, visibility="hidden", scope="private"), "unknown"),
        (own(stage="timing", visibility="hidden", scope="private"), "unknown"),
        (own(visibility="hidden", scope="private"), "hidden"),
        (own(scope="private"), "wrong_chat"),
    ],
)
async def test_of_several_reasons_against_a_tool_the_first_in_order_is_given(
    entry: FunctionTool, told: str
):
    tools = Engine(Script(), registry(entry)).registry
    result = await tools.invoke(
        ToolInvocation("f", {}),
        ToolExecutionContext(session_id=GROUP.session_id, is_group_chat=True),
    )
    assert result.metadata["refusal"] == told
