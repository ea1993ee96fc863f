"""The engine of each persona: its endpoints, and its tools."""

import copy
from collections.abc import Sequence
from typing import Protocol

from agent.domain.model_roles import ModelRole
from agent.domain.persona import Persona, ToolChoice
from agent.llm.requests.base import LLMClient
from agent.run.engine import Engine

#: Sets of endpoints and tools that an engine is kept for.
MOST_KEPT = 200


class ModelSource(Protocol):
    """Who is asked for a role, by the keys of the endpoints that a persona names for it."""

    def model(self, role: ModelRole, choice: Sequence[int] = ()) -> LLMClient: ...

    def name_model(self, role: ModelRole, choice: Sequence[int] = ()) -> str:
        """The name of the model that is asked first. May be called in any thread."""
        ...


class PersonaEngines:
    """``default`` as each persona has it. Without a ``source`` all personas have its models. Used
    from one event loop, but for :meth:`name_model`."""

    def __init__(self, default: Engine, source: ModelSource | None = None) -> None:
        self.default = default
        self._source = source
        self._kept: dict[object, Engine] = {}

    def find(self, persona: Persona) -> Engine:
        """The engine with the endpoints and the tools of ``persona``: what it does not offer is
        not found when it is called. The timing gate keeps its own tools."""
        chat = persona.endpoints.get(ModelRole.CHAT, ())
        timing = persona.endpoints.get(ModelRole.TIMING, ())
        if persona.tool_choice == ToolChoice.ALL and not (chat or timing):
            return self.default
        key = persona.tool_choice, persona.tools, chat, timing
        if key not in self._kept:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            made = self._kept[key] = copy.copy(self.default)
            made.registry = made.registry.narrowed(lambda spec: persona.offers(spec.name))
            if self._source is not None:
                made.model = self._source.model(ModelRole.CHAT, chat)
                made.gate = made.gate.asking(self._source.model(ModelRole.TIMING, timing))
        return self._kept[key]

    def name_model(self, persona: Persona) -> str:
        """The model that ``persona`` is answered by first. May be called in any thread."""
        choice = persona.endpoints.get(ModelRole.CHAT, ())
        if self._source is None or not choice:
            return self.default.model.name
        return self._source.name_model(ModelRole.CHAT, choice)
