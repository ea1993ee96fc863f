"""A message for which a budget has nothing left ends on record, and the chat is told once a day."""

import pytest

from agent.chat.conversation import ConversationHandler
from agent.domain.budgets import BudgetAction
from agent.domain.errors import BudgetSpent
from agent.llm.requests.base import LLMRequest, LLMResponse
from agent.llm.spending import SpendScope, scope
from agent.models import Message
from agent.run.engine import Engine, PersonaEngines
from agent.run.jobs import BackgroundCalls
from tests.agent.talk import GROUP, PRIVATE, Mailbox, arrival, message
from tools.registry.registry import ToolRegistry

pytestmark = pytest.mark.django_db(transaction=True)


class Spent:
    """A model that no budget pays for; it remembers who asked."""

    name = "m"
    is_demo = False

    def __init__(self) -> None:
        self.scopes: list[SpendScope] = []

    async def complete(self, request: LLMRequest) -> LLMResponse:
        self.scopes.append(scope.get())
        raise BudgetSpent("all", BudgetAction.OWNERS)

    async def close(self) -> None: ...


async def test_it_ends_silent_with_its_reason_and_one_sentence_a_day(record):
    model, mailbox = Spent(), Mailbox()
    jobs = BackgroundCalls(record, lambda account: None)
    conversations = ConversationHandler(
        record, PersonaEngines(Engine(model, ToolRegistry())), mailbox, jobs
    )
    for chat in (GROUP, GROUP, PRIVATE):
        said = arrival(message("hi", chat, mentions_bot=True))
        accepted = await record.submit_batched(record.arrivals.accept_messages, said)
        await conversations.answer_message(accepted.to_pending(said.message))
    rows = [row async for row in Message.objects.filter(direction="in")]
    assert {(row.state, row.reason, row.in_history) for row in rows} == {
        ("silent", "budget", False)
    }
    assert all("all" in row.detail for row in rows)
    out = Message.objects.filter(direction="out").order_by("pk")
    places = [place async for place in out.values_list("session__peer_id", flat=True)]
    assert places == [GROUP.peer_id, PRIVATE.peer_id]
    assert model.scopes[0] == SpendScope(
        "onebot:10001", GROUP.place, "onebot:10001/20001", "default"
    )
    assert scope.get() == SpendScope()
