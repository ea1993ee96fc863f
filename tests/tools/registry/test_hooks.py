"""What may be done around a call, in Google ADK's order: before, the tool, on_error, after."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.tools.fakes import Provider
from tools.contract import ToolExecutionResult, ToolInvocation, ToolSpec
from tools.functions.function_tool import FunctionProvider, tool
from tools.registry.execution import Hooks
from tools.registry.registry import ToolRegistry
from tools.registry.settings import ToolSettings

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}


def scripted(answers: list[Any]) -> tuple[Any, list[str]]:
    """A hook that answers with the next of ``answers`` (text, an error, or None) and notes the
    results it was shown."""
    shown: list[str] = []

    async def hook(
        spec: ToolSpec, invocation: ToolInvocation, context: Any, *result: ToolExecutionResult
    ) -> Any:
        shown.append(result[0].get_history_content() if result else str(invocation.arguments))
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return (
            None if answer is None else ToolExecutionResult(spec.name, success=True, content=answer)
        )

    return hook, shown


async def called(
    says: Any, *, before: Any = (), on_error: Any = (), after: Any = ()
) -> tuple[str, list[str], list[str], int]:
    """The text that came of a call, what the ``on_error`` and ``after`` hooks were shown, and how
    often the tool ran."""

    async def answer(invocation: ToolInvocation) -> ToolExecutionResult:
        if isinstance(says, Exception):
            raise says
        return ToolExecutionResult("t", success=True, content=says)

    provider = Provider("P", "t", answer=answer)
    registry = ToolRegistry()
    registry.register_provider(provider)
    (begins, _), (mends, failures), (ends, seen) = (
        scripted(list(before)),
        scripted(list(on_error)),
        scripted(list(after)),
    )
    for _ in before:
        registry.add_hooks(before=begins)
    for _ in on_error:
        registry.add_hooks(on_error=mends)
    for _ in after:
        registry.add_hooks(after=ends)
    result = await registry.invoke(ToolInvocation("t", {"key": "value"}))
    return result.get_history_content(), failures, seen, len(provider.invocations)


BROKEN, BEFORE, OTHER, THIRD = (
    ValueError(text) for text in ("tool error", "before error", "other error", "third error")
)
FAILED = "工具执行失败: "


@pytest.mark.parametrize(
    ("says", "before", "on_error", "after", "expected"),
    [
        ("success", [], [], [], "success"),
        (BROKEN, [], [], [], FAILED + "tool error"),
        ("never", ["intercepted", "not asked"], [], [], "intercepted"),
        ("never", [None, "second"], [], [], "second"),
        ("never", [BEFORE], [], [], FAILED + "before error"),
        ("original", [], [], ["modified"], "modified"),
        (BROKEN, [], [], ["error handled", "not asked"], "error handled"),
        ("success", [], [], [OTHER, "not asked"], FAILED + "other error"),
        ("success", [None], [], [None], "success"),
        ("never", ["from before"], [], ["from after"], "from after"),
        ("never", [BEFORE], [], ["handled in after"], "handled in after"),
        ("never", [BEFORE], ["handled"], [None], "handled"),
        ("never", [BEFORE], ["handled"], ["from after"], "from after"),
        ("never", [BEFORE], [OTHER], [THIRD], FAILED + "third error"),
        ("never", [BEFORE], [OTHER], ["handled"], "handled"),
        (BROKEN, [], [None, "second"], [], "second"),
        ("success", [], ["not asked"], [], "success"),
    ],
)
async def test_the_first_hook_that_answers_wins(caplog, says, before, on_error, after, expected):
    text, _, _, runs = await called(says, before=before, on_error=on_error, after=after)
    assert text == expected
    assert runs == (0 if says == "never" else 1)


async def test_each_hook_is_shown_what_came_of_the_one_before(caplog):
    _, failures, seen, _ = await called(BROKEN, on_error=[OTHER], after=[None])
    assert (failures, seen) == ([FAILED + "tool error"], [FAILED + "other error"])
    _, failures, seen, _ = await called(BROKEN, on_error=["mended"], after=[None])
    assert seen == ["mended"]


async def test_the_registrys_hooks_come_before_the_tools_own():
    order: list[str] = []

    def noting(word: str) -> Any:
        async def hook(*_: Any) -> None:
            order.append(word)

        return hook

    @tool(
        hooks=Hooks(
            before=(noting("own before"),),
            after=(noting("own after"),),
            on_error=(noting("own error"),),
        )
    )
    async def fail() -> str:
        raise ValueError

    registry = ToolRegistry()
    registry.register_provider(FunctionProvider("p", "builtin", [fail]))
    registry.add_hooks(noting("before"), noting("after"), noting("error"))
    await registry.invoke(ToolInvocation("fail"))
    assert order == ["before", "own before", "error", "own error", "after", "own after"]


async def test_hooks_of_one_tool_leave_the_others_alone():
    hook, shown = scripted(["x"])
    specs = [
        ToolSpec(name="t", metadata={"hooks": Hooks(before=(hook,))}),
        ToolSpec(name="u", metadata={"hooks": "nonsense"}),
    ]
    registry = ToolRegistry()
    registry.register_provider(Provider("P", *specs))
    assert (await registry.invoke(ToolInvocation("u"))).content == "{}"
    assert (await registry.invoke(ToolInvocation("t"))).content == "x"
    assert len(shown) == 1


async def test_a_call_that_is_not_begun_goes_past_the_hooks_that_follow():
    begins, asked = scripted([None] * 9)
    ends, seen = scripted([None, None, "I answer instead"])
    registry = ToolRegistry(lambda: {"u": ToolSettings("u", allowed="owners")})
    registry.register_provider(Provider("P", ToolSpec(name="t", parameters_schema=SCHEMA), "u"))
    registry.add_hooks(before=begins, on_error=ends)
    for name, arguments in (("t", {"n": "x"}), ("u", {}), ("unknown", {})):
        result = await registry.invoke(ToolInvocation(name, arguments))
    assert asked == []
    assert [text.split("\n")[0].split(":")[0] for text in seen] == [
        "n 应为整数",
        "没有权限",
        "Tool not found",
    ]
    assert result.content == "I answer instead"


async def test_before_hooks_see_and_may_change_checked_arguments():
    async def double(spec: ToolSpec, invocation: ToolInvocation, context: Any) -> None:
        invocation.arguments["n"] *= 2

    registry = ToolRegistry()
    registry.register_provider(Provider("P", ToolSpec(name="t", parameters_schema=SCHEMA)))
    registry.add_hooks(before=double)
    given = ToolInvocation("t", {"n": "21"})
    assert (await registry.invoke(given)).content == "{'n': 42}"
    assert given.arguments == {"n": "21"}


async def test_a_plain_function_may_be_a_hook_and_nonsense_from_one_is_a_failure(caplog):
    registry = ToolRegistry()
    registry.register_provider(Provider("P", "t"))
    registry.add_hooks(after=lambda *_: None)  # type: ignore[arg-type]
    assert (await registry.invoke(ToolInvocation("t"))).success
    registry.add_hooks(after=lambda *_: "text")  # type: ignore[arg-type]
    result = await registry.invoke(ToolInvocation("t"))
    assert result.metadata["error_detail"] == "TypeError: a hook returned str and no result"


async def test_a_hook_that_hangs_is_given_up_with_the_time_of_the_tool():
    async def hang(*_: Any) -> None:
        await asyncio.Event().wait()

    registry = ToolRegistry(lambda: {"t": ToolSettings("t", timeout_seconds=0.02)})
    registry.register_provider(Provider("P", "t"))
    registry.add_hooks(after=hang)
    assert (
        await registry.invoke(ToolInvocation("t"))
    ).error_message == "工具执行失败: 超过 0.02 秒"


async def test_a_mock_is_answered_between_the_hooks():
    ends, seen = scripted([None])
    registry = ToolRegistry(lambda: {"t": ToolSettings("t", mock_enabled=True, mock_value="m")})
    registry.register_provider(Provider("P", "t"))
    registry.add_hooks(after=ends)
    result = await registry.invoke(ToolInvocation("t"))
    assert (result.content, result.metadata["mock"], seen) == ("m", True, ["m"])


async def test_a_hook_that_passes_on_a_long_result_leaves_the_whole_of_it_on_record():
    async def answer(_: ToolInvocation) -> ToolExecutionResult:
        return ToolExecutionResult("t", success=True, content="霜" * 30_000)

    async def pass_on(
        _spec: Any, _invocation: Any, _context: Any, result: ToolExecutionResult
    ) -> ToolExecutionResult:
        return replace(result, metadata={**result.metadata, "seen": True})

    registry = ToolRegistry()
    registry.register_provider(Provider("P", "t", answer=answer))
    registry.add_hooks(after=pass_on)
    result = await registry.invoke(ToolInvocation("t"))
    assert result.metadata["seen"]
    assert result.metadata["full_content"] == "霜" * 30_000
    assert result.content.count("已截断") == 1
