"""Chunks of a streamed answer made into the one completion that they are. Pure.

The API: https://platform.openai.com/docs/api-reference/chat-streaming. Where endpoints differ from
it, the place that deals with that names them.
"""

from io import StringIO
from typing import Any, TypeVar

WHOLE = frozenset({"id", "type", "index", "role", "format", "signature"})
"""Texts that no endpoint sends in parts: what is repeated counts once."""
CHILDREN = frozenset({"function", "function_call"})
"""Objects whose texts come in parts; texts in other objects are whole."""
PARTED_BLOCKS = frozenset({"reasoning.text", "reasoning.summary", "text", "thinking"})
"""Types of blocks whose text comes in parts. What is encrypted comes whole."""
NOT_KEPT = frozenset({"choices", "obfuscation"})
"""Of a chunk: ``obfuscation`` is random, it only hides how long a piece is."""
NAME_LIMIT = 256
"""Characters from which on a name grows no more: each growth copies it."""
DEPTH = 3
"""Levels of an object of unknown meaning that are merged; below them the last one counts."""

_Container = TypeVar("_Container", "_Fields", "_Blocks", "_Calls")


class ChunkAssembler:
    """Takes the chunks of one answer, and makes the body that would have come unstreamed.

    Of several choices only the first counts. Memory and time are linear in what comes. The chunks
    are as ``json.loads`` made them, and belong to the assembler then. Halves of pairs of
    surrogates may stand in two chunks, so only the body is to be cleaned
    (:func:`tools.text.storable.make_storable`).
    """

    def __init__(self) -> None:
        self._top: dict[str, Any] = {}
        self._choice: dict[str, Any] | None = None
        self._message = _Fields()
        self._whole: dict[str, Any] = {}
        """A message that came whole: an answer that is not streamed, or the end of one that is."""

    def add(self, chunk: object) -> None:
        """Take the next chunk, or several in a list. What is no object says nothing."""
        for part in chunk if isinstance(chunk, list) else [chunk]:
            if isinstance(part, dict):
                self._add(part)

    @property
    def is_open(self) -> bool:
        """Whether more is to come: nothing yet, or pieces of a message without a finish reason."""
        if self._choice is None:
            return not self._top
        return not (self._choice.get("finish_reason") or self._whole or self._top.get("error"))

    def body(self) -> dict[str, Any]:
        """The completion so far, as :func:`agent.llm.answers.completion.parse_completion` reads it.

        ``finish_reason`` is None where the stream ended without one. ``error`` is there if a chunk
        was an error, beside what the model had said until then. Without any choice ``choices`` is
        empty.
        """
        body = {**self._top, "object": "chat.completion", "choices": []}
        if self._choice is None:
            return body
        choice = dict(self._choice)
        if "usage" in choice:
            # Moonshot: https://github.com/caudena/beam_weaver/releases/tag/v0.1.12
            body.setdefault("usage", choice.pop("usage"))
        parts = self._message.plain()
        said = {key: value for key, value in parts.items() if value}
        message = {"role": "", "content": None, **parts, **self._whole, **said}
        message["role"] = message["role"] or "assistant"
        body["choices"] = [{"index": 0, "finish_reason": None, **choice, "message": message}]
        return body

    def _add(self, chunk: dict[str, Any]) -> None:
        for key, value in chunk.items():
            if value is not None and value != "" and key not in NOT_KEPT:
                self._top[key] = value
        if chunk.get("object") == "error":
            # vLLM, where the chunk is the error itself: https://github.com/block/goose/pull/8031
            self._top.setdefault("error", chunk)
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else []:
            if isinstance(choice, dict) and choice.get("index") in (0, None):
                self._add_choice(choice)

    def _add_choice(self, choice: dict[str, Any]) -> None:
        if self._choice is None:
            self._choice = {}
        for key, value in choice.items():
            if key == "delta" and isinstance(value, dict):
                self._message.add(value)
            elif key == "message" and isinstance(value, dict):
                self._whole = value
            elif value is not None and value != "" and key not in ("delta", "message", "index"):
                self._choice[key] = value


class _Fields:
    """An object that comes in parts: texts are joined, lists grow, of all else the last counts."""

    def __init__(self) -> None:
        self.held: dict[str, Any] = {}

    def add(self, part: dict[str, Any]) -> None:
        for key, value in part.items():
            held = self.held.get(key)
            if value is None:
                self.held.setdefault(key, None)
            elif key == "tool_calls":
                self._container(key, _Calls).add(value)
            elif isinstance(value, list):
                self._container(key, _Blocks).extend(value)
            elif isinstance(value, str):
                self._add_text(key, value, held)
            elif key in CHILDREN and isinstance(value, dict):
                self._container(key, _Fields).add(value)
            elif isinstance(value, dict) and isinstance(held, dict):
                _update(held, value)
            else:
                self.held[key] = value

    def plain(self) -> dict[str, Any]:
        return {key: _plain(value) for key, value in self.held.items()}

    def _add_text(self, key: str, text: str, held: Any) -> None:
        if isinstance(held, StringIO):
            held.write(text)
        elif isinstance(held, _Blocks):
            held.extend([_text_block(text)] if text else [])
        elif key in WHOLE:
            self.held[key] = held or text
        elif key == "name":
            self.held[key] = _joined_name(held, text)
        elif text or not held:
            self.held[key] = _begun(text)

    def _container(self, key: str, kind: type[_Container]) -> _Container:
        held = self.held.get(key)
        if isinstance(held, kind):
            return held
        container = self.held[key] = kind()
        if isinstance(container, _Blocks) and isinstance(held, StringIO) and held.getvalue():
            container.extend([_text_block(held.getvalue())])
        return container


