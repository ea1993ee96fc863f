"""The state of a chat in real runs: tools find and change it, prompts show it, and it lasts."""

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from agent.api.queries import StatelessQueries
from agent.domain.errors import LLMError
from agent.models import ChatSession, Run
from agent.record.record import Record
from agent.run import deferred_calls
from agent.run.engine import Engine, PersonaEngines
from tests.agent.conftest import Say
from tests.agent.talk import GROUP, PRIVATE, Script, calling
from tests.environment import PATIENCE
from tools.contract import ToolExecutionContext
from tools.functions.function_tool import FunctionProvider, tool
from tools.registry.registry import ToolRegistry

pytestmark = pytest.mark.django_db(transaction=True)

REMEMBER = calling(("remember", '{"topic": "tea"}'))


@tool
def remember(topic: str, context: ToolExecutionContext) -> str:
    """Remember what the chat is about; tells how often that changed."""
    state = context.metadata["state"]
    state |= {"topic": topic, "times": state.get("times", 0) + 1, "temp:busy": True}
    if topic == "taboo":
        raise ValueError(topic)
    return f"{state['times']}"


@pytest.fixture
def registry() -> ToolRegistry:
    registry = ToolRegistry()
    registry.register_provider(FunctionProvider("own", "test", [remember]))
    return registry


@pytest.fixture(autouse=True)
def _prompt(settings: Any) -> None:
    settings.SYSTEM_PROMPT = (
        "Topic: {topic?}/{times?}/{temp:busy?}, {tool:remember}, {date?}{nobody}."
    )


def told(model: Script) -> list[str]:
    """What the tools of the last request returned."""
    return [one["content"] for one in model.requests[-1].messages if one["role"] == "tool"]


def shown(model: Script) -> str:
    """The topic, as the prompt of the first request shows it."""
    return str(model.requests[0].messages[0]["content"]).partition(",")[0]


@sync_to_async
def stored(chat: Any = PRIVATE) -> Any:
    return ChatSession.objects.get(kind=chat.kind, peer_id=chat.peer_id).state


@sync_to_async
def last_run() -> Run:
    return Run.objects.latest("pk")


async def test_what_a_tool_sets_is_there_for_the_next_call_and_for_later_prompts(say: Say):
    calls = calling(("remember", '{"topic": "tea"}'), ("remember", '{"topic": "茶"}'))
    first = await say(Script(calls, REMEMBER, "ok"))
    assert shown(first) == "Topic: //"
    assert told(first) == ["1", "2", "3"]
    assert await stored() == {"topic": "tea", "times": 3}
    assert shown(await say(Script("ok"))) == "Topic: tea/3/"


async def test_each_chat_has_a_state_of_its_own(say: Say):
    await say(Script(REMEMBER, "ok"))
    assert shown(await say(Script(REMEMBER, "ok"), GROUP)) == "Topic: //"
    assert await stored(GROUP) == {"topic": "tea", "times": 1}


async def test_a_tool_that_fails_keeps_what_it_had_set_and_one_that_is_refused_sets_nothing(
    say: Say,
):
    await say(Script(calling(("remember", '{"topic": "taboo"}'), ("remember", "{}")), "ok"))
    assert await stored() == {"topic": "taboo", "times": 1}


async def test_a_long_running_tool_stores_what_it_set_with_its_later_outcome(
    say: Say, registry: ToolRegistry, monkeypatch: pytest.MonkeyPatch
):
    may_end = asyncio.Event()

    @tool(is_long_running=True)
    async def ponder(context: ToolExecutionContext) -> str:
        """Think about it."""
        await may_end.wait()
        context.metadata["state"]["topic"] = "42"
        return "pondered"

    registry.register_provider(FunctionProvider("slow", "test", [ponder]))
    monkeypatch.setattr(deferred_calls, "GRACE_SECONDS", 0)
    assert "正在执行" in told(await say(Script(calling(("ponder", "{}")), "wait")))[0]
    assert await stored() == {}
    may_end.set()
    async with asyncio.timeout(PATIENCE):
        while await stored() != {"topic": "42"}:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("answer", ["ok", LLMError("down")])
async def test_the_run_notes_what_had_no_value_and_goes_on(say: Say, answer: Any):
    model = await say(Script(answer))
    content = model.requests[0].messages[0]["content"]
    assert content.startswith("Topic: //, remember, 2")
    assert content.endswith("{nobody}.")
    (note,) = (await last_run()).notes
    assert note.endswith("\n{nobody}")


async def test_without_a_chat_a_state_lasts_for_one_run(record: Record, registry: ToolRegistry):
    model = Script(REMEMBER, REMEMBER, "ok")
    await StatelessQueries(record, PersonaEngines(Engine(model, registry))).answer(
        [{"role": "user", "content": "hi"}]
    )
    assert shown(model) == "Topic: //"
    assert told(model) == ["1", "2"]
    assert (await last_run()).notes[0].endswith("\n{nobody}")
