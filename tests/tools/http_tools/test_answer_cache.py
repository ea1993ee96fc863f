"""Answers that are kept: for how long, how many, and one request for all who ask at the same
time."""

import asyncio

import pytest

from tools.contract import ToolExecutionResult
from tools.http_tools import provider
from tools.http_tools.provider import AnswerCache, estimate_size


class Source:
    """Answers with the number of the request, once it is let go."""

    def __init__(self, *, success: bool = True) -> None:
        self.asked = 0
        self.cancelled = 0
        self.free = asyncio.Event()
        self.free.set()
        self._success = success

    async def __call__(self) -> ToolExecutionResult:
        self.asked += 1
        number = self.asked
        try:
            await self.free.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return ToolExecutionResult("t", self._success, f"{number}")


async def test_an_answer_is_kept_for_its_time():
    now = [0.0]
    kept, source = AnswerCache(lambda: now[0]), Source()
    for moment, told in [(0, "1"), (9.9, "1"), (10, "2"), (19, "2")]:
        now[0] = moment
        assert (await kept.result(b"a", 10, source)).content == told
    assert (await kept.result(b"b", 10, source)).content == "3"


async def test_a_failure_is_not_kept():
    kept, source = AnswerCache(), Source(success=False)
    assert [(await kept.result(b"a", 10, source)).content for _ in range(2)] == ["1", "2"]


async def test_the_longest_unused_goes_first(monkeypatch):
    monkeypatch.setattr(provider, "ENTRIES", 2)
    kept, source = AnswerCache(), Source()
    for key in (b"a", b"b", b"a", b"c"):
        await kept.result(key, 10, source)
    assert (await kept.result(b"a", 10, source)).content == "1"
    assert (await kept.result(b"b", 10, source)).content == "4"


@pytest.mark.parametrize(("room", "asked"), [(2, 2), (1, 3), (0, 3)])
async def test_bytes_are_bounded(monkeypatch, room, asked):
    one = estimate_size(ToolExecutionResult("t", True, "1"))
    monkeypatch.setattr(provider, "BYTES", room * one)
    kept, source = AnswerCache(), Source()
    for key in (b"a", b"b", b"a"):
        await kept.result(key, 10, source)
    assert source.asked == asked


async def test_those_who_ask_at_the_same_time_share_one_request():
    kept, source = AnswerCache(), Source()
    source.free.clear()
    calls = [asyncio.ensure_future(kept.result(b"a", 10, source)) for _ in range(5)]
    await asyncio.sleep(0)
    calls[0].cancel()
    await asyncio.sleep(0)
    source.free.set()
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert [getattr(result, "content", "cancelled") for result in results] == [
        "cancelled",
        "1",
        "1",
        "1",
        "1",
    ]
    assert source.asked == 1


async def test_a_request_that_nobody_waits_for_is_given_up_and_made_anew():
    kept, source = AnswerCache(), Source()
    source.free.clear()
    call = asyncio.ensure_future(kept.result(b"a", 10, source))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    call.cancel()
    await asyncio.wait([call])
    calls = [asyncio.ensure_future(kept.result(b"a", 10, source)) for _ in range(3)]
    await asyncio.sleep(0)
    source.free.set()
    assert [(await call).content for call in calls] == ["2", "2", "2"]
    assert source.cancelled == 1


async def test_an_error_reaches_everybody_who_waits():
    async def fails() -> ToolExecutionResult:
        await asyncio.sleep(0)
        raise OSError("gone")

    kept = AnswerCache()
    results = await asyncio.gather(
        *(kept.result(b"a", 10, fails) for _ in range(2)), return_exceptions=True
    )
    assert [str(result) for result in results] == ["gone", "gone"]
