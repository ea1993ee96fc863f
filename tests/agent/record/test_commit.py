"""Group commit: what waits is committed together, in order, and what fails fails alone."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence

import pytest
from asgiref.sync import sync_to_async
from django.db import IntegrityError, OperationalError

from agent.models import CommitMark, ServerProcess
from agent.record.ground import commit as module
from agent.record.ground.commit import GroupCommit
from agent.record.ground.outage import UNREACHABLE
from tests.environment import PATIENCE

pytestmark = pytest.mark.django_db(transaction=True)


def double(items: Sequence[int]) -> list[int]:
    return [2 * item for item in items]


class Store:
    """An operation that makes rows, remembers its batches, and can be held up before it commits."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.go_on = threading.Event()
        self.go_on.set()

    def __call__(self, names: Sequence[str]) -> list[int]:
        self.go_on.wait(10)
        self.batches.append(list(names))
        rows = [
            ServerProcess(id=name, host="h", pid=1, last_seen_at="2026-01-01T00:00:00Z")
            for name in names
        ]
        for row in rows:
            row.save(force_insert=True)
        return [len(name) for name in names]


@pytest.fixture
async def commit() -> AsyncIterator[GroupCommit]:
    commit = GroupCommit()
    yield commit
    await commit.close()


@sync_to_async
def stored() -> list[str]:
    return sorted(ServerProcess.objects.values_list("id", flat=True))


async def first_is_underway(commit: GroupCommit, store: Store, name: str) -> "asyncio.Future[int]":
    """Submit one request and hold its transaction open, so that others gather behind it."""
    store.go_on.clear()
    first = commit.submit_batched(store, name)
    while commit._waiting:  # noqa: ASYNC110 - nothing tells that the writer has taken a request
        await asyncio.sleep(0)
    return first


async def test_a_result_comes_back_once_its_commit_is_done(commit):
    assert await commit.submit_batched(Store(), "abc") == 3
    assert await stored() == ["abc"]


async def test_a_database_in_this_process_needs_no_mark_of_a_commit(commit):
    await commit.submit_batched(Store(), "abc")
    assert not await sync_to_async(CommitMark.objects.exists)()


async def test_what_gathers_during_a_commit_goes_into_the_next_one_together(commit):
    store = Store()
    first = await first_is_underway(commit, store, "a")
    others = [commit.submit_batched(store, name) for name in ("b", "c", "d")]
    store.go_on.set()
    await asyncio.gather(first, *others)
    assert store.batches == [["a"], ["b", "c", "d"]]


async def test_different_operations_share_a_commit_and_get_their_own_results(commit):
    store = Store()
    first = await first_is_underway(commit, store, "a")
    mixed = [
        commit.submit_batched(double, 1),
        commit.submit_batched(store, "bb"),
        commit.submit_batched(double, 2),
        commit.submit_batched(store, "ccc"),
    ]
    store.go_on.set()
    assert await asyncio.gather(first, *mixed) == [1, 2, 2, 4, 3]
    assert store.batches[1:] == [["bb", "ccc"]]


async def test_futures_are_completed_in_the_order_of_the_requests(commit):
    done: list[int] = []
    for number in range(5):
        commit.submit_batched(double, number).add_done_callback(
            lambda future: done.append(future.result())
        )
    await commit.submit_batched(double, 5)
    assert done == [0, 2, 4, 6, 8]


async def test_what_is_in_order_stands_between_what_came_before_and_after_it(commit):
    store, other, done = Store(), Store(), list[str]()

    def mark(name: str) -> None:
        done.extend([name, *(name for one in store.batches[1:] for name in one)])

    first = await first_is_underway(commit, store, "first")
    before = commit.submit_batched(store, "before")
    marked = commit.submit(mark, "mark", is_in_order=True)
    after = commit.submit_batched(store, "after")
    beside = commit.submit_batched(other, "beside")
    store.go_on.set()
    await asyncio.gather(first, before, marked, after, beside)
    assert done == ["mark", "before"]
    assert store.batches == [["first"], ["before"], ["after"]]


async def test_a_function_gets_its_arguments_and_fails_alone(commit):
    def divide(number: int, by: int) -> float:
        return number / by

    told = [commit.submit(divide, 6, by) for by in (2, 0, 3)]
    told.append(commit.submit_batched(double, 2))
    done = await asyncio.gather(*told, return_exceptions=True)
    assert isinstance(done.pop(1), ZeroDivisionError)
    assert done == [3, 2, 4]


