"""The results that no tool makes itself, in the words the model is told."""

from dataclasses import replace
from typing import Any

from tools.contract import ToolExecutionResult
from tools.errors import InvalidArguments

FAILURE = "工具执行失败: "
TEXT_LIMIT = 64 * 1024
"""Bytes of UTF-8 that the model is given of one result."""
CUT_MARK = "\n...(工具输出过长，已截断)"


def not_found(name: str) -> ToolExecutionResult:
    return ToolExecutionResult(name, success=False, error_message=f"Tool not found: {name}")


def invalid(name: str, error: InvalidArguments) -> ToolExecutionResult:
    return ToolExecutionResult(name, success=False, error_message="\n".join(error.faults))


def mocked(name: str, text: str) -> ToolExecutionResult:
    return clipped(ToolExecutionResult(name, success=True, content=text, metadata={"mock": True}))


def timed_out(name: str, seconds: float) -> ToolExecutionResult:
    return failed(name, f"超过 {seconds:g} 秒")


def raised(name: str, error: BaseException) -> ToolExecutionResult:
    """The failure that ``error`` stands for; its class is told to the operator, not to the model."""
    message, kind = str(error).strip(), type(error).__name__
    return failed(name, message or kind, error_detail=f"{kind}: {message}" if message else kind)


def failed(name: str, reason: str, **metadata: Any) -> ToolExecutionResult:
    return clipped(ToolExecutionResult(name, success=False, error_message=FAILURE + reason, metadata=metadata))


def worded(result: ToolExecutionResult) -> ToolExecutionResult:
    """``result`` with a failure's message in the form that every failure has."""
    if result.success or result.error_message.startswith(FAILURE):
        return result
    reason = result.error_message.strip() or result.get_history_content()
    return replace(result, error_message=FAILURE + (reason or "原因未知"))


def clipped(result: ToolExecutionResult) -> ToolExecutionResult:
    """``result`` with at most ``TEXT_LIMIT`` bytes of text for the model; the whole is kept in its metadata.

    The text is also made to be UTF-8: half a surrogate pair can stand in a string, but
    neither in a request nor in the record.
    """
    text = result.get_history_content()
    encoded = text.encode("utf-8", "replace")
    if len(encoded) > TEXT_LIMIT:
        told = encoded[:TEXT_LIMIT].decode("utf-8", "ignore") + CUT_MARK
        return _retold(replace(result, metadata={**result.metadata, "full_content": text}), text, told)
    told = encoded.decode()
    return result if told == text else _retold(result, text, told)


def _retold(result: ToolExecutionResult, text: str, told: str) -> ToolExecutionResult:
    if not result.success and text == result.error_message.strip():
        return replace(result, error_message=told)
    return replace(result, content=told)
