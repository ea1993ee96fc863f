"""Agents as tools under their own names."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil

from agent.domain.endpoint import ModelRole
from agent.domain.persona import PersonaSettings
from agent.subagents.runner import SubagentRunner
from agent.subagents.subagent import Subagent
from tools.contract import (
    TOOL_NAME,
    InvalidArguments,
    InvalidDeclaration,
    ToolAvailabilityContext,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolFailed,
    ToolInvocation,
    ToolSpec,
)
from tools.registry import catalogue
from tools.registry.catalogue import DefaultConfig
from tools.schemas.arguments import parse_arguments

Rows = tuple[PersonaSettings, ...]


@dataclass(slots=True)
class AgentRoster:
    """``named`` are known to ``use_subagent``, ``tools`` are tools of their own; both are declared
    in code. ``rows`` gives what operators have made, the same object for as long as nothing is
    changed, without I/O. Used from one event loop.

    Of one name, an operator's agent is the one that is handed work, and the tool in code the one
    that is called.
    """

    named: Iterable[Subagent] = ()
    tools: Iterable[Subagent] = ()
    rows: Callable[[], Rows] = tuple
    _seen: Rows = ()
    _built: tuple[Subagent, ...] = field(default=())
    _by_name: Mapping[str, Subagent] | None = None

    def by_name(self) -> Mapping[str, Subagent]:
        """Whom ``use_subagent`` knows, by their names in lower case: the same mapping while nothing
        is changed."""
        built = self.from_rows()
        if self._by_name is None:
            self._by_name = {one.name.casefold(): one for one in (*self.named, *built)}
        return self._by_name

    def tools_from_rows(self) -> list[Subagent]:
        """The agents of rows that are tools of their own, but for those whose name is taken in
        code or is none that a tool can have."""
        taken = {one.name for one in self.tools}
        return [
            agent
            for row, agent in zip(self.rows(), self.from_rows(), strict=True)
            if row.as_tool and row.name not in taken and TOOL_NAME.fullmatch(row.name)
        ]

    def from_rows(self) -> tuple[Subagent, ...]:
        """The agents that operators have made, as they are now."""
        rows = self.rows()
        if rows is not self._seen:
            self._seen, self._by_name = rows, None
            self._built = tuple(map(build_agent, rows))
        return self._built


def build_agent(row: PersonaSettings) -> Subagent:
    """The agent that ``row`` describes."""
    return Subagent(
        name=row.name,
        description=row.description,
        prompt=row.prompt,
        examples=row.describe_examples(),
        model=ModelRole.CHAT,
        endpoints=row.endpoints.get(ModelRole.CHAT, ()),
        tools=lambda spec: row.offers(spec.name),
        model_calls=row.model_calls,
        seconds=ceil(row.run_seconds),
        run_seconds=row.run_seconds,
    )


def speak_as(agent: Subagent, persona: PersonaSettings | None) -> Subagent:
    """``agent`` with the prompt, the manner and the chat endpoints of ``persona``."""
    if persona is None:
        return agent
    return replace(
        agent,
        prompt=persona.prompt,
        examples=persona.describe_examples(),
        endpoints=persona.endpoints.get(ModelRole.CHAT, ()),
    )


PROVIDER_NAME = "agents"
PROVIDER_TYPE = "agent"


class SubagentTool:
    """An agent and its declaration as a tool.

    Raises :class:`tools.contract.InvalidDeclaration` for a name that no tool can have.
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

        Raises :class:`tools.contract.ToolFailed` for words where an object is promised.
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

    Raises :class:`tools.contract.InvalidDeclaration` for two agents of one name in code.
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
        """Have the agent do it. Raises :class:`tools.contract.ToolFailed`, which the registry makes
        a result of."""
        tool = self._known().get(invocation.tool_name)
        if tool is None:
            return catalogue.not_found_result(invocation.tool_name)
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
