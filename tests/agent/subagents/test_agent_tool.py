"""An agent as a tool: what it takes and gives, which tools it has, and how far agents may call each
other."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent.domain.chat_state import ChatState
from agent.domain.errors import LLMError
from agent.run.engine import Engine
from agent.run.message_sender import SendAllowance
from agent.run.services import RunServices, get_services
from agent.run.task import RunRequest
from agent.subagents.runner import NullJournal
from agent.subagents.subagent import REQUEST, Subagent
from tests.agent.agents import CONTEXT, agent, offered, registry_of, told
from tests.agent.talk import Script, calling
from tests.tools.fakes import Provider
from tools.contract import (
    InvalidDeclaration,
    JsonSchema,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolInvocation,
)
from tools.functions.function_tool import FunctionProvider, tool
from tools.registry.settings import ToolSettings

INPUT: JsonSchema = {
    "type": "object",
    "properties": {"is_magic": {"type": "boolean"}, "name": {"type": "string"}},
    "required": ["is_magic", "name"],
}
OUTPUT: JsonSchema = {
    "type": "object",
    "properties": {"is_valid": {"type": "boolean"}, "message": {"type": "string"}},
    "required": ["is_valid", "message"],
}
VALID = {"is_valid": True, "message": "success"}
REFUSED = "Tool not found: "


async def ask(
    one: Subagent,
    *others: Subagent,
    arguments: Any = None,
    context: ToolExecutionContext = CONTEXT,
    **parts: Any,
) -> ToolExecutionResult:
    """The result of calling ``one`` by its name."""
    registry = registry_of(one, *others, **parts)
    return await registry.invoke(
        ToolInvocation(one.name, {"request": "go"} if arguments is None else arguments), context
    )


# --- What it takes ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "declared"), [(None, REQUEST), (INPUT, INPUT | {"additionalProperties": False})]
)
async def test_it_is_declared_with_its_input_schema_or_as_one_that_takes_a_request(
    schema, declared
):
    spec = await registry_of(agent(Script(), input_schema=schema)).get_tool_spec("helper")
    assert spec is not None
    assert (spec.description, spec.parameters_schema, spec.provider_name) == (
        "Helps.",
        declared,
        "agents",
    )


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        (INPUT, {"is_magic": True, "name": "x", "age": 1}),
        (INPUT, {"is_magic": "perhaps", "name": "x"}),
        (INPUT, {"is_magic": True}),
        (None, {}),
        (None, {"request": ""}),
        (None, {"request": "x", "extra": 1}),
    ],
)
async def test_invalid_arguments_do_not_reach_it(schema, arguments):
    model = Script()
    result = await ask(agent(model, input_schema=schema), arguments=arguments)
    assert not result.success
    assert model.requests == []


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [(None, {"request": "写诗"}), (INPUT, {"is_magic": True, "name": "冰"})],
)
async def test_it_is_asked_with_its_own_prompt_and_nothing_of_the_chat(schema, arguments):
    model = Script("done")
    await ask(agent(model, input_schema=schema), arguments=arguments)
    system, user = model.requests[0].messages
    assert system == {"role": "system", "content": "I am helper"}
    assert user["role"] == "user"
    assert (user["content"] if schema is None else json.loads(user["content"])) == (
        arguments if schema else "写诗"
    )


async def test_its_prompt_is_filled_in_for_the_chat_and_from_the_tools_it_has():
    model, state = Script("done"), ChatState(values={"mood": "merry"})
    helper = agent(
        model,
        prompt="Be {mood}: use {tool:f}, {tool:g?}{tool:g}.",
        tools=["f"],
        output_schema={"title": "{mood}"},
    )
    await ask(helper, context=replace(CONTEXT, services=RunServices(chat_state=state)))
    text = model.requests[0].messages[0]["content"]
    assert text.startswith("Be merry: use f, {tool:g}.\n")
    assert '{"title": "{mood}"}' in text


@pytest.mark.parametrize("names", [["a b"], ["诗人"], [""], ["x" * 65], ["same", "same"]])
def test_a_name_that_no_tool_can_have_or_two_have_is_refused_where_it_is_declared(names):
    with pytest.raises(InvalidDeclaration):
        registry_of(*(agent(Script(), name) for name in names))


# --- What it gives ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("a poem", "a poem"),
        ([{"text": "First text part is returned"}, {"text": " This should not be ignored"}],
         "First text part is returned This should not be ignored"),
    ],
)  # fmt: skip
async def test_the_text_of_its_last_answer_is_the_result(answer, text):
    model = Script(calling(("f", "{}"), content="not this"), {"content": answer})
    result = await ask(agent(model, tools=["f"]))
    assert (result.success, result.content, result.structured_content) == (True, text, None)


@pytest.mark.parametrize("content", ["", None, " \n", []])
async def test_no_answer_is_an_empty_object(content):
    result = await ask(agent(Script({"content": content}, "")))
    assert (result.success, result.get_history_content()) == (True, "{}")


@pytest.mark.parametrize("form", ["{}", " {}\n", "```json\n{}\n```", "```\n{}```"])
async def test_an_answer_that_fits_its_output_schema_is_passed_on_as_an_object(form):
    model = Script(form.format(json.dumps(VALID)) if "{}" in form else form)
    result = await ask(agent(model, output_schema=OUTPUT))
    assert (result.success, result.structured_content, result.content) == (True, VALID, "")
    assert json.dumps(OUTPUT, ensure_ascii=False) in model.requests[0].messages[0]["content"]


@pytest.mark.parametrize(
    "answer",
    [
        '{"is_valid": "invalid type"}',
        '{"is_valid": true}',
        "Yes!",
        "[1]",
        '{"is_valid": NaN, "message": ""}',
        "",
        "{" * 9_999,
    ],
)
async def test_an_answer_that_does_not_fit_its_output_schema_is_a_failure(answer):
    result = await ask(agent(Script(answer), output_schema=OUTPUT))
    assert (result.success, result.structured_content) == (False, None)
    assert result.error_message.startswith("工具执行失败: ")


async def test_a_model_that_cannot_be_asked_is_a_failure_that_names_the_agent():
    result = await ask(agent(Script(LLMError("overloaded"))))
    assert not result.success
    assert "helper" in result.error_message
    assert "overloaded" in result.error_message


async def test_an_agent_that_finds_no_end_is_stopped_by_its_own_limit():
    model = Script(*[calling(("f", "{}"))] * 9)
    result = await ask(agent(model, tools=["f"], model_calls=2))
    assert (result.success, len(model.requests)) == (False, 2)
    assert "helper" in result.error_message


# --- Which tools it has -------------------------------------------------------------


@pytest.mark.parametrize(
    ("tools", "names"), [(["f"], ["f"]), ((), []), (lambda spec: spec.name > "f", ["g", "helper"])]
)
async def test_it_is_offered_the_tools_of_its_list_alone(tools, names):
    model = Script("done")
    await ask(agent(model, tools=tools))
    assert offered(model) == names


async def test_a_tool_outside_its_list_is_not_found_and_its_names_are_not_told():
    provider, model = Provider("tools", "f", "f2"), Script(calling(("f2", "{}")), "done")
    assert (await ask(agent(model, tools=["f"]), tools=provider)).success
    assert told(model).splitlines()[0] == f"{REFUSED}f2"
    assert "f2" not in told(model).replace(f"{REFUSED}f2", "")
    assert provider.invocations == []


async def test_an_agent_that_says_nothing_is_asked_once_more_unless_it_spoke_in_the_chat():
    speaker = SimpleNamespace(allowance=SendAllowance())
    context = ToolExecutionContext(
        "s", user_id="7", services=RunServices(sender=cast("Any", speaker))
    )

    async def speak(invocation: ToolInvocation) -> ToolExecutionResult:
        speaker.allowance.take("hi")
        return ToolExecutionResult("f", success=True, content="sent")

    for answers, text in (
        (["", "a poem"], "a poem"),
        ([calling(("f", "{}")), ""], "{}"),
        (["", ""], "{}"),
    ):
        model, provider = Script(*answers), Provider("tools", "f", answer=speak)
        result = await ask(agent(model, tools=["f"]), tools=provider, context=context)
        assert (result.get_history_content(), model.answers) == (text, [])


async def test_its_tools_see_the_chat_and_the_sender_of_the_call_around_them():
    provider, speaker = Provider("tools", "f"), SimpleNamespace(allowance=SendAllowance())
    context = ToolExecutionContext(
        "s", user_id="7", services=RunServices(sender=cast("Any", speaker))
    )
    await ask(
        agent(Script(calling(("f", '{"a": 1}')), "done"), tools=["f"]),
        tools=provider,
        context=context,
    )
    (seen,) = provider.contexts
    assert seen is not None
    assert (seen.session_id, seen.user_id) == ("s", "7")
    assert get_services(seen).sender is cast("Any", speaker)
    assert (get_services(seen).subagents, get_services(context).subagents) == (("helper",), ())


async def test_its_tools_share_the_state_of_the_chat():
    @tool
    def count(context: ToolExecutionContext) -> int:
        """Count."""
        context.metadata["state"]["n"] += 1
        return int(context.metadata["state"]["n"])

    state, model = (
        ChatState(values={"n": 4, "k": "v"}),
        Script(calling(("count", "{}")), calling(("count", "{}")), "done"),
    )
    registry = registry_of(
        agent(model, tools=["count"]), tools=FunctionProvider("tools", "builtin", [count])
    )
    boss = Script(calling(("helper", '{"request": "x"}')), "done")
    task = RunRequest(
        0,
        [{"role": "user", "content": "go"}],
        replace(CONTEXT, services=RunServices(chat_state=state)),
        5,
    )
    await Engine(boss, registry).run(task, NullJournal())
    assert (told(model), state.values) == ('{"result": 6}', {"n": 6, "k": "v"})


@pytest.mark.parametrize(("user", "made"), [("20001", 0), ("1", 1)])
async def test_who_may_use_a_tool_is_decided_from_the_sender_of_the_message(user, made):
    provider, model = Provider("tools", "f"), Script(calling(("f", '{"user_id": "1"}')), "done")
    context = ToolExecutionContext(user_id=user, owners={"1"})
    rows = {"f": ToolSettings("f", allowed="owners")}
    await ask(agent(model, tools=["f"]), tools=provider, rows=rows, context=context)
    assert len(provider.invocations) == made
    assert ("没有权限" in told(model)) == (made == 0)


@pytest.mark.parametrize(
    "row", [{"enabled": False}, {"visibility": "hidden"}, {"scope": "group"}], ids=str
)
async def test_a_tool_that_is_not_in_view_here_is_neither_offered_nor_callable(row):
    model = Script(calling(("f", "{}")), "done")
    await ask(agent(model, tools=["f"]), rows={"f": ToolSettings("f", **row)})
    assert offered(model) == []
    assert told(model).startswith(f"{REFUSED}f")


async def test_its_calls_count_with_those_of_everybody_else():
    provider, model = Provider("tools", "f"), Script(calling(("f", "{}"), ("f", "{}")), "done")
    await ask(
        agent(model, tools=["f"]),
        tools=provider,
        rows={"f": ToolSettings("f", calls_per_minute_person=1)},
    )
    assert len(provider.invocations) == 1
    assert "过于频繁" in told(model)


async def test_an_approved_call_of_an_agent_approves_none_of_its_own():
    provider, model = Provider("tools", "f"), Script(calling(("f", "{}")), "done")
    rows = {name: ToolSettings(name, requires_approval="always") for name in ("f", "helper")}
    registry = registry_of(agent(model, tools=["f"]), tools=provider, rows=rows)
    assert (
        await registry.invoke(ToolInvocation("helper", {"request": "x"}), CONTEXT, approved=True)
    ).success
    assert "批准" in told(model)
    assert provider.invocations == []


# --- Agents that call agents --------------------------------------------------------


async def test_an_agent_that_calls_itself_is_refused_at_the_fourth_time():
    model = Script(*[calling(("helper", '{"request": "you do it"}'))] * 3, "one", "two", "three")
    result = await ask(agent(model, tools=["helper"]))
    assert (result.success, result.content) == (True, "three")
    assert len(model.requests) == 6
    assert "最多嵌套 3 层" in told(model, 3)


async def test_each_agent_has_the_tools_of_its_own_list():
    boss, worker = (
        Script(calling(("worker", '{"request": "x"}')), "boss done"),
        Script(calling(("f", "{}")), "worker done"),
    )
    provider = Provider("tools", "f")
    result = await ask(
        agent(boss, "boss", tools=["worker"]), agent(worker, "worker", tools=["f"]), tools=provider
    )
    assert (result.content, told(boss), told(worker)) == ("boss done", "worker done", "{}")
    assert (offered(boss), offered(worker), len(provider.invocations)) == (["worker"], ["f"], 1)


async def test_an_inner_agent_that_fails_costs_its_call_and_not_the_outer_agent():
    boss = Script(calling(("worker", '{"request": "x"}')), "did it myself")
    result = await ask(
        agent(boss, "boss", tools=["worker"]), agent(Script(LLMError("overloaded")), "worker")
    )
    assert result.content == "did it myself"
    assert "worker" in told(boss)


async def test_agents_with_one_model_share_its_client_which_is_closed_with_the_registry():
    made: list[Script] = []

    class Client(Script):
        closed = 0

        async def close(self) -> None:
            Client.closed += 1

    def model() -> Script:
        made.append(Client("one", "two"))
        return made[-1]

    registry = registry_of(
        *(Subagent(name=name, description="", prompt="", model=model) for name in "ab")
    )
    answers = [
        (await registry.invoke(ToolInvocation(name, {"request": "x"}), CONTEXT)).content
        for name in "ab"
    ]
    await registry.close()
    assert (answers, len(made), Client.closed) == (["one", "two"], 1, 1)
