"""Reading a chat completion, whatever an OpenAI-compatible endpoint makes of one. Pure."""

import json
import re
import uuid
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from agent.domain.endpoint import TextCallMode
from agent.domain.errors import LLMError
from agent.llm.answers.text_calls import parse_text_calls
from agent.llm.answers.thoughts import split_thoughts
from agent.llm.errors.failures import name_protocol
from agent.llm.requests.base import CallExtras, LLMResponse, ToolCallRequest
from agent.llm.requests.messages import CALL_KEYS, FUNCTION_KEYS, SPEAKER, ChatMessage
from agent.llm.spending import Usage, read_usage
from tools.text.fences import neutralize_json, neutralize_marks

UNNAMED = "unnamed_call"
"""Stands for the name that a call lacks: endpoints refuse a request in which one has none."""
NO_FUNCTION = (
    "这次调用没有 function 部分，不知道要调用哪个工具。"
    "请按 function.name 和 function.arguments 的格式重新调用。"
)
NO_NAME = "这次调用没有写明工具名称（function.name 为空）。请写明名称，重新调用。"
_SAID = frozenset({"role", "content", "tool_calls", "function_call"})
"""Keys of an answer that are read; all others go back as they came."""
_MARKS = ("<", "THINK]", "◁")
"""One of these stands in every text with thoughts, or it begins as a channel of harmony without its
marks."""
_CALL_SAID = CALL_KEYS | {"index"}
_CALL_BEGINNINGS = ("<", "[", "{", "`", "functools")
_MOST_BEGINNINGS = 50


def parse_completion(
    body: object,
    *,
    speaker: str = "",
    offered: Collection[str] = (),
    text_calls: str = TextCallMode.AUTO,
    usage: Usage | None = None,
) -> LLMResponse:
    """The answer of ``speaker`` in the JSON ``body``. Raises :class:`LLMError` when there is none.

    ``content`` may be null, text, or a list of parts; call ids may be missing, or one
    for several calls; arguments may be text or already an object. What stands among the
    tool calls and is none is a call with a fault. Calls of ``offered`` tools that stand in the text
    are calls where ``text_calls`` says so. ``usage`` is what the body reports, where that was read
    already.
    """
    if not isinstance(body, dict):
        raise LLMError("the answer is not a JSON object")
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise LLMError(f"the answer holds no choices{_quoted_error(body)}{name_protocol(body)}")
    choice = choices[0]
    message = choice.get("message")
    if message is None and choice.get("finish_reason"):  # nothing was said, or a filter took it
        message = {"role": "assistant", "content": None}
    if not isinstance(message, dict):
        raise LLMError("the first choice holds no message")
    usage = usage or read_usage(body) or Usage()
    return _response(
        message,
        speaker,
        offered if text_calls != TextCallMode.OFF else (),
        text_calls,
        finish_reason=str(choice.get("finish_reason") or ""),
        input_tokens=usage.input,
        output_tokens=usage.output,
        cached_tokens=usage.cached,
        reasoning_tokens=usage.reasoning,
        rest={
            **body,
            "choices": [
                {key: value for key, value in choice.items() if key != "message"},
                *choices[1:],
            ],
        },
    )


def parse_recorded(
    message: dict[str, object], call_ids: Sequence[str], *, speaker: str = ""
) -> LLMResponse:
    """The answer that an assistant ``message`` on record, of ``speaker``, was read as, its calls
    under the ids that they were given then."""
    # Calls that it was read as and that are none of the protocol's stood in its text.
    offered = _AnyName() if call_ids else ()
    response = _response(message, speaker, offered, TextCallMode.ON)
    calls = response.tool_calls
    if len(calls) > len(call_ids):  # an earlier version did not put on record what is no call
        calls = tuple(call for call in calls if not call.problem)
    calls = tuple(
        replace(call, call_id=call_id) for call, call_id in zip(calls, call_ids, strict=False)
    )
    if not calls:
        return replace(response, tool_calls=())
    return replace(response, tool_calls=calls, message=calling_message(calls, response.text))


class _AnyName(frozenset[str]):
    """Holds every name."""

    def __contains__(self, _name: object) -> bool:
        return True

    def __bool__(self) -> bool:
        return True


