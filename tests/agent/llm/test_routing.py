"""Asking one endpoint after the other, over real HTTP."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from agent.domain.endpoint import Ability, Endpoint, ModelRole
from agent.domain.errors import BudgetSpent, LLMError
from agent.llm.client.client import OpenAIClient
from agent.llm.endpoints.endpoint_book import EndpointBook
from agent.llm.endpoints.endpoint_pool import EndpointNews, EndpointPool, EndpointTable
from agent.llm.requests.base import LLMRequest
from tests.scripted_model import ScriptedModel, fails, hangs, held, returns, says

QUESTION = LLMRequest([{"role": "system", "content": "s"}, {"role": "user", "content": "hi"}])
Books = Callable[..., EndpointBook]


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def second() -> Iterator[ScriptedModel]:
    with ScriptedModel() as server:
        yield server
        server.verify()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def books(clock: Clock) -> AsyncIterator[Books]:
    opened: list[EndpointBook] = []

    def book(*endpoints: Endpoint, news: list[EndpointNews] | None = None) -> EndpointBook:
        table = EndpointTable({one.pk: one for one in endpoints if one.pk is not None})
        pool = EndpointPool(OpenAIClient, (news if news is not None else []).append, clock)
        opened.append(EndpointBook(pool, table))
        return opened[-1]

    yield book
    for one in opened:
        await one.close()


def endpoint(pk: int, server: ScriptedModel, /, **fields: Any) -> Endpoint:
    usual: dict[str, Any] = {"keys": ("sk",), "model": f"m{pk}", "timeout_seconds": 5.0}
    return Endpoint(server.url, pk=pk, name=f"e{pk}", **usual | fields)


async def ask(book: EndpointBook, request: LLMRequest = QUESTION) -> Any:
    return await book.model(ModelRole.CHAT).complete(request)


async def test_the_second_answers_when_the_first_is_dead_and_the_answer_says_why(
    model: ScriptedModel, second: ScriptedModel, books: Books
):
    dead = replace(endpoint(1, model, timeout_seconds=0.5), url="http://127.0.0.1:9/v1")
    second.script(["here"])
    response = await ask(books(dead, endpoint(2, second)))
    assert response.text == "here"
    (attempt,) = response.attempts
    assert (attempt.endpoint, attempt.model) == ("e1", "m1")
    assert "cannot be reached" in attempt.reason


async def test_a_dead_one_costs_nobody_its_time_out_twice(
    model: ScriptedModel, second: ScriptedModel, books: Books, clock: Clock
):
    model.script([hangs(), "well again"])
    second.script(["one", "two"])
    book = books(endpoint(1, model, timeout_seconds=0.3), endpoint(2, second))
    assert (await ask(book)).text == "one"
    response = await ask(book)
    assert (response.text, len(model.requests)) == ("two", 1)
    assert "it rests for another 30 s after: no answer" in response.attempts[0].reason
    assert book.model(ModelRole.CHAT).name == "m2"
    clock.now += 31
    assert (await ask(book)).text == "well again"


@pytest.mark.parametrize("status", [401, 402, 403, 404, 429, 503])
async def test_the_next_one_is_asked_whatever_the_first_refuses_with(
    model: ScriptedModel, second: ScriptedModel, books: Books, status: int
):
    headers = {"x-should-retry": "false"}
    model.answer_with(lambda _: returns({}, status=status, headers=headers))
    second.script(["two"])
    response = await ask(books(endpoint(1, model), endpoint(2, second)))
    assert (response.text, response.attempts[0].endpoint) == ("two", "e1")
    assert str(status) in response.attempts[0].reason


async def test_a_limited_one_rests_as_long_as_it_wishes(
    model: ScriptedModel, second: ScriptedModel, books: Books, clock: Clock
):
    model.script([fails(429, retry_after=40), "again"])
    second.script(["two", "three"])
    book = books(endpoint(1, model), endpoint(2, second))
    assert [(await ask(book)).text for _ in range(2)] == ["two", "three"]
    clock.now += 41
    assert (await ask(book)).text == "again"


async def test_an_error_also_names_the_one_behind_that_was_left_out_because_it_rests(
    model: ScriptedModel, second: ScriptedModel, books: Books
):
    headers = {"x-should-retry": "false"}
    model.answer_with(lambda _: returns({}, status=503, headers=headers))
    second.script([fails(429, retry_after=40)])
    book = books(endpoint(1, model), endpoint(2, second))
    with pytest.raises(LLMError):
        await ask(book)
    with pytest.raises(LLMError) as caught:
        await ask(book)
    assert [one.endpoint for one in caught.value.attempts] == ["e1", "e2"]
    assert "it rests for another 40 s" in caught.value.attempts[1].reason


async def test_a_filtered_answer_moves_on_but_leaves_the_endpoint_in_use(
    model: ScriptedModel, second: ScriptedModel, books: Books
):
    model.script([says("", finish_reason="content_filter"), "fine"])
    second.script(["two"])
    book = books(endpoint(1, model), endpoint(2, second))
    assert (await ask(book)).text == "two"
    assert (await ask(book)).text == "fine"


async def test_where_all_fail_the_error_names_each(
    model: ScriptedModel, second: ScriptedModel, books: Books
):
    model.answer_with(lambda _: fails(401, message="bad key"))
    second.answer_with(lambda _: returns({"choices": []}))
    with pytest.raises(LLMError) as raised:
        await ask(books(endpoint(1, model), endpoint(2, second)))
    assert [one.endpoint for one in raised.value.attempts] == ["e1", "e2"]
    first, second_cause = str(raised.value).split("\nthen: ")
    assert "bad key" in first
    assert "choices" in second_cause


async def test_pictures_go_to_one_that_sees(
    model: ScriptedModel, second: ScriptedModel, books: Books
):
    sees = frozenset({Ability.CHAT, Ability.SEE})
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    request = LLMRequest([*QUESTION.messages, {"role": "user", "content": [picture]}])
    second.script(["a cat"])
    book = books(endpoint(1, model), endpoint(2, second, abilities=sees))
    assert (await ask(book, request)).text == "a cat"
    assert book.model(ModelRole.CHAT).can_see


async def test_who_is_cancelled_stops_at_once_and_another_may_try(
    model: ScriptedModel, second: ScriptedModel, books: Books
):
    model.script([held("one"), "two"])
    book = books(endpoint(1, model), endpoint(2, second))
    task = asyncio.create_task(ask(book))
    await model.wait_for_requests(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await ask(book)).text == "two"
    assert not second.requests


async def test_what_changes_is_told_once(
    model: ScriptedModel, second: ScriptedModel, books: Books, clock: Clock
):
    model.script(["a", "b", fails(401), "c"])
    second.script(["x"])
    news: list[EndpointNews] = []
    book = books(endpoint(1, model), endpoint(2, second), news=news)
    for _ in range(3):
        await ask(book)
    clock.now += 301
    await ask(book)
    of_first = [one for one in news if one.endpoint.pk == 1]
    assert [(one.has_answered, one.rest_seconds) for one in of_first[:1] + of_first[-1:]] == [
        (True, 0),
        (True, 0),
    ]
    assert [one.rest_seconds for one in of_first if one.error] in ([300], [0])


class Gate:
    """A budget that is used up, but for the endpoint with the key 2."""

    def __init__(self, cheaper: int | None) -> None:
        self.cheaper = cheaper
        self.held = 0
        self.is_idle = False

    async def hold(self, endpoint: Endpoint, input_tokens: int, output_tokens: int) -> "Gate":
        if endpoint.pk != self.cheaper:
            raise BudgetSpent("month", "cheaper", self.cheaper)
        self.held += 1
        return self

    def release(self) -> None:
        self.held -= 1


async def test_where_a_budget_is_used_up_the_cheaper_one_answers(
    model: ScriptedModel, second: ScriptedModel, books: Books
):
    second.script(["cheap"])
    book = books(endpoint(1, model), endpoint(2, second))
    book.gate = gate = Gate(cheaper=2)
    response = await ask(book)
    assert (response.text, gate.held) == ("cheap", 0)
    assert "month" in response.attempts[0].reason
    book.gate = strict = Gate(cheaper=None)
    with pytest.raises(BudgetSpent):
        await ask(book)
    strict.is_idle = True
    model.script(["no budget"])
    assert (await ask(book)).text == "no budget"


async def test_vectors_of_different_models_are_not_mixed(
    model: ScriptedModel, second: ScriptedModel, books: Books
):
    embeds = frozenset({Ability.EMBED})
    first = endpoint(1, model, abilities=embeds, model="bge")
    same = endpoint(3, second, abilities=embeds, model="bge")
    other = endpoint(2, second, abilities=embeds, model="other")
    model.answer_with(lambda _: fails(401))
    second.script([returns({"data": [{"embedding": [1, 0]}]})])
    embedder = books(first, other, same).embedder()
    assert embedder is not None
    assert embedder.name == "bge"
    assert len(await embedder.embed(["x"])) == 1
    assert [one.model for one in second.requests] == ["bge"]


async def test_one_that_kept_a_caller_waiting_to_the_end_of_its_own_time_rests(
    model: ScriptedModel, second: ScriptedModel, books: Books, clock: Clock
):
    model.script([held("one")])
    second.script(["two"])
    book = books(endpoint(1, model), endpoint(2, second))
    task = asyncio.create_task(ask(book))
    await model.wait_for_requests(1)
    clock.now += 60  # the time of a subagent, which is less than that of the endpoint
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await ask(book)).text == "two"
    assert len(model.requests) == 1
