"""A typed Python function as a tool: called with JSON, answered with a result."""

import asyncio
import functools
import threading
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from tools.contract import (
    InvalidArguments,
    InvalidDeclaration,
    ToolAvailabilityContext,
    ToolContentItem,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolFailed,
    ToolInvocation,
)
from tools.functions.function_tool import FunctionProvider, FunctionTool, NonBlank, tool
from tools.registry.catalogue import DefaultConfig
from tools.registry.registry import ToolRegistry


@dataclass
class Weather:
    status: str
    degrees: float


class Person(BaseModel):
    name: str
    age: int = 0


@tool
async def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


async def test_arguments_become_typed_values():
    @tool
    async def greet(person: Person, times: int) -> str:
        return f"{person.name}{person.age + times}"

    assert (await greet({"person": {"name": "A", "age": "4"}, "times": 2})).content == "A6"


async def test_a_default_of_the_function_is_used():
    assert (await add({"a": 4})).structured_content == {"result": 5}


async def test_text_is_content():
    @tool
    async def say(city: str) -> str:
        return f"sunny in {city}"

    result = await say({"city": "London"})
    assert (result.tool_name, result.success, result.content) == ("say", True, "sunny in London")
    assert result.structured_content is None


@pytest.mark.parametrize(
    ("value", "structured"),
    [
        ({"status": "ok"}, {"status": "ok"}),
        (Weather("sunny", 25), {"status": "sunny", "degrees": 25}),
        (Person(name="A"), {"name": "A", "age": 0}),
        ([1, 2], {"result": [1, 2]}),
        ((1, 2), {"result": [1, 2]}),
        (5, {"result": 5}),
        (False, {"result": False}),
    ],
)
async def test_everything_but_text_is_structured_content(value, structured):
    @tool
    async def give():
        return value

    result = await give({})
    assert (result.content, result.structured_content) == ("", structured)


async def test_nothing_is_an_empty_success():
    @tool
    async def rest() -> None:
        return None

    assert await rest({}) == ToolExecutionResult("rest", success=True)


async def test_a_whole_result_passes_as_it_is():
    made = ToolExecutionResult(
        "draw", success=True, content_items=[ToolContentItem("image", data="AA")]
    )

    @tool
    async def draw() -> ToolExecutionResult:
        return made

    assert await draw({}) is made
    assert draw.spec.output_schema is None


async def test_a_result_that_is_not_what_was_declared_is_a_failure(caplog):
    @tool
    async def weather() -> Weather:
        return "sunny"  # type: ignore[return-value]

    result = await weather({})
    assert not result.success
    assert result.error_message.startswith("工具执行失败: ")


async def test_a_given_output_schema_is_held():
    @tool(
        output_schema={
            "type": "object",
            "properties": {"result": {"enum": ["x"]}},
            "required": ["result"],
        }
    )
    async def pick(value: str | None) -> Any:
        return value

    assert (await pick({"value": "x"})).content == "x"
    assert (
        await pick({"value": "y"})
    ).error_message == "工具执行失败: 工具返回的结果与其声明不符: result 不支持: y"
    assert (
        await pick({"value": None})
    ).error_message == "工具执行失败: 工具返回的结果与其声明不符: result 不能为空"


@pytest.mark.parametrize("error", [ValueError("bad city"), SystemExit("bad city")])
@pytest.mark.parametrize("threaded", [False, True])
async def test_an_exception_becomes_a_failed_result(caplog, error, threaded):
    def sync_fail() -> None:
        raise error

    async def fail() -> None:
        raise error

    result = await FunctionTool(sync_fail if threaded else fail)({})
    assert not result.success
    assert "bad city" in result.metadata["error_detail"]
    assert caplog.records[0].exc_info


async def test_a_stray_stop_iteration_is_a_failure_too(caplog):
    @tool
    def exhausted() -> int:
        return next(iter([]))

    assert not (await exhausted({})).success


async def test_a_failure_in_the_tools_own_words_is_not_logged(caplog):
    @tool
    async def fail() -> str:
        raise ToolFailed("没有可用的实时数据源")

    assert (await fail({})).error_message == "工具执行失败: 没有可用的实时数据源"
    assert not caplog.records


async def test_what_the_annotations_do_not_take_is_refused():
    with pytest.raises(InvalidArguments) as caught:
        await add({"b": "x", "c": 1})
    lines = caught.value.problems
    assert lines[0] == "a 不能为空"
    assert lines[1].startswith("b 不符合要求")
    assert lines[2] == "c 不是已知参数"


async def test_the_context_is_injected_wherever_it_is_annotated():
    seen: list[Any] = []

    @tool
    async def look(
        chat: ToolExecutionContext, city: str, maybe: ToolExecutionContext | None = None
    ) -> None:
        seen.extend((chat, city, maybe))

    context = ToolExecutionContext(session_id="s")
    await look({"city": "x"}, context)
    assert seen == [context, "x", context]
    assert list((look.spec.parameters_schema or {})["properties"]) == ["city"]


async def test_without_a_chat_an_empty_context_is_injected():
    @tool
    async def look(chat: ToolExecutionContext) -> str:
        return f"[{chat.session_id}]"

    assert (await look({})).content == "[]"


async def test_a_synchronous_function_runs_beside_the_event_loop():
    @tool
    def where() -> bool:
        return threading.current_thread() is threading.main_thread()

    assert (await where({})).structured_content == {"result": False}


async def test_a_stuck_synchronous_tool_is_given_up_after_its_time():
    release = threading.Event()

    @tool(default_config=DefaultConfig(timeout_seconds=1))
    def stuck() -> None:
        release.wait(30)

    stuck.spec.metadata["timeout_seconds"] = 0.05
    registry = ToolRegistry()
    registry.register_provider(FunctionProvider("p", "builtin", [stuck]))
    try:
        result = await registry.invoke(ToolInvocation("stuck"))
    finally:
        release.set()
    assert result.error_message == "工具执行失败: 超过 0.05 秒"


