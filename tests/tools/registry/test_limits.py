"""Time limits that stand still while something waits on purpose."""

import asyncio

import pytest

from tools.registry.execution import pause_timeouts, time_limit


async def test_a_limit_ends_what_takes_longer():
    with pytest.raises(TimeoutError):
        async with time_limit(0.01):
            await asyncio.Event().wait()


async def test_all_limits_around_stand_still_and_keep_what_they_had_left(monkeypatch):
    loop, ahead = asyncio.get_running_loop(), 0.0
    real = loop.time
    monkeypatch.setattr(loop, "time", lambda: real() + ahead)
    async with time_limit(500) as outer, time_limit(400) as inner:
        left = [when - loop.time() for limit in (outer, inner) if (when := limit.when())]
        with pause_timeouts():
            assert (outer.when(), inner.when()) == (None, None)
            ahead = 1_000.0
            await asyncio.sleep(0)
        after = [when - loop.time() for limit in (outer, inner) if (when := limit.when())]
        assert after == pytest.approx(left, abs=60)


async def test_time_runs_again_afterwards():
    async def waiting() -> None:
        async with time_limit(0.05):
            with pause_timeouts():
                await asyncio.sleep(0)
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await waiting()


async def test_standing_still_inside_standing_still_changes_nothing():
    async with time_limit(10) as limit:
        with pause_timeouts(), pause_timeouts():
            assert limit.when() is None
        assert limit.when() is not None


async def test_without_a_limit_there_is_nothing_to_hold():
    with pause_timeouts():
        await asyncio.sleep(0)


async def test_work_that_outlives_a_limit_may_still_wait():
    """A job that was begun inside a run goes on after it, with the run's ended limit in its
    context."""

    async def job() -> str:
        await ended.wait()
        with pause_timeouts():
            return "waited"

    ended = asyncio.Event()
    async with time_limit(10):
        work = asyncio.create_task(job())
        await asyncio.sleep(0)
    ended.set()
    assert await work == "waited"


async def test_cancellation_passes_through():
    async def waiting() -> None:
        async with time_limit(10):
            with pause_timeouts():
                await asyncio.Event().wait()

    work = asyncio.create_task(waiting())
    await asyncio.sleep(0)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
