"""Agents for tests, with models by script, beside a tool that tells what it was given."""

from collections.abc import Mapping
from typing import Any

from agent.record.record import Record
from agent.subagents.provider import SubagentToolProvider
from agent.subagents.runner import SubagentRunner
from agent.subagents.subagent import Subagent
from tests.agent.talk import Script
from tests.tools.fakes import Provider
from tools.contract import ToolExecutionContext, ToolProvider
from tools.registry.registry import ToolRegistry
from tools.registry.settings import ToolSettings

CONTEXT = ToolExecutionContext(
    session_id="onebot:private:20001",
    is_group_chat=False,
    user_id="20001",
    platform="onebot",
    owners={"1"},
)


def agent(model: Script, name: str = "helper", **fields: Any) -> Subagent:
    usual: dict[str, Any] = {"description": "Helps.", "prompt": f"I am {name}"}
    return Subagent(name=name, model=lambda: model, **usual | fields)


def registry_of(
    *agents: Subagent,
    tools: ToolProvider | None = None,
    rows: Mapping[str, ToolSettings] | None = None,
    record: Record | None = None,
) -> ToolRegistry:
    """A registry of ``tools`` (``f`` and ``g``, unless others are given) and of ``agents`` as
    tools."""
    registry = ToolRegistry(lambda: rows or {})
    registry.register_provider(tools or Provider("tools", "f", "g"))
    registry.register_provider(SubagentToolProvider(agents, SubagentRunner(registry, record)))
    return registry


def told(model: Script, number: int = -1) -> str:
    """What the last message of a request said."""
    return str(model.requests[number].messages[-1]["content"])


def offered(model: Script, number: int = 0) -> list[str]:
    return [tool["name"] for tool in model.requests[number].tools]
