"""What the run loop asks of a language model, and what it gets back."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from agent.domain.endpoint import Endpoint
from agent.llm.requests.messages import ChatMessage
from tools.text.storable import make_storable


class CallExtras(NamedTuple):
    """What ``speaker`` said with a call that only itself understands, to be sent back to it: beside
    the content of the ``message``, beside the parts of the ``call``, and in its ``function``."""

    speaker: str
    message: Mapping[str, object]
    call: Mapping[str, object]
    function: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ToolCallRequest:
    """A tool call as the model wrote it; ``arguments`` is its JSON text, well-formed or not.

    ``fault`` says why it cannot be made whatever tools there are, in words for the model; ``name``
    is then only a placeholder. ``reasoning`` is what the model thought before it called, if the
    endpoint returns it.
    """

    call_id: str
    name: str
    arguments: str
    problem: str = ""
    reasoning: str | None = None
    extras: CallExtras | None = None


class Attempt(NamedTuple):
    """An endpoint that was asked in vain before another one was."""

    endpoint: str
    model: str
    reason: str
    milliseconds: int


@dataclass(frozen=True, slots=True)
class SentRequest:
    """What was really sent to one endpoint, so that the request can be made again byte for byte."""

    endpoint: Endpoint
    tools: list[dict[str, Any]]
    """The definitions that were offered: fewer than wanted, where the endpoint takes fewer."""
    parameters: dict[str, Any]
    """The keys of the body besides model, messages and tools, in their order."""
    messages: list[ChatMessage] | None = None
    """All messages as they were sent; None where they were those of the request."""


@dataclass(frozen=True, slots=True)
class LLMResponse:
    """One answer of the model.

    ``message`` is the assistant message as it goes back into the next request of the
    run; ``recorded_message`` is the answer as it came, for the record.
    """

    text: str
    tool_calls: tuple[ToolCallRequest, ...]
    message: ChatMessage
    recorded_message: ChatMessage
    finish_reason: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Of the input tokens, those that the endpoint had kept."""
    reasoning_tokens: int = 0
    """Of the output tokens, those that were thoughts."""
    cost_nano: int | None = None
    """Billionths of ``sent.endpoint.prices.currency``; None where no price is known."""
    reasoning: str = ""
    """What the model thought, wherever the endpoint put it."""
    sent: SentRequest | None = None
    rest: dict[str, Any] | None = None
    """The body of the answer without the message."""
    attempts: tuple[Attempt, ...] = ()


@dataclass(frozen=True, slots=True)
class LLMRequest:
    """A list of chat messages, and the tools that may be called in the answer.

    Messages before ``begin`` (the system message, notes and history) may be left out when the
    model's window is too small; those from there on are kept.
    """

    messages: list[ChatMessage]
    tools: list[dict[str, Any]] = field(default_factory=list)
    begin: int = 1
    was_asked: bool = False
    """Whether a process that was killed asked the same, and could not put down what it cost."""


class LLMClient(Protocol):
    """A chat-completions model."""

    @property
    def name(self) -> str:
        """What the record says answered."""
        ...

    @property
    def is_demo(self) -> bool:
        """Whether the demo model answers: what it says is no history for another model."""
        ...

    async def complete(self, request: LLMRequest) -> LLMResponse:
        """Ask once, retries included. Raises :class:`agent.domain.errors.LLMError`.

        After cancellation nothing is kept; the endpoint may still finish its work.
        """
        ...

    async def close(self) -> None: ...


MOST_KEPT = 1024
"""Encoded tools that are kept."""
NO_PARAMETERS = {"type": "object", "properties": {}, "required": []}
_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class RequestEncoder:
    """Bodies of requests to ``model`` with ``parameters``.

    Fifty tools are 35 KB, which take half a millisecond to encode. Definitions are shared and never
    changed (:class:`tools.registry.registry.DefinitionCache`), so the encoded form of one is
    cached by its identity.
    """

    def __init__(self, model: str, parameters: Mapping[str, object] | None = None) -> None:
        self._head = b'{"model":%b,"messages":' % encode_json(model)
        self._end = b",%b" % encode_json(parameters)[1:] if parameters else b"}"
        self._kept: dict[int, tuple[dict[str, Any], bytes]] = {}
        """By the ids of the definitions, which are kept too, so that no other takes over an id."""

    def __len__(self) -> int:
        return len(self._kept)

    def encode(self, messages: Sequence[ChatMessage], tools: Sequence[dict[str, Any]]) -> bytes:
        """The body that sends ``messages`` and offers ``tools``; none are named where there are
        none."""
        offer = b',"tools":[%b]' % self.encode_tools(tools) if tools else b""
        return b"".join((self._head, encode_json(messages), offer, self._end))

    def encode_tools(self, tools: Sequence[dict[str, Any]]) -> bytes:
        """``tools`` as they stand in a body, between the brackets."""
        kept = self._kept
        return b",".join(
            [
                known[1] if (known := kept.get(id(tool))) else self._encode_tool(tool)
                for tool in tools
            ]
        )

    def _encode_tool(self, definition: dict[str, Any]) -> bytes:
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        function = {
            "name": definition["name"],
            "description": definition["description"],
            "parameters": definition.get("parameters_schema") or NO_PARAMETERS,
        }
        encoded = encode_json({"type": "function", "function": function})
        self._kept[id(definition)] = (definition, encoded)
        return encoded


def encode_json(value: object) -> bytes:
    """``value``, which is JSON but for numbers that are none and halves of pairs of surrogates:
    these become null and ``�``."""
    try:
        return _JSON.encode(value).encode()
    except ValueError:
        plain = make_storable(json.loads(json.dumps(value), parse_constant=lambda _: None))
        return _JSON.encode(plain).encode()
