"""Synchronous tools, off the event loop."""

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import Never, TypeVar

from django.db import connections

T = TypeVar("T")


async def run_in_thread(call: Callable[[], T]) -> T:
    """The result of ``call``, run in a thread of its own with the caller's context variables.

    Not in a pool: a tool that hangs would occupy a worker permanently, and the interpreter would
    wait for it at exit. A cancelled call continues in its thread, and its result is discarded.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[Callable[[], T]] = loop.create_future()
    context = contextvars.copy_context()

    def work() -> None:
        settled = _settled(lambda: context.run(call))
        with contextlib.suppress(RuntimeError):  # the loop has ended, and nothing awaits the result
            loop.call_soon_threadsafe(_deliver, outcome, settled)

    threading.Thread(target=work, name="tool", daemon=True).start()
    return (await outcome)()


def _settled(call: Callable[[], T]) -> Callable[[], T]:
    """``call`` done: a function that returns its value or raises its error. Closes the thread's
    database connections."""
    try:
        value = call()
    except BaseException as error:  # noqa: BLE001 - raised again where the call is awaited
        return _raising(error)
    else:
        return lambda: value
    finally:
        connections.close_all()


def _raising(error: BaseException) -> Callable[[], Never]:
    def again() -> Never:
        raise error

    return again


def _deliver(outcome: asyncio.Future[T], value: T) -> None:
    if not outcome.done():
        outcome.set_result(value)
