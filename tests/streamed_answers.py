"""A completion as the events in which an endpoint streams it."""

import json
from collections.abc import Iterator
from typing import Any

DONE = b"data: [DONE]\n\n"


def events_of(body: dict[str, Any], *, size: int = 8, usage: bool = False) -> list[bytes]:
    """The events of the completion ``body``, with ``size`` characters of text in each, ``[DONE]``
    included; the tokens stand in one of their own if ``usage`` is asked for.

    https://platform.openai.com/docs/api-reference/chat-streaming
    """
    choice = body["choices"][0]
    head = {"object": "chat.completion.chunk", "id": body["id"], "model": body["model"]}
    deltas = [({"role": "assistant", "content": ""}, None)]
    deltas += [(delta, None) for delta in _deltas(choice["message"], size)]
    deltas.append(({}, choice["finish_reason"]))
    chunks = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        for delta, reason in deltas
    ]
    if usage:
        chunks.append({**head, "choices": [], "usage": body["usage"]})
    return [b"data: %b\n\n" % json.dumps(chunk).encode() for chunk in chunks] + [DONE]


def _deltas(message: dict[str, Any], size: int) -> Iterator[dict[str, Any]]:
    """What comes of each field of ``message``; texts in pieces, everything else whole."""
    rest = {key: value for key, value in message.items() if key not in ("role", "tool_calls")}
    for key, value in sorted(rest.items(), key=lambda item: item[0] == "content"):
        for piece in _pieces(value, size) if isinstance(value, str) else [value]:
            yield {key: piece}
    for index, call in enumerate(message.get("tool_calls") or []):
        arguments = call["function"]["arguments"]
        yield {
            "tool_calls": [
                {**call, "index": index, "function": {**call["function"], "arguments": ""}}
            ]
        }
        for piece in _pieces(arguments, size):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]
