"""How answers are said that an earlier process had put on record."""

from dataclasses import replace

import pytest
from asgiref.sync import sync_to_async

from agent.chat.conversation import ConversationHandler
from agent.domain.manners import Manners, MarkdownStyle
from agent.domain.types import Delivery
from agent.models import Message
from agent.record.recorded_answers import RecordedAnswer, RecordedMessage
from agent.record.replies import FORWARD
from agent.record.runs import StartRun
from agent.run.engine import Engine
from agent.run.jobs import BackgroundCalls
from agent.run.persona_engines import PersonaEngines
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


async def test_a_forward_refused_after_a_crash_is_said_without_marks_where_a_row_says_so(record):
    mailbox, jobs = NoForwards(), BackgroundCalls(record, lambda _account: None)
    engines = PersonaEngines(Engine(Script(), ToolRegistry()))
    handler = ConversationHandler(record, engines, mailbox, jobs)
    said = message("hi", GROUP, mentions_bot=True)
    accepted = await record.submit(record.arrivals.accept_messages, arrival(said))
    pending = accepted.to_pending(said)
    wish = StartRun(handler.build_run_plan(said), pending.pk, pending.session_pk)
    active = await record.begin_run(wish)
    text, nodes = "**one** two", [{"type": "node", "text": "one two"}]
    store = sync_to_async(reply)
    pk = await store(wish, active.run_pk, text, "pending", segments=nodes, part=FORWARD)
    left = RecordedMessage(pk, State.PENDING, nodes, "", is_forward=True)
    active = replace(
        active,
        manners=Manners(markdown=MarkdownStyle.PLAIN),
        answer=RecordedAnswer(text, [left]),
    )
    await handler.answer_message(pending, active)
    assert mailbox.texts == ["one two", "20001 one two"]
