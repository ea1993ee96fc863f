"""The tool ``use_subagent``: a task for another model, with a prompt of its own."""

import asyncio
from typing import Any

import pytest

from agent.builtin_tools import use_subagent
from agent.builtin_tools.course import MaisakaBuiltinToolProvider
from agent.domain.errors import LLMError
from agent.subagents.runner import SubagentRunner
from tests.agent.agents import agent
from tests.agent.talk import Script, calling
from tests.tools.fakes import Provider
from tools.contract import ToolAvailabilityContext, ToolExecutionResult, ToolInvocation
from tools.registry.registry import ToolRegistry


def registry(coder: Script, **others: Script) -> ToolRegistry:
    agents = [
        agent(model, name, description=f"Is {name}.", tools=["f"])
        for name, model in {"Coder": coder, **others}.items()
    ]
    registry = ToolRegistry()
    registry.register_provider(
        MaisakaBuiltinToolProvider(
            [use_subagent.build_subagent_tool(agents, SubagentRunner(registry))]
        )
    )
    return registry


async def use(
    coder: Script, name: Any = "Coder", content: Any = "write f", **others: Script
) -> ToolExecutionResult:
    call = ToolInvocation("use_subagent", {"subagent_name": name, "content": content})
    return await registry(coder, **others).invoke(call)


async def test_the_subagent_is_asked_with_its_own_prompt_and_its_text_is_the_result():
    coder = Script("def f(): ...")
    result = await use(coder)
    assert (result.success, result.content) == (True, "def f(): ...")
    (request,) = coder.requests
    assert request.messages == [
        {"role": "system", "content": "I am Coder"},
        {"role": "user", "content": "write f"},
    ]
    assert request.tools == []


@pytest.mark.parametrize("name", ["coder", "CODER", " Coder "])
async def test_a_name_is_understood_in_any_case(name):
    assert (await use(Script("x"), name)).success


async def test_an_unknown_name_is_answered_with_the_known_ones():
    coder = Script()
    result = await use(coder, "Painter", Poet=Script())
    assert not result.success
    assert all(word in result.error_message for word in ("Painter", "Coder", "Poet"))
    assert coder.requests == []


@pytest.mark.parametrize(
    ("name", "content"), [("", "x"), ("Coder", ""), (None, "x"), ("Coder", None), (["Coder"], "x")]
)
async def test_name_and_content_are_both_needed(name, content):
    coder = Script()
    assert not (await use(coder, name, content)).success
    assert coder.requests == []


async def test_a_failure_of_its_model_is_told():
    result = await use(Script(LLMError("overloaded")))
    assert not result.success
    assert "overloaded" in result.error_message


@pytest.mark.parametrize("text", ["", None])
async def test_a_subagent_that_says_nothing_is_named(text):
    result = await use(Script({"content": text}, ""))
    assert result.success
    assert "Coder" in result.content


async def test_a_subagent_may_use_the_tools_of_its_list():
    coder = Script(calling(("f", '{"a": 1}'), ("use_subagent", "{}")), "done")
    tools = registry(coder)
    tools.register_provider(Provider("tools", "f", "g"))
    result = await tools.invoke(
        ToolInvocation("use_subagent", {"subagent_name": "Coder", "content": "x"})
    )
    assert (result.content, [tool["name"] for tool in coder.requests[0].tools]) == ("done", ["f"])
    given, refused = (message["content"] for message in coder.requests[1].messages[3:])
    assert given == "{'a': 1}"
    assert refused.startswith("Tool not found: use_subagent")


async def test_it_is_offered_without_a_chat_too_and_asks_to_be_announced():
    (spec,) = await registry(Script()).list_tools(ToolAvailabilityContext())
    assert "send_message" in spec.description
    assert "Coder（Is Coder.）" in spec.description
    assert spec.parameters_schema is not None
    assert set(spec.parameters_schema["required"]) == {"subagent_name", "content"}


async def test_tasks_side_by_side_do_not_mix():
    futures = [asyncio.get_running_loop().create_future() for _ in range(5)]
    coder = Script(*futures)
    tasks = [asyncio.create_task(use(coder, content=f"task {number}")) for number in range(5)]
    while len(coder.requests) < 5:  # noqa: ASYNC110 - the script has no event for it
        await asyncio.sleep(0)
    order = [request.messages[1]["content"] for request in coder.requests]
    for content, future in reversed(list(zip(order, futures, strict=True))):
        future.set_result(f"result of {content}")
    assert [(await task).content for task in tasks] == [
        f"result of task {number}" for number in range(5)
    ]
