"""The results that do not come from a tool, with the texts that the model gets."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from tools import refusals
from tools.contract import ToolExecutionResult
from tools.errors import InvalidArguments
from tools.refusals import RefusalReason, ToolRefusal

FAILURE = "工具执行失败: "
TEXT_LIMIT = 64 * 1024
"""The most bytes of UTF-8 that the model gets of one result."""
CUT_MARK = "\n...(工具输出过长，已截断)"


def not_found_result(name: str) -> ToolExecutionResult:
    """The answer of a provider that is called for a tool it does not have."""
    return ToolExecutionResult(name, success=False, error_message=refusals.not_found_message(name))


def refused_result(
    name: str, refusal: ToolRefusal, near: Collection[str] = (), **metadata: Any
) -> ToolExecutionResult:
    """A call that was not made; the reason is recorded in ``metadata["refusal"]``."""
    metadata = {"refusal": refusal.reason.value, **metadata}
    return clip_result(
        ToolExecutionResult(
            name,
            success=False,
            error_message=refusals.refusal_message(name, refusal, near),
            metadata=metadata,
        )
    )


def unapproved_result(name: str, arguments: dict[str, Any]) -> ToolExecutionResult:
    """A call that waits for an owner; its checked arguments are in ``metadata["arguments"]``."""
    refusal = ToolRefusal(
        RefusalReason.NEEDS_APPROVAL, f"工具 {name} 的这次调用需要机器人主人批准，尚未执行。"
    )
    return refused_result(name, refusal, arguments=arguments)


def invalid_arguments_result(name: str, error: InvalidArguments) -> ToolExecutionResult:
    return ToolExecutionResult(name, success=False, error_message="\n".join(error.problems))


def mocked_result(name: str, text: str) -> ToolExecutionResult:
    return clip_result(
        ToolExecutionResult(name, success=True, content=text, metadata={"mock": True})
    )


def timed_out_result(name: str, seconds: float, warning: str | None = None) -> ToolExecutionResult:
    """``warning`` is for a tool whose work may have had its effect: no failure, or the model would
    try again."""
    if warning:
        return ToolExecutionResult(name, success=True, content=warning)
    return failed_result(name, f"超过 {seconds:g} 秒")


def mismatched_result(name: str, problems: Collection[str]) -> ToolExecutionResult:
    """A result that is not what the tool's output schema promises."""
    return failed_result(name, mismatch_message(problems))


def mismatch_message(problems: Collection[str]) -> str:
    return "工具返回的结果与其声明不符: " + "; ".join(problems)


def raised_result(name: str, error: BaseException) -> ToolExecutionResult:
    """The failed result for ``error``; the operator gets its class, the model does not."""
    message, kind = str(error).strip(), type(error).__name__
    return failed_result(
        name, message or kind, error_detail=f"{kind}: {message}" if message else kind
    )


def failed_result(name: str, reason: str, **metadata: Any) -> ToolExecutionResult:
    return clip_result(
        ToolExecutionResult(name, success=False, error_message=FAILURE + reason, metadata=metadata)
    )


def normalize_failure(result: ToolExecutionResult) -> ToolExecutionResult:
    """``result`` with a failure's message in one of the two forms that failures have."""
    if result.success or result.error_message.startswith(
        (FAILURE, refusals.not_found_message(result.tool_name))
    ):
        return result
    reason = result.error_message.strip() or result.get_history_content()
    return replace(result, error_message=FAILURE + (reason or "原因未知"))


def clip_result(result: ToolExecutionResult) -> ToolExecutionResult:
    """``result`` with at most ``TEXT_LIMIT`` bytes of text for the model; its metadata keeps the
    full text.

    The text is also made valid UTF-8 without NUL: NUL and half surrogate pairs are not accepted by
    every endpoint and database.
    """
    text = result.get_history_content()
    encoded = text.replace("\0", "?").encode("utf-8", "replace")
    if (
        text.endswith(CUT_MARK) and "full_content" in result.metadata
    ):  # a hook passed on what was cut before
        return result
    if len(encoded) > TEXT_LIMIT:
        told = encoded[:TEXT_LIMIT].decode("utf-8", "ignore") + CUT_MARK
        return _retold(
            replace(result, metadata={**result.metadata, "full_content": text}), text, told
        )
    told = encoded.decode()
    return result if told == text else _retold(result, text, told)


def _retold(result: ToolExecutionResult, text: str, told: str) -> ToolExecutionResult:
    if not result.success and text == result.error_message.strip():
        return replace(result, error_message=told)
    return replace(result, content=told)
