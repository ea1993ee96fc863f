"""The central list of the engine's own tools, and who is offered what of it."""

from dataclasses import replace
from typing import Any

import pytest

from agent.builtin_tools.entry import BuiltinTool
from agent.builtin_tools.provider import MaisakaBuiltinToolProvider
from agent.run.engine import Engine
from agent.run.flow import PROVIDER_NAME
from agent.run.gate import is_timing_tool
from agent.runtime.wiring import build_builtin_tools, build_chat_tools
from agent.subagents.runner import SubagentRunner
from tests.agent.talk import Script
from tools.contract import (
    ToolAvailabilityContext,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolInvocation,
)
from tools.registry.registry import ToolRegistry
from tools.registry.settings import ToolSettings

GROUP = ToolAvailabilityContext(session_id="onebot:group:7", is_group_chat=True)
PRIVATE = ToolAvailabilityContext(session_id="onebot:private:7", is_group_chat=False)


async def _handle(invocation: ToolInvocation, context: Any) -> ToolExecutionResult:
    return ToolExecutionResult(invocation.tool_name, success=True, content="done")


TOOL = BuiltinTool("f", "", {"type": "object", "properties": {}}, _handle)


def registry(*entries: BuiltinTool, **rows: ToolSettings) -> ToolRegistry:
    made = ToolRegistry(lambda: rows)
    made.register_provider(MaisakaBuiltinToolProvider(entries))
    return made


def test_the_list_holds_every_tool_with_its_stage():
    entries = build_builtin_tools(SubagentRunner(ToolRegistry()), None, build_chat_tools(None))
    stages = {entry.name: entry.stage for entry in entries}
    actions = "send_message reply use_subagent finish stay_silent tool_search send_emoji send_image view_complex_message"
    memory = "fetch_history remember forget query_memory query_person_profile"
    expected = dict.fromkeys([*actions.split(), *memory.split()], "action")
    assert stages == expected | {"wait": "both", "no_action": "both", "continue": "timing"}
    assert {entry.spec().provider_name for entry in entries} == {PROVIDER_NAME}


@pytest.mark.parametrize(
    ("entry", "group", "private"),
    [
        (TOOL, True, True),
        (replace(TOOL, is_on=lambda: False), False, False),
        (replace(TOOL, visibility="hidden"), False, False),
        (replace(TOOL, chat_scope="group"), True, False),
        (replace(TOOL, chat_scope="private"), False, True),
    ],
)
async def test_what_an_entry_says_of_itself_counts_without_a_row(
    entry: BuiltinTool, group: bool, private: bool
):
    tools = registry(entry)
    assert [await tools.has_tool("f", chat) for chat in (GROUP, PRIVATE)] == [group, private]


@pytest.mark.parametrize(
    ("entry", "row", "group", "private"),
    [
        (TOOL, ToolSettings("f", enabled=False), False, False),
        (replace(TOOL, visibility="hidden"), ToolSettings("f"), True, True),
        (replace(TOOL, chat_scope="group"), ToolSettings("f", scope="private"), False, True),
        (replace(TOOL, is_on=lambda: False), ToolSettings("f"), False, False),
    ],
)
async def test_the_row_wins_over_the_entry_but_not_over_its_switch(
    entry: BuiltinTool, row: ToolSettings, group: bool, private: bool
):
    tools = registry(entry, f=row)
    assert [await tools.has_tool("f", chat) for chat in (GROUP, PRIVATE)] == [group, private]


@pytest.mark.parametrize(
    ("stage", "planner", "gate"),
    [("action", True, False), ("timing", False, True), ("both", True, True)],
)
async def test_a_stage_decides_between_planner_and_gate(stage: Any, planner: bool, gate: bool):
    tools = registry(replace(TOOL, stage=stage))
    engine = Engine(Script(), tools)
    assert await engine.registry.has_tool("f", GROUP) == planner
    assert await tools.narrowed(is_timing_tool).has_tool("f", GROUP) == gate


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        (replace(TOOL, is_on=lambda: False, visibility="hidden", chat_scope="private"), "unknown"),
        (replace(TOOL, stage="timing", visibility="hidden", chat_scope="private"), "unknown"),
        (replace(TOOL, visibility="hidden", chat_scope="private"), "hidden"),
        (replace(TOOL, chat_scope="private"), "wrong_chat"),
    ],
)
async def test_of_several_reasons_against_a_tool_the_first_in_order_is_given(
    entry: BuiltinTool, told: str
):
    tools = Engine(Script(), registry(entry)).registry
    result = await tools.invoke(
        ToolInvocation("f", {}),
        ToolExecutionContext(session_id=GROUP.session_id, is_group_chat=True),
    )
    assert result.metadata["refusal"] == told