async def test_cancelling_passes_through():
    begun = asyncio.Event()

    @tool
    async def wait() -> None:
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(wait({}))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_every_kind_of_callable_can_be_a_tool():
    class Counter:
        def __init__(self, step: int) -> None:
            self.step = step

        async def forward(self, n: int) -> int:
            return n + self.step

        async def __call__(self, n: int) -> int:
            return n - self.step

    assert (await FunctionTool(Counter(2).forward)({"n": 1})).structured_content == {"result": 3}
    assert (await FunctionTool(Counter(2))({"n": 1})).structured_content == {"result": -1}
    assert (
        await FunctionTool(functools.partial(add.function, b=9))({"a": 1})
    ).structured_content == {"result": 10}
    assert FunctionTool(Counter(2)).spec.name == "Counter"


def test_what_a_partial_has_fixed_is_not_the_models_to_change():
    made = FunctionTool(functools.partial(add.function, b=9))
    assert list((made.spec.parameters_schema or {})["properties"]) == ["a"]


async def test_a_wrapper_that_returns_a_coroutine_is_awaited():
    def plain(n: int) -> Any:
        return add.function(n)

    assert (await FunctionTool(plain)({"n": 1})).structured_content == {"result": 2}


async def test_positional_parameters_are_filled_by_name():
    @tool
    async def join(a: str, /, b: str, *rest: str, c: str = "c", **more: str) -> str:
        return a + b + c + "".join(rest) + "".join(more)

    assert (await join({"b": "2", "a": "1"})).content == "12c"


def test_options_win_over_the_function():
    made = tool(
        name="plus",
        description="Sum.",
        title="Plus",
        parameters_schema={"type": "object"},
        output_schema={"type": "object"},
        default_config=DefaultConfig(mock_enabled=True),
    )(add.function)
    spec = made.spec
    assert (spec.name, spec.description, spec.title) == ("plus", "Sum.", "Plus")
    assert (spec.parameters_schema, spec.output_schema) == ({"type": "object"}, {"type": "object"})
    assert spec.metadata["default_config"].mock_enabled


async def test_a_given_parameters_schema_guards_the_function():
    schema = {
        "type": "object",
        "properties": {"fruit": {"enum": ["mandarin", "kiwi"]}},
        "required": ["fruit"],
    }
    eaten = []

    @tool(parameters_schema=schema)
    async def eat(fruit: str) -> None:
        eaten.append(fruit)

    registry = ToolRegistry()
    registry.register_provider(FunctionProvider("p", "builtin", [eat]))
    results = [
        await registry.invoke(ToolInvocation("eat", a))
        for a in ({"fruit": "kiwi"}, {"fruit": "banana"}, {"fruit": 1}, {})
    ]
    assert [result.success for result in results] == [True, False, False, False]
    assert eaten == ["kiwi"]


async def test_blank_text_is_refused_where_something_must_be_said():
    @tool
    async def find(city: NonBlank) -> str:
        return city

    registry = ToolRegistry()
    registry.register_provider(FunctionProvider("p", "builtin", [find]))
    for city in ("", " \n", None):
        assert (
            await registry.invoke(ToolInvocation("find", {"city": city}))
        ).error_message == "city 不能为空"


@pytest.mark.parametrize("name", ["", "a b", "天气", "x" * 65])
def test_a_name_that_no_endpoint_takes_is_refused(name):
    with pytest.raises(InvalidDeclaration):
        FunctionTool(add.function if name else lambda: None, name=name)


# --- Tools of the run loop ------------------------------------------------------------


def of_the_loop(function: Any, **options: Any) -> FunctionTool:
    return FunctionTool(function, name="f", lenient=True, **options)


async def test_a_lenient_tool_declares_no_defaults_and_leaves_out_what_it_does_not_know():
    async def f(a: Annotated[int, Field(ge=1, description="one")], b: str | None = None) -> str:
        return f"{a} {b}"

    made = of_the_loop(f)
    assert made.spec.parameters_schema == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "minimum": 1, "description": "one"},
            "b": {"type": "string"},
        },
        "required": ["a"],
    }
    assert (await made({"a": 1, "b": None, "c": 2})).content == "1 None"


async def test_a_tool_is_given_its_invocation():
    async def f(invocation: ToolInvocation) -> str:
        return f"{invocation.tool_name} {invocation.call_pk}"

    assert (await of_the_loop(f)({}, None, ToolInvocation("f", call_pk=7))).content == "f 7"
    assert (await of_the_loop(f)({})).content == "f 0"


async def test_own_checks_refuse_before_the_function_is_called():
    async def f(a: int) -> None:
        raise AssertionError

    with pytest.raises(InvalidArguments, match="a is odd"):
        await of_the_loop(f, own_checks=lambda arguments, context: ["a is odd"])({"a": 1})


@pytest.mark.parametrize(
    ("options", "anywhere", "in_chat", "without_chat"),
    [
        ({}, True, True, True),
        ({"needs_chat": True}, True, True, False),
        ({"is_on": lambda: False}, False, False, False),
        ({"available": lambda context: not context.session_id}, True, False, True),
    ],
)
def test_where_a_tool_is_offered(
    options: dict[str, Any], anywhere: bool, in_chat: bool, without_chat: bool
):
    async def f() -> None: ...

    contexts = (None, ToolAvailabilityContext("onebot:group:7"), ToolAvailabilityContext())
    made = of_the_loop(f, **options)
    offered = [made.is_available(context) for context in contexts]
    assert offered == [anywhere, in_chat, without_chat]