def _response(
    message: ChatMessage, speaker: str, offered: Collection[str], mode: str, **beside_it: Any
) -> LLMResponse:
    """The answer in ``message``, with the fields ``beside_it``."""
    text, thoughts = _text(message.get("content")), ""
    # Most texts hold no such mark, and a huge one is not to hold the loop up.
    if text.startswith("analysis") or any(mark in text for mark in _MARKS):
        text, thoughts = split_thoughts(text)
    told = reasoning_of(message)
    reasoning = "\n\n".join(filter(None, (told, thoughts)))
    listed = message.get("tool_calls")
    if not listed and isinstance(message.get("function_call"), dict):
        listed = [{"function": message["function_call"]}]  # the API's form until 2023
    if not listed and offered:
        text, listed = _text_calls(text, offered, mode)
    beside = _beside(message, _SAID)
    given, thought = set[str](), None if told is None and not thoughts else reasoning
    calls = tuple(
        replace(_tool_call(call, given, speaker, beside), reasoning=thought)
        for call in (listed if isinstance(listed, list) else ())
    )
    if calls:
        echoed = calling_message(calls, text)
    else:
        private = {SPEAKER: speaker} if beside else {}
        echoed = {
            "role": "assistant",
            "content": neutralize_marks(text),
            **_harmless(beside),
            **private,
        }
    return LLMResponse(
        text, calls, echoed, recorded_message=message, reasoning=reasoning, **beside_it
    )


def reasoning_of(message: dict[str, object]) -> str | None:
    """The thoughts that an assistant ``message`` names as such; None if the endpoint does not
    return them."""
    named = [thoughts for key in REASONING if isinstance(thoughts := message.get(key), str)]
    blocks = [message.get("reasoning_details"), message.get("thinking_blocks")]
    content = message.get("content")
    if isinstance(content, list):  # Mistral: docs.mistral.ai/capabilities/reasoning
        blocks.append([part for part in content if _is_thought(part)])
    told = next(filter(None, named), "") or next(filter(None, map(_thoughts, blocks)), "")
    return told if told or named else None


def _thoughts(block: object) -> str:
    """The texts in a list of blocks of thoughts, which may be lists of such again."""
    if isinstance(block, str):
        return block
    if isinstance(block, list):
        return "".join(map(_thoughts, block))
    if not isinstance(block, dict):
        return ""
    return next((found for key in _THOUGHTS if (found := _thoughts(block.get(key)))), "")


_THOUGHTS = ("text", "summary", "thinking", "content")


