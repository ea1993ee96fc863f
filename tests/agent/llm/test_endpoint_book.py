"""Who is asked for what, and clients that come and go."""

import asyncio
from typing import Any

from agent.domain.endpoint import Ability, Endpoint, ModelRole
from agent.llm.endpoints.endpoint_book import DemoModel, EndpointBook
from agent.llm.endpoints.endpoint_pool import (
    AS_USUAL,
    EndpointNews,
    EndpointPool,
    EndpointTable,
    environment_table,
)
from agent.llm.requests.base import LLMRequest, LLMResponse

QUESTION = LLMRequest([{"role": "user", "content": "hi"}])
SEES = frozenset({Ability.CHAT, Ability.SEE})


class Client(DemoModel):
    """A client that answers when it is allowed to."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.is_closed = False

    async def complete(self, request: LLMRequest, *, is_last: bool = True) -> LLMResponse:
        await self.may_answer.wait()
        return await super().complete(request)

    async def post(self, path: str, **request: Any) -> object:
        return {"text": "words"}

    async def close(self) -> None:
        self.is_closed = True


class Bench:
    """A book over a table that a test replaces, and the clients that it made."""

    def __init__(self, table: EndpointTable) -> None:
        self.clients: list[Client] = []
        self.news: list[EndpointNews] = []
        pool = EndpointPool(self._connect, self.news.append)
        self.book = EndpointBook(pool, table, tell=self.news.append)

    def change(self, table: EndpointTable) -> None:
        self.book.replace_table(table)

    async def ask(self, role: ModelRole = ModelRole.CHAT) -> LLMResponse:
        return await self.book.model(role).complete(QUESTION)

    def _connect(self, endpoint: Endpoint) -> Client:
        self.clients.append(Client(endpoint))
        return self.clients[-1]


def row(pk: int, **fields: Any) -> Endpoint:
    return Endpoint("http://m/v1", pk=pk, model=f"m{pk}", **fields)


def table(*rows: Endpoint, **fields: Any) -> EndpointTable:
    return EndpointTable({one.pk: one for one in rows if one.pk is not None}, **fields)


def asked(book_table: EndpointTable, role: ModelRole, *choice: int) -> list[str]:
    return [one.model for one in book_table.resolve(role, choice)]


ENV = Endpoint("http://env/v1", model="env", environment="UPSTREAM")


def test_a_choice_counts_before_the_default_list_and_that_before_the_environment():
    rows = table(row(1), row(2), environment={"UPSTREAM": ENV})
    assert asked(rows, ModelRole.CHAT) == ["env", "m1", "m2"]
    chosen = table(row(1), row(2), row(3), defaults={ModelRole.CHAT: (2, 9)})
    assert asked(chosen, ModelRole.CHAT) == ["m2"]
    assert asked(chosen, ModelRole.CHAT, 3, 1) == ["m3", "m1"]
    assert asked(chosen, ModelRole.CHAT, 9) == ["m2"]
    assert asked(chosen, ModelRole.TIMING) == asked(chosen, ModelRole.MEMORY) == ["m2"]


def test_a_choice_that_ends_as_usual_is_asked_before_the_others():
    rows = table(row(1), row(2), environment={"UPSTREAM": ENV})
    assert asked(rows, ModelRole.CHAT, 2, AS_USUAL) == ["m2", "env", "m1"]
    assert asked(rows, ModelRole.CHAT, 9, AS_USUAL) == ["env", "m1", "m2"]
    chosen = table(row(1), row(2), defaults={ModelRole.CHAT: (1,)})
    assert asked(chosen, ModelRole.CHAT, 2, AS_USUAL) == ["m2", "m1"]


def test_each_role_is_asked_of_those_that_can_do_it():
    hears = row(3, abilities=frozenset({Ability.TRANSCRIBE}))
    rows = table(row(1), row(2, abilities=SEES), hears, environment={"UPSTREAM": ENV})
    assert asked(rows, ModelRole.VISION) == ["m2"]
    assert asked(rows, ModelRole.TRANSCRIPTION) == ["m3"]
    assert asked(rows, ModelRole.EMBEDDING) == []


def test_the_coder_of_the_environment_is_asked_first_and_for_nothing_else():
    coder = row(5, environment="CODER")
    rows = table(coder, row(1), environment={"CODER": coder, "UPSTREAM": ENV})
    assert asked(rows, ModelRole.CODER) == ["m5", "env", "m1"]
    assert asked(rows, ModelRole.CHAT) == ["env", "m1"]


def test_the_environment_alone_is_enough(settings: Any):
    settings.UPSTREAM_ENDPOINT, settings.MODEL_NAME = "http://m/v1", "big"
    settings.CODER_ENDPOINT, settings.CODER_MODEL_NAME = "http://m/v1", "coder"
    named = environment_table()
    assert asked(named, ModelRole.CHAT) == asked(named, ModelRole.MEMORY) == ["big"]
    assert asked(named, ModelRole.CODER) == ["coder", "big"]
    assert asked(named, ModelRole.VISION) == []


async def test_where_nobody_is_named_the_demo_answers_and_reads_nothing():
    bench = Bench(table())
    assert bench.book.model(ModelRole.CHAT).name == "demo"
    assert "demo" in (await bench.ask()).text
    assert not bench.book.has(ModelRole.VISION)
    assert bench.book.find_model(ModelRole.MEMORY) is None
    assert bench.book.transcriber() is None


async def test_a_client_is_made_once_and_closed_when_its_row_is_gone():
    bench = Bench(table(row(1)))
    bench.book.start()
    for _ in range(2):
        await bench.ask()
    bench.change(table(row(1)))
    await bench.ask()
    (client,) = bench.clients
    bench.change(table(row(2)))
    await asyncio.sleep(0)
    await bench.book.close()
    assert client.is_closed
    assert bench.book.model(ModelRole.CHAT).name == "m2"


async def test_a_client_in_use_is_closed_when_its_call_is_over():
    bench = Bench(table(row(1)))
    await bench.ask()
    (client,) = bench.clients
    client.may_answer.clear()
    call = asyncio.create_task(bench.ask())
    await asyncio.sleep(0)
    bench.change(table(row(1, timeout_seconds=9)))
    await bench.ask()
    assert not client.is_closed
    client.may_answer.set()
    assert (await call).text
    await bench.book.close()
    assert [one.is_closed for one in bench.clients] == [True, True]


async def test_a_row_that_cannot_be_read_is_told():
    bench = Bench(table())
    bench.change(table(faults={7: "no key"}))
    await bench.ask()
    assert [(one.endpoint.pk, one.error) for one in bench.news] == [(7, "no key")]
