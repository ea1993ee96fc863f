"""All agents that may be handed work: those that the program declares, and those that operators
have made rows of."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil

from agent.domain.model_roles import ModelRole
from agent.domain.persona import Persona
from agent.subagents.subagent import Subagent
from tools.contract import TOOL_NAME

Rows = tuple[Persona, ...]


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


def build_agent(row: Persona) -> Subagent:
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


def speak_as(agent: Subagent, persona: Persona | None) -> Subagent:
    """``agent`` with the prompt, the manner and the chat endpoints of ``persona``."""
    if persona is None:
        return agent
    return replace(
        agent,
        prompt=persona.prompt,
        examples=persona.describe_examples(),
        endpoints=persona.endpoints.get(ModelRole.CHAT, ()),
    )
