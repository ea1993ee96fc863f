"""What the run loop asks of a language model, and what it gets back."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from agent.domain.endpoint import Endpoint
from agent.llm.requests.messages import ChatMessage


class CallExtras(NamedTuple):
    """What ``speaker`` said with a call that only itself understands, to be sent back to it: beside
    the content of the ``message``, beside the parts of the ``call``, and in its ``function``."""

    speaker: str
    message: dict[str, Any]
    call: dict[str, Any]
    function: dict[str, Any]


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
    recorded_message: dict[str, Any]
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
