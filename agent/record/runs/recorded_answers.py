"""Final answers that an earlier process has put on record."""

from dataclasses import dataclass
from typing import Any

from agent.models import Message, Run
from agent.models.message import BY_HAND
from agent.record.runs.replies import FORWARD


@dataclass(frozen=True, slots=True)
class RecordedAnswerMessage:
    """A message of the final answer of a run that was broken off; ``error`` is why it failed."""

    pk: int
    state: Message.State
    segments: list[dict[str, Any]]
    error: str
    is_forward: bool
    """Whether it is a merged forward, which may be sent as messages if it is refused."""


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """The final answer of a run that was broken off: its words, and its messages in order."""

    text: str
    messages: list[RecordedAnswerMessage]


def find_recorded_answer(run: Run) -> RecordedAnswer | None:
    """The final answer of ``run``, as far as it is on record."""
    out = Message.objects.filter(run=run, direction=Message.Direction.OUT, tool_call=None)
    rows = list(out.exclude(BY_HAND).order_by("pk"))
    if not rows:
        return None
    text = rows[-1].text
    if not rows[-1].part:
        rows = rows[-1:]
    else:  # without the merged forward that it was to be
        rows = [row for row in rows if row.part]
        text = run.final_text or "\n".join(row.text for row in rows)
    return RecordedAnswer(
        text,
        [
            RecordedAnswerMessage(
                row.pk, Message.State(row.state), row.segments, row.detail, row.part == FORWARD
            )
            for row in rows
        ],
    )
