"""What limits and counted tokens cost a message: few statements, and no commit."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agent.chat.conversation import ConversationHandler
from agent.domain.endpoint import Endpoint
from agent.llm.client.client import OpenAIClient
from agent.llm.requests.base import LLMRequest
from agent.llm.spending import meter
from agent.models import Message
from agent.record.ground.commit import GroupCommit
from agent.record.record import Record
from agent.record.settings.live import LiveSettings
from agent.record.sums import spendings
from agent.record.sums.quotas import AnswerQuotas
from agent.run.engine import Engine, PersonaEngines
from agent.run.jobs import BackgroundCalls
from tests.agent.talk import GROUP, PRIVATE, PROCESS, Mailbox, arrival, message
from tools.local_time import current_day
from tools.registry.registry import ToolRegistry

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def limited(settings: Any) -> AsyncIterator[Record]:
    """A record under limits that nobody reaches here."""
    settings.PERSON_ANSWERS_PER_MINUTE = settings.PERSON_ANSWERS_PER_DAY = 100
    settings.CHAT_ANSWERS_PER_MINUTE = 100
    live = LiveSettings()
    record = Record(PROCESS, live, AnswerQuotas(live, 1_000_000))
    yield record
    await record.close()


async def statements(record: Record, **said: Any) -> list[str]:
    """What is asked of the database for one more message."""

    def accept(items: Sequence[Any]) -> list[list[str]]:
        with CaptureQueriesContext(connection) as queries:
            record.arrivals.accept_messages(items)
        return [[query["sql"] for query in queries]]

    return await record.submit_batched(accept, arrival(message(**said)))


def about(found: list[str], table: str) -> int:
    return sum(table in one for one in found)


async def test_what_is_not_for_the_bot_asks_nothing_of_the_limits(limited):
    await limited.submit_batched(
        limited.arrivals.accept_messages, arrival(message("chatter", GROUP))
    )
    found = await statements(limited, text="chatter", chat=GROUP)
    assert (about(found, "tally"), about(found, "spendsum")) == (0, 0)


async def test_what_is_answered_asks_and_counts_once(limited):
    await limited.submit_batched(limited.arrivals.accept_messages, arrival(message("hi")))
    found = await statements(limited, text="hi")
    assert (about(found, "tally"), about(found, "configversion"), about(found, "spendsum")) == (
        2,
        1,
        1,
    )


async def test_what_is_known_of_the_tokens_of_the_day_is_not_asked_for(limited):
    limited.arrivals._quotas.known_tokens = lambda day: 999_999
    assert about(await statements(limited, text="hi"), "spendsum") == 0
    limited.arrivals._quotas.known_tokens = lambda day: 1_000_000
    await statements(limited, text="again")
    reasons = [row.reason async for row in Message.objects.order_by("pk")]
    assert reasons == ["private", "token_limit"]


async def test_an_answer_takes_three_commits_its_tokens_included(limited, model, monkeypatch):
    made: list[int] = []
    transact = GroupCommit._transact

    def counted(self: GroupCommit, batch: Sequence[Any]) -> None:
        made.append(len(batch))
        transact(self, batch)

    monkeypatch.setattr(GroupCommit, "_transact", counted)
    client = OpenAIClient(Endpoint(model.url, (), "scripted", timeout_seconds=10))
    model.script(["fine"])
    meter.set_receiver(limited.spend)
    try:
        conversations = ConversationHandler(
            limited,
            PersonaEngines(Engine(client, ToolRegistry())),
            Mailbox(),
            BackgroundCalls(limited, lambda account: None),
        )
        said = message("hi", PRIVATE)
        accepted = await limited.submit_batched(
            limited.arrivals.accept_messages, arrival(said, plan=conversations.build_run_plan(said))
        )
        await conversations.answer_message(accepted.to_pending(said), accepted.begun)
    finally:
        meter.set_receiver(None)
        await client.close()
    assert len(made) == 3
    assert await limited.submit(spendings.load_spent_tokens, current_day()) == 18


async def test_a_call_that_ends_after_the_record_is_closed_fails_for_nothing_of_this(model):
    record = Record(PROCESS)
    client = OpenAIClient(Endpoint(model.url, (), "scripted", timeout_seconds=10))
    model.script(["fine"])
    meter.set_receiver(record.spend)
    try:
        await record.close()
        assert (
            await client.complete(LLMRequest([{"role": "user", "content": "hi"}]))
        ).text == "fine"
    finally:
        meter.set_receiver(None)
        await client.close()
