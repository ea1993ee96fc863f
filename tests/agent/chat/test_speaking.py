"""How answers are said that an earlier process had put on record, and what is not said at all."""

from dataclasses import replace

import pytest
from asgiref.sync import sync_to_async

from agent.chat.conversation import ConversationHandler
from agent.chat.endings import SILENCED
from agent.chat.message_run import MessageRun
from agent.domain.manners import ChatManners, MarkdownStyle
from agent.domain.types import Delivery
from agent.models import Message
from agent.record.runs.deferred_calls import DeferredCall
from agent.record.runs.recorded_answers import RecordedAnswer, RecordedAnswerMessage
from agent.record.runs.replies import FORWARD
from agent.record.runs.runs import StartRun
from agent.run.engine import Engine, PersonaEngines
from agent.run.jobs import BackgroundCalls
from agent.run.task import RunResult
from tests.agent.talk import GROUP, Mailbox, Script, arrival, message, reply
from tools.registry.registry import ToolRegistry

pytestmark = pytest.mark.django_db(transaction=True)
State = Message.State


class NoForwards(Mailbox):
    """Refuses merged forwards."""

    async def deliver(self, chat, segments, *, echo, temp_group_id=""):
        said = await super().deliver(chat, segments, echo=echo)
        is_forward = segments[0]["type"] == "node"
        return Delivery(State.FAILED, error="no forwards") if is_forward else said


async def begun(record, mailbox):
    """A handler, and the run of a message that it may answer."""
    engines = PersonaEngines(Engine(Script(), ToolRegistry()))
    jobs = BackgroundCalls(record, lambda _account: None)
    handler = ConversationHandler(record, engines, mailbox, jobs)
    said = message("hi", GROUP, mentions_bot=True)
    accepted = await record.submit_batched(record.arrivals.accept_messages, arrival(said))
    pending = accepted.to_pending(said)
    wish = StartRun(handler.build_run_plan(said), pending.pk, pending.session_pk)
    return handler, wish, pending, await record.begin_run(wish)


async def test_a_forward_refused_after_a_crash_is_said_without_marks_where_a_row_says_so(record):
    mailbox = NoForwards()
    handler, wish, pending, active = await begun(record, mailbox)
    text, nodes = "**one** two", [{"type": "node", "text": "one two"}]
    store = sync_to_async(reply)
    pk = await store(wish, active.run_pk, text, "pending", segments=nodes, part=FORWARD)
    left = RecordedAnswerMessage(pk, State.PENDING, nodes, "", is_forward=True)
    active = replace(
        active,
        manners=ChatManners(markdown=MarkdownStyle.PLAIN),
        answer=RecordedAnswer(text, [left]),
    )
    await handler.answer_message(pending, active)
    assert mailbox.texts == ["one two", "20001 one two"]


@pytest.mark.parametrize("is_to_be_made", [False, True])
async def test_the_outcome_of_an_earlier_call_is_not_told_where_it_is_silenced(
    record, is_to_be_made
):
    mailbox = Mailbox()
    handler, _, pending, active = await begun(record, mailbox)
    pending = replace(pending, is_later_result=True)
    later = DeferredCall(1, "c1", "t", {}, is_to_be_made=is_to_be_made, text="done")
    active = replace(active, manners=ChatManners(silenced_by="night"), later=later)
    if is_to_be_made:
        run = MessageRun(pending, active, handler._sender(pending, active, ()))
        await handler.endings.finish(run, RunResult("done", None, 1, 1, 1))
    else:  # and no model is asked
        await handler.answer_message(pending, active)
    row = await Message.objects.select_related("run").aget(direction="in")
    assert row.run is not None
    assert (mailbox.sent, row.state, row.run.notes) == ([], "silent", [SILENCED])
