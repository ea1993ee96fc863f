"""Synchronous tools beside the event loop."""

import asyncio
import contextvars
import threading

import pytest
from django.db import connection

from tools.models import ToolConfig
from tools.processes.threads import run_in_thread

name: contextvars.ContextVar[str] = contextvars.ContextVar("name")


async def test_the_callers_context_variables_are_seen():
    name.set("Ada")
    assert await run_in_thread(name.get) == "Ada"


async def test_an_error_is_raised_where_the_call_is_awaited():
    with pytest.raises(ZeroDivisionError):
        await run_in_thread(lambda: 1 / 0)


async def test_the_loop_goes_on_while_the_call_waits():
    released = threading.Event()
    asyncio.get_running_loop().call_soon(released.set)
    assert await run_in_thread(lambda: released.wait(10))


async def test_a_cancelled_call_ends_in_its_thread_and_is_thrown_away(caplog):
    begun, release, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        release.wait(10)
        ended.set()

    task = asyncio.create_task(run_in_thread(work))
    assert await run_in_thread(lambda: begun.wait(10))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    release.set()
    assert await run_in_thread(lambda: ended.wait(10))
    assert not caplog.records


@pytest.mark.django_db(transaction=True)
async def test_a_database_connection_of_the_thread_is_closed_with_it():
    def work() -> object:
        assert not ToolConfig.objects.exists()
        return connection.connection

    raw = await run_in_thread(work)
    with pytest.raises(Exception, match="closed"):
        raw.execute("SELECT 1")  # type: ignore[attr-defined]
