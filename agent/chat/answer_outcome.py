"""How an answered message ends on record. Pure."""

from typing import NamedTuple

from django.utils.translation import gettext_noop

from agent.domain.states import MessageState
from agent.record.runs.replies import SendResult
from agent.run.flow import EndReason
from agent.run.message_sender import MessageSender
from agent.run.task import RunResult

State = MessageState

#: Why no answer was sent, if a tool decided that.
SILENCE = {
    EndReason.STAY_SILENT.value: gettext_noop("the model chose to stay silent"),
    EndReason.NO_ACTION.value: gettext_noop("the model chose to do nothing until the next message"),
    EndReason.FINISH.value: gettext_noop("the model ended its turn without a word"),
}


class AnswerOutcome(NamedTuple):
    """How an answered message ends on record."""

    state: MessageState
    detail: str
    in_history: bool


def answer_outcome(
    sent: SendResult | None, sender: MessageSender, result: RunResult
) -> AnswerOutcome:
    """How the message answered ends, from what came of the answer."""
    if sent is not None and sent.delivery.state == State.FAILED:
        return AnswerOutcome(State.FAILED, sent.delivery.error, sender.has_spoken)
    state = State.ANSWERED if sent is not None or sender.has_spoken else State.SILENT
    detail = SILENCE.get(result.ended_by, "") if state == State.SILENT else ""
    return AnswerOutcome(state, detail, state == State.ANSWERED)
