"""A request in the form that an endpoint takes, which refused another one. Pure.

What an endpoint refuses (:class:`agent.llm.errors.refusals.RefusalKind`) is learnt by asking: see
:mod:`agent.llm.client.client`.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from operator import is_
from typing import Any

from agent.domain.endpoint import Endpoint, ThinkingSwitch
from agent.llm.errors.refusals import RefusalKind
from agent.llm.providers.presets import PRESETS, ThinkingStyle, thinking_parameters
from agent.llm.requests.messages import GONE, ChatMessage, content_text, has_extras, strip_extras
from tools.text import fences

Messages = list[ChatMessage]
THINKING_KEYS = frozenset(
    {
        *("thinking", "enable_thinking", "thinking_budget", "reasoning", "reasoning_effort"),
        "chat_template_kwargs",
    }
)
STREAMED_KINDS = frozenset({RefusalKind.ONLY_STREAMED, RefusalKind.NO_THINKING_UNLESS_STREAMED})
PARAMETER_KINDS = STREAMED_KINDS | {
    RefusalKind.MAX_COMPLETION_TOKENS,
    RefusalKind.NO_TEMPERATURE,
    RefusalKind.NO_THINKING_SWITCH,
    RefusalKind.NO_TOOLS_WHILE_THINKING,
}
ANY_LENGTH = "any_length"
"""Stands among what is refused for ``max_tokens``, in a call whose window may be too small for
them."""
_RESERVED = frozenset({"model", "messages", "tools"})


def build_parameters(
    endpoint: Endpoint, refuses: Collection[str] | None = None, *, has_tools: bool = True
) -> dict[str, object]:
    """The keys of a request's body besides model, messages and tools, in their order, for an
    endpoint that ``refuses`` so much; None: what is known of it.

    What the operator entered comes last and wins.
    """
    kinds = endpoint.refuses if refuses is None else refuses
    thinking = _thinking(endpoint, has_tools and RefusalKind.NO_TOOLS_WHILE_THINKING in kinds)
    entered = {key: value for key, value in endpoint.parameters.items() if key not in _RESERVED}
    streamed: dict[str, object] = {}
    if endpoint.is_streamed or STREAMED_KINDS & set(kinds):
        streamed = {"stream": True, "stream_options": {"include_usage": True}}
    parameters = {**thinking, **streamed, **entered}
    if STREAMED_KINDS & set(kinds):
        parameters |= streamed
    if not parameters.get("stream"):
        parameters.pop("stream_options", None)
    if RefusalKind.NO_THINKING_SWITCH in kinds:
        parameters = {k: v for k, v in parameters.items() if k not in THINKING_KEYS}
    if RefusalKind.NO_TEMPERATURE in kinds:
        parameters = {k: v for k, v in parameters.items() if k not in ("temperature", "top_p")}
    if RefusalKind.MAX_COMPLETION_TOKENS in kinds:
        renamed = {"max_tokens": "max_completion_tokens"}
        parameters = {renamed.get(key, key): value for key, value in parameters.items()}
    if ANY_LENGTH in kinds:
        lengths = ("max_tokens", "max_completion_tokens")
        parameters = {k: v for k, v in parameters.items() if k not in lengths}
    return parameters


def _thinking(endpoint: Endpoint, is_off: bool) -> dict[str, object]:
    preset = PRESETS.get(endpoint.preset)
    style = preset.thinking if preset else ThinkingStyle.NONE
    wanted = endpoint.thinking == ThinkingSwitch.ON if endpoint.thinking else None
    return thinking_parameters(style, False if is_off else wanted, endpoint.effort, endpoint.model)


def adapt(
    messages: Messages, tools: list[dict[str, Any]], refuses: Collection[str]
) -> tuple[Messages, list[dict[str, Any]]]:
    """``messages`` and ``tools`` as an endpoint takes them that ``refuses`` so much; the very same
    lists where nothing of it is among them.

    ``messages`` are those of :func:`agent.llm.requests.messages.messages_for`.
    """
    if not refuses:
        return messages, tools
    for kind, changed in _CHANGES:
        if kind in refuses:
            following = changed(messages)
            is_same = len(following) == len(messages) and all(map(is_, following, messages))
            messages = messages if is_same else following
    return messages, [] if RefusalKind.NO_TOOLS in refuses else tools


# --- Calls as words ---------------------------------------------------------------------


def _without_strange_calls(messages: Messages) -> Messages:
    """Calls without extras were made by another model, or by this one before it thought."""
    return list(_told(messages, lambda message: not has_extras(message)))


def _told(messages: Messages, is_told: Callable[[ChatMessage], bool]) -> Iterator[ChatMessage]:
    """``messages`` in which the calls of those that ``is_told`` picks, and their results, are
    words."""
    names: dict[str, str] = {}
    for message in messages:
        calls = message.get("tool_calls")
        if message.get("role") == "tool" and message.get("tool_call_id") in names:
            header = {"event": "tool_result", "tool": names[message["tool_call_id"]]}
            frame = fences.build_frame(fences.OUTCOME, header)
            yield {"role": "user", "content": f"{frame}\n{content_text(message.get('content'))}"}
        elif calls and is_told(message):
            names |= {call["id"]: call["function"]["name"] for call in calls}
            made = [f"（调用了工具 {_in_words(call['function'])}）" for call in calls]
            words = content_text(message.get("content"))
            yield {"role": "assistant", "content": "\n".join(filter(None, [words, *made]))}
        else:
            yield message


def _in_words(function: Mapping[str, object]) -> str:
    return f"{function['name']} {function['arguments']}".strip()


# --- Roles ------------------------------------------------------------------------------


def _without_system(messages: Messages) -> Messages:
    """The words of system messages stand before those of the first user."""
    words, others = _split_system(messages)
    if not words:
        return messages
    if not others or others[0].get("role") != "user":
        return [{"role": "user", "content": words}, *others]
    first = others[0]
    return [{**first, "content": _joined(words, first.get("content"))}, *others[1:]]


def _with_one_system(messages: Messages) -> Messages:
    words, others = _split_system(messages)
    if len(messages) - len(others) < 2 and (not words or _is_system(messages[0])):
        return messages
    return [{"role": "system", "content": words}, *others]


def _split_system(messages: Messages) -> tuple[str, Messages]:
    said = [content_text(one.get("content")) for one in messages if _is_system(one)]
    return "\n\n".join(filter(None, said)), [one for one in messages if not _is_system(one)]


def _is_system(message: ChatMessage) -> bool:
    return message.get("role") in ("system", "developer")


def _merged(messages: Messages) -> Messages:
    """No two messages of a user, or of the assistant without calls, after each other."""
    merged: Messages = []
    for message in messages:
        last = merged[-1] if merged else {}
        role = message.get("role")
        is_next = role == last.get("role") and role in ("user", "assistant")
        if is_next and not (message.get("tool_calls") or last.get("tool_calls")):
            content = _joined(last.get("content"), message.get("content"))
            merged[-1] = {**last, "content": content}
        else:
            merged.append(message)
    return merged


def _joined(one: Any, other: Any) -> Any:
    """Two contents as one: text, or parts where one of them is parts."""
    if isinstance(one, list) or isinstance(other, list):
        return [*_parts(one), *_parts(other)]
    return "\n\n".join(filter(None, [one, other]))


def _parts(content: object) -> list[object]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []


# --- Contents ---------------------------------------------------------------------------


def _without_pictures(messages: Messages) -> Messages:
    return [
        {**message, "content": [(GONE if _is_picture(part) else part) for part in content]}
        if isinstance(content := message.get("content"), list) and any(map(_is_picture, content))
        else message
        for message in messages
    ]


def _without_arrays(messages: Messages) -> Messages:
    return [
        {**message, "content": "\n".join(_words(part) for part in content)}
        if isinstance(content := message.get("content"), list)
        else message
        for message in messages
    ]


def _without_null(messages: Messages) -> Messages:
    return [
        message if message.get("content", "") is not None else {**message, "content": ""}
        for message in messages
    ]


def _is_picture(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") == "image_url"


def _words(part: object) -> str:
    if isinstance(part, dict):
        text = part.get("text")
        return text if isinstance(text, str) else GONE["text"]
    return part if isinstance(part, str) else json.dumps(part, ensure_ascii=False)


_CHANGES: tuple[tuple[str, Callable[[Messages], Messages]], ...] = (
    (RefusalKind.NO_TOOLS, lambda messages: list(_told(messages, lambda message: True))),
    (RefusalKind.MISSING_REASONING, _without_strange_calls),
    (RefusalKind.NO_EXTRAS, lambda messages: list(map(strip_extras, messages))),
    (RefusalKind.NO_SYSTEM, _without_system),
    (RefusalKind.LATE_SYSTEM, _with_one_system),
    (RefusalKind.NO_CONSECUTIVE_USER, _merged),
    (RefusalKind.NO_PICTURES, _without_pictures),
    (RefusalKind.NO_ARRAY_CONTENT, _without_arrays),
    (RefusalKind.NO_NULL_CONTENT, _without_null),
)
LEARNABLE = PARAMETER_KINDS | {kind for kind, _ in _CHANGES}
"""What a request can do without."""
