"""Answers that hold neither words nor tool calls. Pure."""

from typing import Any

from agent.llm.base import LLMResponse

#: Characters of a refusal's own words that are kept beside the reason.
REFUSAL_LIMIT = 300
REASONING = ("reasoning_content", "reasoning", "thinking")


def is_empty_response(response: LLMResponse) -> bool:
    return not response.tool_calls and not response.text.strip()


def describe_empty_response(response: LLMResponse, often: str = "") -> str:
    """That ``response`` says nothing, and why, as far as it tells. For the record."""
    reasons = [
        f"finish_reason: {response.finish_reason}" if response.finish_reason else "",
        f"refusal: {refusal}" if (refusal := _refusal(response.recorded)) else "",
        "only reasoning" if any(response.recorded.get(name) for name in REASONING) else "",
    ]
    why = "; ".join(filter(None, reasons))
    return f"the model answered with nothing{often}{f' ({why})' if why else ''}"


def _refusal(message: dict[str, Any]) -> str:
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    found = [message, *(part for part in parts if isinstance(part, dict))]
    words = (one["refusal"] for one in found if isinstance(one.get("refusal"), str))
    return " ".join(" ".join(words).split())[:REFUSAL_LIMIT]
