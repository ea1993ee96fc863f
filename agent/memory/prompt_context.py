"""What the model is told beside the conversation: what fell out of its window, and what comes to
mind. Pure."""

from dataclasses import dataclass

from agent.llm.messages import ChatMessage


@dataclass(frozen=True, slots=True)
class MemoryContext:
    """Fenced texts, "" for none, and where in a first request they stand.

    They are messages of the user's role, for some endpoints take a system message only
    at the beginning, and what they hold must not speak with the authority of the prompt. The
    summary stands before the history and changes seldom, so that what comes before the new
    words stays the same for the provider's cache; the memory stands right before the
    current message.
    """

    summary: str = ""
    memory: str = ""

    @property
    def count(self) -> int:
        """How many messages are added to a request."""
        return bool(self.summary) + bool(self.memory)

    @property
    def size(self) -> int:
        """Characters that are added to a request."""
        return len(self.summary) + len(self.memory)

    def around(self, request: list[ChatMessage]) -> list[ChatMessage]:
        """``request``, which begins with the system message and ends with the current one, with the
        background in its place."""
        system, *history, current = request
        return [system, *_said(self.summary), *history, *_said(self.memory), current]


def _said(text: str) -> list[ChatMessage]:
    return [{"role": "user", "content": text}] if text else []
