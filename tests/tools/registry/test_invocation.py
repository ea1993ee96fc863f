"""The one place every call passes: arguments, mock, time, failure and length."""

import asyncio
import logging
from typing import Any

import pytest

from tests.tools.fakes import Answer, Provider, echo
from tools.contract import (
    InvalidArguments,
    ToolContentItem,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolFailed,
    ToolInvocation,
    ToolSpec,
)
from tools.registry.catalogue import CUT_MARK, TEXT_LIMIT
from tools.registry.registry import ToolRegistry
from tools.registry.settings import ToolSettings

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "who": {"type": "string"}},
    "required": ["n"],
}


def registry_of(
    answer: Answer = echo, row: ToolSettings | None = None, **spec: Any
) -> tuple[ToolRegistry, Provider]:
    provider = Provider("P", ToolSpec(name="t", **spec), answer=answer)
    registry = ToolRegistry(lambda: {"t": row} if row else {})
    registry.register_provider(provider)
    return registry, provider


async def outcome(answer: Answer, arguments: Any = None, **options: Any) -> ToolExecutionResult:
    registry, _ = registry_of(answer, **options)
    return await registry.invoke(ToolInvocation("t", arguments or {}))


def answering(**fields: Any) -> Answer:
    async def answer(_: ToolInvocation) -> ToolExecutionResult:
        return ToolExecutionResult("t", **fields)

    return answer


def raising(error: BaseException) -> Answer:
    async def answer(_: ToolInvocation) -> ToolExecutionResult:
        raise error

    return answer


async def forever(_: ToolInvocation) -> ToolExecutionResult:
    await asyncio.Event().wait()
    raise AssertionError("never reached")


async def test_an_unknown_tool_is_named_in_the_result():
    result = await ToolRegistry().invoke(ToolInvocation("nope"))
    assert not result.success
    assert result.error_message.splitlines()[0] == "Tool not found: nope"


async def test_a_result_says_which_provider_it_came_from():
    result = await outcome(answering(success=True, content="x", metadata={"own": 1}))
    by_whom = {"verdict": "allowed", "decided_by": ""}
    assert result.metadata == {"own": 1, "provider_name": "P"} | by_whom


async def test_the_provider_gets_the_chat_and_the_whole_invocation():
    registry, provider = registry_of()
    context = ToolExecutionContext(session_id="s", metadata={"speaker": object()})
    await registry.invoke(ToolInvocation("t", {"a": 1}, call_id="c", metadata={"pk": 7}), context)
    assert provider.contexts == [context]
    assert provider.invocations == [ToolInvocation("t", {"a": 1}, call_id="c", metadata={"pk": 7})]


async def test_bad_arguments_never_reach_the_provider():
    registry, provider = registry_of(parameters_schema=SCHEMA)
    result = await registry.invoke(ToolInvocation("t", {"n": "x", "who": []}))
    assert result.error_message == "n 应为整数\nwho 应为字符串"
    assert not result.success
    assert provider.invocations == []


async def test_text_that_is_no_json_is_reported_to_the_model():
    result = await outcome(echo, "{oops", parameters_schema=SCHEMA)
    assert result.error_message.startswith("参数不是合法的 JSON")


async def test_the_models_own_json_text_is_read_and_coerced():
    registry, provider = registry_of(parameters_schema=SCHEMA)
    written: Any = '{"n": "10", "who": 12345}'
    invocation = ToolInvocation("t", written)
    assert (await registry.invoke(invocation)).success
    assert provider.invocations[0].arguments == {"n": 10, "who": "12345"}
    assert invocation.arguments is written


async def test_a_schema_that_cannot_be_used_is_a_failure_of_the_tool(caplog):
    result = await outcome(
        echo, {"n": 1}, parameters_schema={"type": "object", "minProperties": "one"}
    )
    assert result.error_message == "工具执行失败: 工具的参数定义有误，无法调用"
    assert "SchemaError" in caplog.text


async def test_a_mock_answers_instead_of_the_tool():
    registry, provider = registry_of(
        row=ToolSettings("t", mock_enabled=True, mock_value="{who}: {n}"), parameters_schema=SCHEMA
    )
    result = await registry.invoke(ToolInvocation("t", {"n": 1, "who": "我"}))
    assert (result.success, result.content) == (True, "我: 1")
    by_whom = {"verdict": "mocked", "decided_by": ""}
    assert result.metadata == {"mock": True, "provider_name": "P"} | by_whom
    assert provider.invocations == []


async def test_a_mock_still_refuses_bad_arguments():
    result = await outcome(
        echo, row=ToolSettings("t", mock_enabled=True, mock_value="{n}"), parameters_schema=SCHEMA
    )
    assert result.error_message == "n 不能为空"
    assert not result.success


@pytest.mark.parametrize(("error", "reason", "detail"), [
    (ValueError("x"), "x", "ValueError: x"),
    (ValueError(), "ValueError", "ValueError"),
])  # fmt: skip
async def test_an_exception_of_a_provider_becomes_a_failure(caplog, error, reason, detail):
    result = await outcome(raising(error))
    assert not result.success
    assert result.error_message == f"工具执行失败: {reason}"
    assert result.metadata["error_detail"] == detail
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert record.exc_info


