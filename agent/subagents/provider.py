"""Agents as tools under their own names."""

from collections.abc import Iterable, Sequence

from agent.subagents.roster import AgentRoster
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
    """Offers each of ``agents`` as a tool, wherever tools are offered: those that are declared in
    code, or all of a roster.

    Raises :class:`tools.errors.InvalidDeclaration` for two agents of one name in code.
    """

    provider_name = PROVIDER_NAME
    provider_type = PROVIDER_TYPE

    def __init__(self, agents: Iterable[Subagent] | AgentRoster, runner: SubagentRunner) -> None:
        self._roster = agents if isinstance(agents, AgentRoster) else AgentRoster(tools=agents)
        self._runner = runner
        self._declared: dict[str, SubagentTool] = {}
        for tool in map(SubagentTool, self._roster.tools):
            if tool.spec.name in self._declared:
                raise InvalidDeclaration(f"duplicate agent: {tool.spec.name}")
            self._declared[tool.spec.name] = tool
        self._rows: Sequence[Subagent] = ()
        self._tools = self._declared

    def listing_key(self, context: ToolAvailabilityContext | None) -> list[ToolSpec]:
        return [tool.spec for tool in self._known().values()]

    async def list_tools(self, context: ToolAvailabilityContext | None = None) -> list[ToolSpec]:
        return [tool.spec for tool in self._known().values()]

    async def invoke(
        self, invocation: ToolInvocation, context: ToolExecutionContext | None = None
    ) -> ToolExecutionResult:
        """Have the agent do it. Raises :class:`tools.errors.ToolFailed`, which the registry makes a
        result of."""
        tool = self._known().get(invocation.tool_name)
        if tool is None:
            return outcomes.not_found_result(invocation.tool_name)
        request = tool.agent.request(invocation.arguments)
        return tool.result(
            await self._runner.ask(
                tool.agent, request, invocation, context or ToolExecutionContext()
            )
        )

    def _known(self) -> dict[str, SubagentTool]:
        """The tools as they are now: the same mapping while no row is changed."""
        rows = self._roster.from_rows()
        if rows is not self._rows:
            made = map(SubagentTool, self._roster.tools_from_rows())
            self._tools = {tool.spec.name: tool for tool in made} | self._declared
            self._rows = rows
        return self._tools

    async def close(self) -> None:
        """End what agents hold, also those that are no tools of their own."""
        await self._runner.close()


def strip_code_fence(text: str) -> str:
    """``text`` without the code fence that models like to put around JSON."""
    if not (text.startswith("```") and text.endswith("```")):
        return text
    return text.partition("\n")[2].removesuffix("```")
