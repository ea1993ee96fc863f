"""The cost of model calls in tokens: one meter for the whole process, all callers and endpoints."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from agent.llm.base import LLMRequest
from agent.llm.messages import content_text

#: Bytes of text that count as one token if an endpoint reports none: one Chinese character, or most
#: of an English word.
BYTES_PER_TOKEN = 3
#: Tokens that a picture is taken for.
PICTURE = 1_000
#: More is no number of tokens.
MOST = 2**31


class TokenMeter:
    """Passes on what each call cost; until it is known where to, nothing is kept."""

    def __init__(self) -> None:
        self._spend: Callable[[int], None] | None = None

    def set_receiver(self, spend: Callable[[int], None] | None) -> None:
        """Have ``spend`` called, on the loop that asks models, with the tokens of each call from
        now on."""
        self._spend = spend

    def count(self, tokens: int) -> None:
        if tokens and self._spend is not None:
            self._spend(tokens)


meter = TokenMeter()


def reported_tokens(answer: object) -> int:
    """The tokens of a call as its ``answer`` reports them; 0 if it does not."""
    usage = answer.get("usage") if isinstance(answer, dict) else None
    if not isinstance(usage, Mapping):
        return 0
    total = _number(usage, "total_tokens")
    named = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens")
    return total or sum(_number(usage, name) for name in named)


def estimate_tokens(request: LLMRequest, text: str) -> int:
    """The tokens that a call probably cost: what was sent, and the ``text`` that came."""
    sent = [content_text(message.get("content")) for message in request.messages]
    called = [
        json.dumps(calls, ensure_ascii=False)
        for message in request.messages
        if (calls := message.get("tool_calls"))
    ]
    tools = json.dumps(request.tools, ensure_ascii=False) if request.tools else ""
    pictures: int = sum(
        isinstance(part, dict) and part.get("type") == "image_url"
        for message in request.messages
        if isinstance(content := message.get("content"), list)
        for part in content
    )
    return (
        sum(len(part.encode()) for part in (*sent, *called, tools, text)) // BYTES_PER_TOKEN
        + PICTURE * pictures
        + 1
    )


def _number(usage: Mapping[str, Any], name: str) -> int:
    value = usage.get(name)
    return value if type(value) is int and 0 < value < MOST else 0
