"""A final answer that only repeats what a tool of the run has sent."""

import pytest

from agent.chat.endings import REPEATED
from agent.record.runs.runs import StartRun
from agent.record.runs.steps import NewCall, NewStep, record_steps
from tests.agent.builtin_tools.test_send_message import answered
from tests.agent.record.test_runs import again, begun
from tests.agent.run.test_allowance import last_run, speaking
from tests.agent.talk import Mailbox, reply


async def test_it_is_on_record_and_not_sent_again(record):
    mailbox = Mailbox()
    await answered(record, mailbox, speaking("Done, it is 5."), "done, it is 5")
    assert mailbox.texts == ["Done, it is 5."]
    run = await last_run()
    assert (run.final_text, run.notes) == ("done, it is 5", [REPEATED])


@pytest.mark.django_db
def test_what_was_sent_is_known_after_a_resume():
    run, wish = begun()
    call = _call_of(run.run_pk)
    for state in ("delivered", "failed"):
        reply(wish, run.run_pk, state, state, tool_call_pk=call)
    assert again(StartRun(wish.plan, wish.message_pk, wish.session_pk)).spoken == ("delivered",)


def _call_of(run_pk: int) -> int:
    step = NewStep(run_pk, 1, [], [], {}, calls=(NewCall("c", "send_message", {}, "1"),))
    return record_steps([step])[0][0]
