"""Agents as tools under their own names."""

from collections.abc import Iterable

from agent.subagents.runner import SubagentRunner
from agent.subagents.subagent import Subagent
from tools.contract import (
    TOOL_NAME,
    ToolAvailabilityContext,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolInvocation,
    ToolSpec,
)
from tools.errors import InvalidArguments, InvalidDeclaration, ToolFailed
from tools.registry import outcomes
from tools.registry.catalogue import DefaultConfig
from tools.schemas.arguments import parse_arguments

PROVIDER_NAME = "agents"
PROVIDER_TYPE = "agent"


class SubagentTool:
    """An agent and its declaration as a tool.

    Raises :class:`tools.errors.InvalidDeclaration` for a name that no tool can have.
    """

    def __init__(self, agent: Subagent) -> None:
        if not TOOL_NAME.fullmatch(agent.name):
            raise InvalidDeclaration(f"{agent.name!r} cannot be the name of a tool")
        self.agent = agent
        self.spec = ToolSpec(
            name=agent.name,
            description=agent.description,
            parameters_schema=agent.parameters,
            output_schema=agent.output_schema,
            provider_name=PROVIDER_NAME,
            provider_type=PROVIDER_TYPE,
            metadata={"default_config": DefaultConfig(timeout_seconds=agent.seconds)},
        )

    def result(self, text: str) -> ToolExecutionResult:
        """The agent's last answer as its tool's result; an object, where that is promised, is
        checked by the registry.

        Raises :class:`tools.errors.ToolFailed` for words where an object is promised.
        """
        if text and self.agent.output_schema is None:
            return ToolExecutionResult(self.agent.name, success=True, content=text)
        try:
            return ToolExecutionResult(
                self.agent.name,
                success=True,
                structured_content=parse_arguments(strip_code_fence(text)),
            )
        except InvalidArguments as error:
            raise ToolFailed(
                f"子代理 {self.agent.name} 的回答不是所要求的 JSON 对象: {error}"
            ) from error


class SubagentToolProvider:
    """Offers each of ``agents`` as a tool, wherever tools are offered.

    Raises :class:`tools.errors.InvalidDeclaration` for two agents of one name.
    """

    provider_name = PROVIDER_NAME
    provider_type = PROVIDER_TYPE

    def __init__(self, agents: Iterable[Subagent], runner: SubagentRunner) -> None:
        self._runner = runner
        self._tools: dict[str, SubagentTool] = {}
        for tool in map(SubagentTool, agents):
            if tool.spec.name in self._tools:
                raise InvalidDeclaration(f"duplicate agent: {tool.spec.name}")
            self._tools[tool.spec.name] = tool

    def listing_key(self, context: ToolAvailabilityContext | None) -> str:
        return PROVIDER_NAME

    async def list_tools(self, context: ToolAvailabilityContext | None = None) -> list[ToolSpec]:
        return [tool.spec for tool in self._tools.values()]

    async def invoke(
        self, invocation: ToolInvocation, context: ToolExecutionContext | None = None
    ) -> ToolExecutionResult:
        """Have the agent do it. Raises :class:`tools.errors.ToolFailed`, which the registry makes a
        result of."""
        tool = self._tools.get(invocation.tool_name)
        if tool is None:
            return outcomes.not_found_result(invocation.tool_name)
        request = tool.agent.request(invocation.arguments)
        return tool.result(
            await self._runner.ask(
                tool.agent, request, invocation, context or ToolExecutionContext()
            )
        )

    async def close(self) -> None:
        """End what agents hold, also those that are no tools of their own."""
        await self._runner.close()


def strip_code_fence(text: str) -> str:
    """``text`` without the code fence that models like to put around JSON."""
    if not (text.startswith("```") and text.endswith("```")):
        return text
    return text.partition("\n")[2].removesuffix("```")