def _is_thought(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") in ("thinking", "reasoning")


def _quoted_error(body: dict[str, object]) -> str:
    error = body.get("error")
    if isinstance(error, dict):
        error = error.get("message")
    return f": {str(error)[:500]}" if error else ""


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        said = (part for part in content if not _is_thought(part))
        parts = (part.get("text") if isinstance(part, dict) else part for part in said)
        return "".join(part for part in parts if isinstance(part, str))
    return ""


def _text_calls(text: str, offered: Collection[str], mode: str) -> tuple[str, list[object]]:
    """What is left of ``text``, and the calls in it as the protocol writes them: all of it is
    calls, or where ``mode`` says so, its end is, from the beginning of a line on."""
    starts = [0]
    if mode == TextCallMode.ON:
        starts += [at + 1 for at, sign in enumerate(text) if sign == "\n"]
    tried = 0
    for start in starts:
        if tried == _MOST_BEGINNINGS:
            break
        if start and not text.startswith(_CALL_BEGINNINGS, start):
            continue
        tried += 1
        if calls := parse_text_calls(text[start:], offered):
            return text[:start].strip(), [
                {"function": {"name": call.name, "arguments": call.arguments}} for call in calls
            ]
    return text, []


def _tool_call(
    call: object, given: set[str], speaker: str, beside: dict[str, object]
) -> ToolCallRequest:
    """The call under an id that is not ``given`` to another one yet, and then is."""
    fields = call if isinstance(call, dict) else {}
    call_id = str(fields.get("id") or "")
    if not call_id or call_id in given:
        call_id = f"call_{uuid.uuid4().hex[:24]}"
    given.add(call_id)
    function = fields.get("function")
    if not isinstance(function, dict):
        lost = CallExtras(speaker, beside, {}, {})
        return ToolCallRequest(call_id, UNNAMED, "", NO_FUNCTION, extras=lost)
    extras = CallExtras(
        speaker, beside, _beside(fields, _CALL_SAID), _beside(function, FUNCTION_KEYS)
    )
    name, arguments = function.get("name"), function.get("arguments", "")
    if not isinstance(arguments, str):
        arguments = "" if arguments is None else json.dumps(arguments, ensure_ascii=False)
    if arguments.strip() == "null":
        arguments = ""
    if not isinstance(name, str) or not name.strip():
        return ToolCallRequest(call_id, UNNAMED, arguments, NO_NAME, extras=extras)
    return ToolCallRequest(call_id, name, arguments, extras=extras)


def _beside(fields: dict[str, object], known: frozenset[str]) -> dict[str, object]:
    return {
        key: value
        for key, value in fields.items()
        if key not in known and value is not None and value != [] and value != {}
    }


def calling_message(calls: Sequence[ToolCallRequest], text: str = "") -> ChatMessage:
    """An assistant message that makes ``calls``, which are of one answer, for the next request.

    Endpoints whose models think before they call may refuse one that lacks the thoughts, so what
    came goes back, to who said it (:mod:`agent.llm.requests.messages`). Who said the thoughts of a
    call without extras is not known.
    """
    # Some endpoints refuse a request in which a call's arguments are not JSON, so broken ones go
    # back as an empty object.
    thoughts = calls[0].reasoning
    unknown = {} if thoughts is None else {"reasoning_content": thoughts}
    first = calls[0].extras or CallExtras("", unknown, {}, {})
    echoed = [
        {
            "id": call.call_id,
            "type": "function",
            "function": {
                "name": neutralize_marks(call.name),
                "arguments": _echoed_arguments(call.arguments),
                **_harmless(call.extras.function if call.extras else {}),
            },
            **_harmless(call.extras.call if call.extras else {}),
        }
        for call in calls
    ]
    has_extras = first.message or any(
        call.extras and (call.extras.call or call.extras.function) for call in calls
    )
    private = {SPEAKER: first.speaker} if has_extras else {}
    return {
        "role": "assistant",
        "content": neutralize_marks(text) or None,
        **_harmless(first.message),
        "tool_calls": echoed,
        **private,
    }


def _echoed_arguments(text: str) -> str:
    """The JSON text of a call's arguments, in which nothing ends a turn once a template reads it;
    an empty object for what is none."""
    try:
        arguments = json.loads(text)
        plain = neutralize_json(arguments)
    except (ValueError, RecursionError):
        return "{}"
    if not isinstance(arguments, dict):
        return "{}"
    return text if plain == arguments else json.dumps(plain, ensure_ascii=False)


def _harmless(said: object, depth: int = 32) -> Any:
    """What a model said beside its words, without marks and signs of turns, and no deeper than
    ``depth``. What is signed stays as it is: who signed it takes nothing else back."""
    if isinstance(said, str):
        return neutralize_marks(said)
    if not isinstance(said, dict | list):
        return said
    if not depth:
        return None
    if isinstance(said, list):
        return [_harmless(one, depth - 1) for one in said]
    if any("signature" in key and value for key, value in said.items()):
        return said
    return {key: _harmless(value, depth - 1) for key, value in said.items()}


#: Characters of a refusal's own text that are kept with the reason.
REFUSAL_LIMIT = 300
_VISIBLE = re.compile(
    r"[^\s\x00-\x1f\x7f-\x9f\xad\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufe0f\ufeff]"
)
REASONING = ("reasoning_content", "reasoning", "thinking")


def is_empty_response(response: LLMResponse) -> bool:
    """Whether it holds no call, and no sign that can be seen."""
    return not response.tool_calls and not _VISIBLE.search(response.text)


def describe_empty_response(response: LLMResponse, often: str = "") -> str:
    """Says that ``response`` is empty, and why, if it gives a reason. For the record."""
    reasons = [
        f"finish_reason: {response.finish_reason}" if response.finish_reason else "",
        f"refusal: {refusal}" if (refusal := _refusal(response.recorded_message)) else "",
        "only reasoning" if response.reasoning else "",
    ]
    why = "; ".join(filter(None, reasons))
    return f"the model answered with nothing{often}{f' ({why})' if why else ''}"


def _refusal(message: dict[str, object]) -> str:
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    found = [message, *(part for part in parts if isinstance(part, dict))]
    words = (one["refusal"] for one in found if isinstance(one.get("refusal"), str))
    return " ".join(" ".join(words).split())[:REFUSAL_LIMIT]
