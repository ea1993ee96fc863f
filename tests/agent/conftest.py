"""A record that writes to the test database, as a server's does."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from agent.chat.conversation import ConversationHandler
from agent.record.arrivals.arrivals import MessageArrival
from agent.record.record import Record
from agent.record.runs.steps import tool_offers
from agent.run.engine import Engine, PersonaEngines
from agent.run.jobs import BackgroundCalls
from tests.agent.talk import PRIVATE, PROCESS, Mailbox, Script, arrival, message
from tools.registry.registry import ToolRegistry

Say = Callable[..., Any]


@pytest.fixture(autouse=True)
def _forget_rows_of_another_database() -> None:
    tool_offers.forget()


@pytest.fixture
async def record(transactional_db: None) -> AsyncIterator[Record]:
    """The record of the process ``p1``; everything asked of it is committed when the test ends."""
    record = Record(PROCESS)
    yield record
    await record.close()


@pytest.fixture
def say(record: Record, registry: ToolRegistry) -> Say:
    """Have a script answer a message with the test's own ``registry``; everything is settled when
    it returns."""
    engine = Engine(Script(), registry)
    conversations = ConversationHandler(
        record, PersonaEngines(engine), Mailbox(), BackgroundCalls(record, lambda account: None)
    )

    async def say(model: Script, chat: Any = PRIVATE) -> Script:
        engine.model = model
        said: MessageArrival = arrival(message("hi", chat, mentions_bot=True))
        accepted = await record.submit_batched(record.arrivals.accept_messages, said)
        await conversations.answer_message(accepted.to_pending(said.message))
        return model

    return say