async def test_a_request_that_is_refused_fails_alone(commit):
    store = Store()
    first = await first_is_underway(commit, store, "a")
    others = [commit.submit_batched(store, name) for name in ("b", "a", "c")]
    store.go_on.set()
    outcomes = await asyncio.gather(first, *others, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [int, int, IntegrityError, int]
    assert await stored() == ["a", "b", "c"]


async def test_an_operation_with_a_bug_leaves_the_others_alone(commit):
    def broken(_items: Sequence[int]) -> list[int]:
        raise ZeroDivisionError

    store = Store()
    first = await first_is_underway(commit, store, "a")
    failing, good = commit.submit_batched(broken, 1), commit.submit_batched(store, "b")
    store.go_on.set()
    with pytest.raises(ZeroDivisionError):
        await failing
    assert (await first, await good) == (1, 1)


async def test_a_cancelled_request_is_committed_all_the_same(commit):
    store = Store()
    first = await first_is_underway(commit, store, "a")
    cancelled = commit.submit_batched(store, "b")
    cancelled.cancel()
    store.go_on.set()
    await first
    await commit.submit_batched(double, 0)
    assert await stored() == ["a", "b"]


async def test_a_database_that_comes_back_costs_no_request(commit, monkeypatch):
    monkeypatch.setattr(module, "RETRY_PAUSES", (0.01, 0.01, 0.01))
    failures = [
        OperationalError("database is locked")
    ] * 3  # the commit itself, and two tries after it

    def shaky(names: Sequence[str]) -> list[int]:
        if failures:
            raise failures.pop()
        return Store()(names)

    assert await commit.submit_batched(shaky, "abc") == 3
    assert await stored() == ["abc"]


async def test_while_the_database_refuses_everything_waits_and_says_so_and_then_goes_on(
    commit, monkeypatch
):
    monkeypatch.setattr(module, "RETRY_PAUSES", (0.01,))
    store, is_away = Store(), threading.Event()
    is_away.set()

    def away(names: Sequence[str]) -> list[int]:
        if is_away.is_set():
            raise OperationalError("server closed the connection")
        return store(names)

    written = [commit.submit_batched(away, name) for name in ("a", "b")]
    while commit.outage is None:  # noqa: ASYNC110 - the outage is what is waited for
        await asyncio.sleep(0)
    assert (commit.outage.reason, commit.outage.waiting) == (UNREACHABLE, 2)
    is_away.clear()
    assert await asyncio.gather(*written) == [1, 1]
    await commit.submit_batched(double, 1)
    assert commit.outage is None


async def test_a_process_that_ends_does_not_wait_for_a_database_that_stays_away(monkeypatch):
    monkeypatch.setattr(module, "RETRY_PAUSES", (0.01,))
    monkeypatch.setattr(module, "CLOSE_SECONDS", 0.05)

    def away(_items: Sequence[int]) -> list[int]:
        raise OperationalError("server closed the connection")

    commit = GroupCommit()
    request = commit.submit_batched(away, 1)
    await commit.close()
    with pytest.raises(OperationalError):
        await request


async def test_what_is_remembered_of_rows_is_forgotten_when_a_transaction_fails(monkeypatch):
    forgotten: list[bool] = []
    commit = GroupCommit(lambda: forgotten.append(True))
    assert await commit.submit_batched(Store(), "a") == 1
    assert forgotten == []
    with pytest.raises(IntegrityError):
        await commit.submit_batched(Store(), "a")
    assert forgotten
    await commit.close()


async def test_a_batch_has_a_largest_size(commit, monkeypatch):
    monkeypatch.setattr(module, "BATCH_SIZE", 2)
    store = Store()
    first = await first_is_underway(commit, store, "a")
    others = [commit.submit_batched(store, name) for name in "bcdef"]
    store.go_on.set()
    await asyncio.gather(first, *others)
    assert store.batches == [["a"], ["b", "c"], ["d", "e"], ["f"]]


async def test_those_who_can_wait_are_held_back_while_too_much_is_to_be_written(
    commit, monkeypatch
):
    monkeypatch.setattr(module, "HIGH_WATER", 2)
    store = Store()
    first = await first_is_underway(commit, store, "a")
    await asyncio.wait_for(commit.wait_for_room(), PATIENCE)
    others = [commit.submit_batched(store, name) for name in "bc"]
    waiting = asyncio.create_task(commit.wait_for_room())
    await asyncio.sleep(0)
    assert not waiting.done()
    store.go_on.set()
    await asyncio.wait_for(waiting, PATIENCE)
    await asyncio.gather(first, *others)


async def test_closing_commits_what_waits():
    commit, store = GroupCommit(), Store()
    await first_is_underway(commit, store, "a")
    commit.submit_batched(store, "b")
    asyncio.get_running_loop().call_soon(store.go_on.set)
    await commit.close()
    assert await stored() == ["a", "b"]
