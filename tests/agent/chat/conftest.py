"""Inboxes whose messages a script answers, without sockets."""

from collections.abc import AsyncIterator

import pytest

from agent.chat.conversation import ConversationHandler
from agent.chat.inbox import Inbox
from agent.record.record import Record
from agent.run.engine import Engine, PersonaEngines
from agent.run.jobs import BackgroundCalls
from tests.agent.chat.inboxes import Make
from tests.agent.talk import Mailbox, Script
from tools.registry.registry import ToolRegistry


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox()


@pytest.fixture
async def make(record: Record, mailbox: Mailbox) -> AsyncIterator[Make]:
    """Make inboxes whose messages a script answers; they are drained when the test ends."""
    made: list[Inbox] = []

    def make(model: Script) -> Inbox:
        made.append(
            Inbox(
                record,
                ConversationHandler(
                    record,
                    PersonaEngines(Engine(model, ToolRegistry())),
                    mailbox,
                    BackgroundCalls(record, lambda _account: None),
                ),
            )
        )
        return made[-1]

    yield make
    for inbox in made:
        await inbox.drain(0)
