"""The engine of each persona: whom it asks, and which tools it has."""

from collections.abc import Sequence
from dataclasses import replace

from agent.domain.endpoint import ModelRole
from agent.domain.persona import PersonaSettings, ToolChoice, environment_persona
from agent.llm.requests.base import LLMClient
from agent.run.engine import Engine, PersonaEngines
from tests.agent.talk import Script
from tests.tools.fakes import Provider
from tools.contract import ToolInvocation
from tools.registry.registry import ToolRegistry


class Source:
    def model(self, role: ModelRole, choice: Sequence[int] = ()) -> LLMClient:
        script = Script()
        script.name = self.name_model(role, choice)
        return script

    def name_model(self, role: ModelRole, choice: Sequence[int] = ()) -> str:
        return f"{role.value} {list(choice)}"


def engines() -> PersonaEngines:
    registry = ToolRegistry()
    registry.register_provider(Provider("tools", "f", "g"))
    return PersonaEngines(Engine(Script(), registry), Source())


def persona(**fields: object) -> PersonaSettings:
    return replace(environment_persona(), **fields)  # type: ignore[arg-type]


def test_a_persona_without_choices_has_the_engine_of_all():
    found = engines()
    assert found.find(persona(prompt="Be brief.")) is found.default


async def test_a_tool_that_is_not_offered_is_not_found():
    found = engines().find(persona(tool_choice=ToolChoice.ONLY, tools=frozenset({"g"})))
    assert [tool.name for tool in await found.registry.list_tools()] == ["g"]
    refused = await found.registry.invoke(ToolInvocation("f", {}))
    unknown = await found.registry.invoke(ToolInvocation("h", {}))
    assert refused.metadata["refusal"] == unknown.metadata["refusal"]


def test_a_persona_asks_its_own_endpoints():
    someone = persona(endpoints={ModelRole.CHAT: (7, 3)})
    found = engines()
    assert found.find(someone).model.name == "chat [7, 3]" == found.name_model(someone)
    assert found.find(replace(someone, name="another")) is found.find(someone)
    assert found.name_model(persona()) == "script"
