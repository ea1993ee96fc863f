"""What the demo model said is no history for another model."""

import pytest

from agent.chat.conversation import ConversationHandler
from agent.llm.endpoints.endpoint_book import DemoModel
from agent.models import Message
from agent.run.engine import Engine, PersonaEngines
from agent.run.jobs import BackgroundCalls
from tests.agent.talk import Mailbox, Script, arrival, message
from tools.registry.registry import ToolRegistry

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(("model", "kept"), [(DemoModel(), [False] * 2), (Script("a"), [True] * 2)])
async def test_only_what_a_real_model_said_is_shown_to_later_calls(record, model, kept):
    engines = PersonaEngines(Engine(model, ToolRegistry()))
    jobs = BackgroundCalls(record, lambda account: None)
    said = arrival(message("hi"))
    accepted = await record.submit_batched(record.arrivals.accept_messages, said)
    await ConversationHandler(record, engines, Mailbox(), jobs).answer_message(
        accepted.to_pending(said.message)
    )
    rows = [row async for row in Message.objects.order_by("pk")]
    assert [row.state for row in rows] == ["answered", "delivered"]
    assert [row.in_history for row in rows] == kept
