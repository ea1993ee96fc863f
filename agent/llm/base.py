"""What the run loop asks of a language model, and what it gets back."""

from dataclasses import dataclass, field
from typing import Any, Protocol

from agent.llm.messages import ChatMessage


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


@dataclass(frozen=True, slots=True)
class LLMRequest:
    """A list of chat messages, and the tools that may be called in the answer."""

    messages: list[ChatMessage]
    tools: list[dict[str, Any]] = field(default_factory=list)


class LLMClient(Protocol):
    """A chat-completions model."""

    name: str
    """What the record says answered."""

    async def complete(self, request: LLMRequest) -> LLMResponse:
        """Ask once, retries included. Raises :class:`agent.domain.errors.LLMError`.

        After cancellation nothing is kept; the endpoint may still finish its work.
        """
        ...

    async def close(self) -> None: ...
