"""Reading a chat completion, whatever an OpenAI-compatible endpoint makes of one. Pure."""

import json
import uuid
from typing import Any

from agent.errors import LLMError
from agent.llm.base import LLMResponse, ToolCallRequest


def parse_completion(body: object) -> LLMResponse:
    """The answer in the JSON ``body``. Raises :class:`LLMError` when there is none.

    ``content`` may be null, text, or a list of parts; call ids may be missing;
    arguments may be text or already an object.
    """
    if not isinstance(body, dict):
        raise LLMError("the answer is not a JSON object")
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise LLMError(f"the answer holds no choices{_quoted_error(body)}")
    message = choices[0].get("message")
    if not isinstance(message, dict):
        raise LLMError("the first choice holds no message")
    text, calls = _text(message.get("content")), _tool_calls(message.get("tool_calls"))
    usage = body.get("usage")
    return LLMResponse(
        text=text,
        tool_calls=calls,
        message=_echoed(text, calls),
        recorded=message,
        finish_reason=str(choices[0].get("finish_reason") or ""),
        input_tokens=_count(usage, "prompt_tokens"),
        output_tokens=_count(usage, "completion_tokens"),
    )


def _quoted_error(body: dict[str, Any]) -> str:
    error = body.get("error")
    if isinstance(error, dict):
        error = error.get("message")
    return f": {str(error)[:500]}" if error else ""


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (part.get("text") if isinstance(part, dict) else part for part in content)
        return "".join(part for part in parts if isinstance(part, str))
    return ""


def _tool_calls(calls: object) -> tuple[ToolCallRequest, ...]:
    if not isinstance(calls, list):
        return ()
    functions = [(call, call.get("function")) for call in calls if isinstance(call, dict)]
    return tuple(
        ToolCallRequest(_call_id(call), str(function["name"]), _arguments(function.get("arguments")))
        for call, function in functions
        if isinstance(function, dict) and function.get("name")
    )


def _call_id(call: dict[str, Any]) -> str:
    return str(call.get("id") or f"call_{uuid.uuid4().hex[:24]}")


def _arguments(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _echoed(text: str, calls: tuple[ToolCallRequest, ...]) -> dict[str, Any]:
    """The assistant message for the next request. Some endpoints refuse a request in
    which a call's arguments are not JSON, so broken ones go back as an empty object."""
    message: dict[str, Any] = {"role": "assistant", "content": text or None if calls else text}
    if calls:
        message["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments if _is_object(call.arguments) else "{}"},
            }
            for call in calls
        ]
    return message


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _count(usage: object, key: str) -> int:
    value = usage.get(key) if isinstance(usage, dict) else None
    return value if isinstance(value, int) and 0 <= value < 2**31 else 0
