"""What a model said beside its words and calls goes back to that model, and to no other. Pure.

An assistant message with such extras names who said it under :data:`SPEAKER`, which is private: no
endpoint is sent it. Thoughts, signatures and the like mean something only to who made them;
DeepSeek's and Gemini's endpoints refuse a request in which their own are missing, others one in
which they stand.
"""

from typing import Any

from agent.domain.endpoint import Endpoint
from agent.llm.requests.messages import ChatMessage

SPEAKER = "$speaker"
STANDARD = frozenset({"role", "content", "name", "tool_calls", "tool_call_id"})
"""Keys of a message that every endpoint knows."""
CALL_KEYS = frozenset({"id", "type", "function"})
FUNCTION_KEYS = frozenset({"name", "arguments"})


def messages_for(endpoint: Endpoint, messages: list[ChatMessage]) -> list[ChatMessage]:
    """``messages`` as ``endpoint`` may be sent them: the very same list where nobody's extras are
    among them."""
    if not any(SPEAKER in message for message in messages):
        return messages
    speaker = endpoint.speaker
    return [
        _for_speaker(message, speaker) if SPEAKER in message else message for message in messages
    ]


def strip_extras(message: ChatMessage) -> ChatMessage:
    """``message`` without what only its speaker understands; the very same without any."""
    if not has_extras(message):
        return message
    plain = _only(message, STANDARD)
    if "tool_calls" in plain:
        plain["tool_calls"] = [_plain_call(call) for call in plain["tool_calls"]]
    return plain


def has_extras(message: ChatMessage) -> bool:
    """Whether ``message`` holds more than every endpoint knows."""
    return not message.keys() <= STANDARD or any(
        not (call.keys() <= CALL_KEYS and call["function"].keys() <= FUNCTION_KEYS)
        for call in message.get("tool_calls") or ()
    )


def _for_speaker(message: ChatMessage, speaker: str) -> ChatMessage:
    if message[SPEAKER] != speaker:
        return strip_extras(message)
    return {key: value for key, value in message.items() if key != SPEAKER}


def _plain_call(call: dict[str, Any]) -> dict[str, Any]:
    return {**_only(call, CALL_KEYS), "function": _only(call["function"], FUNCTION_KEYS)}


def _only(fields: dict[str, Any], keys: frozenset[str]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key in keys}
