"""Reading a chat completion, whatever an OpenAI-compatible endpoint makes of one. Pure."""

import json
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agent.domain.errors import LLMError
from agent.llm.base import LLMResponse, ToolCallRequest

UNNAMED = "unnamed_call"
"""Stands for the name that a call lacks: endpoints refuse a request in which one has none."""
NO_FUNCTION = (
    "这次调用没有 function 部分，不知道要调用哪个工具。"
    "请按 function.name 和 function.arguments 的格式重新调用。"
)
NO_NAME = "这次调用没有写明工具名称（function.name 为空）。请写明名称，重新调用。"


def parse_completion(body: object) -> LLMResponse:
    """The answer in the JSON ``body``. Raises :class:`LLMError` when there is none.

    ``content`` may be null, text, or a list of parts; call ids may be missing, or one
    for several calls; arguments may be text or already an object. What stands among the
    tool calls and is none is a call with a fault.
    """
    if not isinstance(body, dict):
        raise LLMError("the answer is not a JSON object")
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise LLMError(f"the answer holds no choices{_quoted_error(body)}")
    message = choices[0].get("message")
    if not isinstance(message, dict):
        raise LLMError("the first choice holds no message")
    usage = body.get("usage")
    return replace(
        _response(message, _tool_calls(message.get("tool_calls"))),
        finish_reason=str(choices[0].get("finish_reason") or ""),
        input_tokens=_count(usage, "prompt_tokens"),
        output_tokens=_count(usage, "completion_tokens"),
    )


def parse_recorded(message: dict[str, Any], call_ids: Sequence[str]) -> LLMResponse:
    """The answer that an assistant ``message`` on record was read as, its calls under the ids that
    they were given then."""
    calls = _tool_calls(message.get("tool_calls"))
    if len(calls) > len(call_ids):  # an earlier version did not put on record what is no call
        calls = tuple(call for call in calls if not call.problem)
    return _response(
        message,
        tuple(
            replace(call, call_id=call_id) for call, call_id in zip(calls, call_ids, strict=False)
        ),
    )


def _response(message: dict[str, Any], calls: tuple[ToolCallRequest, ...]) -> LLMResponse:
    text, reasoning = _text(message.get("content")), reasoning_of(message)
    calls = tuple(replace(call, reasoning=reasoning) for call in calls)
    echoed = calling_message(calls, text) if calls else {"role": "assistant", "content": text}
    return LLMResponse(text, calls, echoed, recorded_message=message)


def reasoning_of(message: dict[str, Any]) -> str | None:
    """The thoughts behind the calls of an assistant ``message``; None if the endpoint does not
    return them."""
    thoughts = message.get("reasoning_content")
    return thoughts if isinstance(thoughts, str) else None


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
    given: set[str] = set()
    return tuple(_tool_call(call, given) for call in (calls if isinstance(calls, list) else ()))


def _tool_call(call: object, given: set[str]) -> ToolCallRequest:
    """The call under an id that is not ``given`` to another one yet, and then is."""
    fields = call if isinstance(call, dict) else {}
    call_id = str(fields.get("id") or "")
    if not call_id or call_id in given:
        call_id = f"call_{uuid.uuid4().hex[:24]}"
    given.add(call_id)
    function = fields.get("function")
    if not isinstance(function, dict):
        return ToolCallRequest(call_id, UNNAMED, "", NO_FUNCTION)
    name, arguments = function.get("name"), function.get("arguments", "")
    if not isinstance(arguments, str):
        arguments = "" if arguments is None else json.dumps(arguments, ensure_ascii=False)
    if not isinstance(name, str) or not name.strip():
        return ToolCallRequest(call_id, UNNAMED, arguments, NO_NAME)
    return ToolCallRequest(call_id, name, arguments)


def calling_message(calls: Sequence[ToolCallRequest], text: str = "") -> dict[str, Any]:
    """An assistant message that makes ``calls``, which are of one answer, for the next request.

    Endpoints whose models think before they call may refuse one that lacks the thoughts, so what
    came goes back.
    """
    thoughts = calls[0].reasoning
    reasoning = {} if thoughts is None else {"reasoning_content": thoughts}
    # Some endpoints refuse a request in which a call's arguments are not JSON, so broken ones go
    # back as an empty object.
    echoed = [
        {
            "id": call.call_id,
            "type": "function",
            "function": {
                "name": call.name,
                "arguments": call.arguments if _is_object(call.arguments) else "{}",
            },
        }
        for call in calls
    ]
    return {"role": "assistant", "content": text or None, **reasoning, "tool_calls": echoed}


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _count(usage: object, key: str) -> int:
    value = usage.get(key) if isinstance(usage, dict) else None
    return value if isinstance(value, int) and 0 <= value < 2**31 else 0


#: Characters of a refusal's own text that are kept with the reason.
REFUSAL_LIMIT = 300
REASONING = ("reasoning_content", "reasoning", "thinking")


def is_empty_response(response: LLMResponse) -> bool:
    return not response.tool_calls and not response.text.strip()


def describe_empty_response(response: LLMResponse, often: str = "") -> str:
    """Says that ``response`` is empty, and why, if it gives a reason. For the record."""
    reasons = [
        f"finish_reason: {response.finish_reason}" if response.finish_reason else "",
        f"refusal: {refusal}" if (refusal := _refusal(response.recorded_message)) else "",
        "only reasoning" if any(response.recorded_message.get(name) for name in REASONING) else "",
    ]
    why = "; ".join(filter(None, reasons))
    return f"the model answered with nothing{often}{f' ({why})' if why else ''}"


def _refusal(message: dict[str, Any]) -> str:
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    found = [message, *(part for part in parts if isinstance(part, dict))]
    words = (one["refusal"] for one in found if isinstance(one.get("refusal"), str))
    return " ".join(" ".join(words).split())[:REFUSAL_LIMIT]
