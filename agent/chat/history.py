"""Fitting the past into a model call: from the newest back, within both limits. Pure."""

from collections.abc import Sequence

from agent.llm.messages import ChatMessage, content_text


def fit_history(
    system: ChatMessage,
    history: Sequence[ChatMessage],
    current: ChatMessage,
    *,
    max_messages: int,
    max_chars: int,
) -> list[ChatMessage]:
    """The first request of a run: ``system``, as much of ``history`` as fits, ``current``.

    ``history`` is oldest first. The system message and the current one are always
    kept, even when they alone are over a limit. What is left of the history never
    begins with an answer whose question was cut away.
    """
    room = max_chars - _size(system) - _size(current)
    kept: list[ChatMessage] = []
    for message in reversed(history[-max(0, max_messages - 2) :] if max_messages > 2 else []):
        room -= _size(message)
        if room < 0:
            break
        kept.append(message)
    kept.reverse()
    start = next(
        (place for place, message in enumerate(kept) if message["role"] == "user"), len(kept)
    )
    return [system, *kept[start:], current]


def _size(message: ChatMessage) -> int:
    return len(content_text(message["content"]))