async def test_a_tool_that_says_it_failed_is_no_problem_to_be_logged(caplog):
    result = await outcome(raising(ToolFailed("没有权限")))
    assert result.error_message == "工具执行失败: 没有权限"
    assert not caplog.records


async def test_a_tool_may_refuse_arguments_in_its_own_words():
    result = await outcome(raising(InvalidArguments(["a 不能为空", "b 不能为空"])))
    assert result.error_message == "a 不能为空\nb 不能为空"


async def test_a_failed_result_is_worded_as_a_failure():
    assert (
        await outcome(answering(success=False, error_message="busy"))
    ).error_message == "工具执行失败: busy"
    assert (
        await outcome(answering(success=False, error_message="工具执行失败: busy"))
    ).error_message == "工具执行失败: busy"
    assert (
        await outcome(answering(success=False, content="half"))
    ).error_message == "工具执行失败: half"
    assert (await outcome(answering(success=False))).error_message == "工具执行失败: 原因未知"


async def test_a_provider_that_returns_no_result_is_a_failure(caplog):
    async def text(_: ToolInvocation) -> Any:
        return "just text"

    result = await outcome(text)
    assert not result.success
    assert "str" in result.metadata["error_detail"]


async def test_a_call_that_takes_too_long_is_stopped(caplog):
    stopped = []

    async def slow(invocation: ToolInvocation) -> ToolExecutionResult:
        try:
            return await forever(invocation)
        except asyncio.CancelledError:
            stopped.append(True)
            raise

    result = await outcome(slow, row=ToolSettings("t", timeout_seconds=0.05))
    assert result.error_message == "工具执行失败: 超过 0.05 秒"
    assert not result.success
    assert stopped == [True]


async def test_without_a_row_the_tools_own_time_limit_counts():
    result = await outcome(forever, metadata={"timeout_seconds": 0.02})
    assert result.error_message == "工具执行失败: 超过 0.02 秒"


async def test_a_tool_whose_effect_may_be_there_is_not_called_failed_when_its_time_is_up():
    result = await outcome(
        forever, metadata={"timeout_seconds": 0.02, "on_timeout": "消息可能已送达，请勿重发"}
    )
    assert (result.success, result.get_history_content()) == (True, "消息可能已送达，请勿重发")


async def test_a_time_out_inside_the_tool_is_not_taken_for_the_limit(caplog):
    result = await outcome(raising(TimeoutError("upstream")))
    assert result.error_message == "工具执行失败: upstream"


async def test_cancelling_a_call_cancels_the_tool():
    begun = asyncio.Event()

    async def begin(invocation: ToolInvocation) -> ToolExecutionResult:
        begun.set()
        return await forever(invocation)

    registry, _ = registry_of(begin)
    task = asyncio.create_task(registry.invoke(ToolInvocation("t")))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_long_text_is_cut_between_characters_and_kept_whole():
    text = "好" * TEXT_LIMIT
    result = await outcome(answering(success=True, content=text))
    body = result.content.removesuffix(CUT_MARK)
    assert body != result.content
    assert text.startswith(body)
    assert TEXT_LIMIT - 3 < len(body.encode()) < TEXT_LIMIT
    assert result.metadata["full_content"] == text


async def test_text_of_exactly_the_limit_is_left_alone():
    result = await outcome(answering(success=True, content="x" * TEXT_LIMIT))
    assert len(result.content) == TEXT_LIMIT
    assert "full_content" not in result.metadata


async def test_long_structured_content_and_long_errors_are_cut_too():
    structured = await outcome(
        answering(success=True, structured_content={"rows": ["x" * 1000] * 100})
    )
    assert structured.get_history_content().endswith(CUT_MARK)
    assert structured.structured_content == {"rows": ["x" * 1000] * 100}
    failed = await outcome(raising(ToolFailed("x" * 2 * TEXT_LIMIT)))
    assert failed.get_history_content() == failed.error_message
    assert failed.error_message.endswith(CUT_MARK)
    mocked = await outcome(
        echo, row=ToolSettings("t", mock_enabled=True, mock_value="x" * 2 * TEXT_LIMIT)
    )
    assert mocked.content.endswith(CUT_MARK)


async def test_half_a_character_does_not_end_the_run():
    assert (await outcome(answering(success=True, content="a\ud83d"))).content == "a?"
    assert (
        await outcome(answering(success=True, structured_content=["\ud83d"]))
    ).get_history_content() == '["?"]'
    assert (
        await outcome(answering(success=False, error_message="\ud83d"))
    ).error_message == "工具执行失败: ?"


async def test_items_of_a_result_survive():
    item = ToolContentItem("image", mime_type="image/png", data="AAAA")
    assert (await outcome(answering(success=True, content_items=[item]))).content_items == [item]