class _Blocks:
    """A list that comes in parts: each part holds further items, or goes on with the last block.

    OpenRouter tells blocks apart by type alone, for its ``index`` may be 0 in all of them; sent
    back unmerged, or merged across blocks, they are refused:
    https://github.com/OpenRouterTeam/ai-sdk-provider/issues/519
    https://github.com/agno-agi/agno/issues/8794. Mistral streams content as such a list:
    https://github.com/braintrustdata/braintrust-sdk-javascript/issues/1857
    """

    def __init__(self) -> None:
        self._items: list[Any] = []

    def extend(self, items: list[Any]) -> None:
        for item in items:
            last = self._items[-1] if self._items else None
            if not isinstance(item, dict):
                self._items.append(item)
            elif isinstance(last, _Fields) and _continues(last.held, item):
                last.add(item)
            else:
                self._items.append(_Fields())
                self._items[-1].add(item)

    def plain(self) -> list[Any]:
        items = [_plain(item) for item in self._items]
        indexed = [item for item in items if isinstance(item, dict) and "index" in item]
        if len({str(item["index"]) for item in indexed}) < len(indexed):
            for place, item in enumerate(indexed):
                item["index"] = place
        return items


def _continues(block: dict[str, Any], part: dict[str, Any]) -> bool:
    """Whether ``part`` goes on with ``block``, which ends with its signature."""
    return (
        part.get("type") in PARTED_BLOCKS
        and part["type"] == block.get("type")
        and not block.get("signature")
        and part.get("index") in (None, block.get("index"))
        and (not part.get("id") or part["id"] == block.get("id", part["id"]))
    )


class _Calls:
    """Tool calls, in the order in which they begin."""

    def __init__(self) -> None:
        self._made: list[Any] = []
        self._last: _Fields | None = None
        self._latest: dict[int, _Fields] = {}
        self._by_id: dict[tuple[int | None, str], _Fields] = {}

    def add(self, parts: object) -> None:
        for part in parts if isinstance(parts, list) else [parts]:
            if isinstance(part, dict):
                self._find(part).add(part)
            else:
                self._made.append(part)

    def plain(self) -> list[Any]:
        return [self._plain(call) for call in self._made]

    def _find(self, part: dict[str, Any]) -> _Fields:
        """The call that ``part`` is of, begun if there is none.

        Gemini leaves the index out (https://github.com/noho/dayu-agent/issues/82); Ollama, and
        others at times, give 0 to every call, each with its id and name
        (https://github.com/ollama/ollama/issues/15457). The id may be in the first part alone, or
        in every one, or empty in the rest (https://github.com/InternLM/lmdeploy/issues/3412).
        Another id without a name begins no call.
        """
        index, call_id, function = (part.get(key) for key in ("index", "id", "function"))
        index = index if isinstance(index, int) else None
        call_id = call_id if isinstance(call_id, str) else ""
        is_named = isinstance(function, dict) and bool(function.get("name"))
        latest = self._last if index is None else self._latest.get(index)
        call = self._by_id.get((index, call_id)) if call_id else None
        if call is None and latest is not None:
            is_next = is_named and (index is None or bool(call_id and latest.held.get("id")))
            call = None if is_next else latest
        if call is None:
            call = _Fields()
            self._made.append(call)
        self._last = call
        if index is not None:
            self._latest[index] = call
        if call_id:
            self._by_id[index, call_id] = self._by_id[None, call_id] = call
        return call

    def _plain(self, call: Any) -> Any:
        if not isinstance(call, _Fields):
            return call
        fields = {"id": None, "type": "function", **call.plain()}
        fields.pop("index", None)
        return fields


def _plain(value: Any) -> Any:
    if isinstance(value, StringIO):
        return value.getvalue()
    return value.plain() if isinstance(value, (_Fields, _Blocks, _Calls)) else value


def _begun(text: str) -> StringIO:
    begun = StringIO()
    begun.write(text)
    return begun


def _text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _joined_name(held: object, text: str) -> str:
    """A name of which another part came: itself again (llama.cpp, NVIDIA), more of it, or its
    rest. https://github.com/ggml-org/llama.cpp/issues/13774"""
    before = held if isinstance(held, str) else ""
    if len(before) > NAME_LIMIT:
        return before
    return text if text.startswith(before) else before + text


def _update(old: dict[str, Any], new: dict[str, Any], depth: int = DEPTH) -> None:
    for key, value in new.items():
        held = old.get(key)
        if depth > 1 and isinstance(held, dict) and isinstance(value, dict):
            _update(held, value, depth - 1)
        elif value is not None:
            old[key] = value
