"""Watches a coroutine for steps that block the event loop and thereby all other work."""

from collections.abc import Callable, Coroutine, Generator
from time import monotonic
from typing import Any, TypeVar

T = TypeVar("T")

HELD_SECONDS = 0.5
"""How long one step may take, between two points where the coroutine waits for something."""


class BlockingWatch:
    """``work`` as it is, but that each step over ``HELD_SECONDS`` is reported with its seconds. It
    is not stopped: nothing can."""

    def __init__(self, work: Coroutine[Any, Any, T], report: Callable[[float], None]) -> None:
        self._work = work
        self._report = report

    def __await__(self) -> Generator[Any, Any, Any]:
        return _Steps(self._work, self._report)


class _Steps(Generator[Any, Any, Any]):
    def __init__(self, work: Coroutine[Any, Any, Any], report: Callable[[float], None]) -> None:
        self._work = work
        self._report = report

    def send(self, value: Any) -> Any:
        return self._timed(self._work.send, value)

    def throw(self, *error: Any) -> Any:
        return self._timed(self._work.throw, *error)

    def _timed(self, step: Callable[..., Any], *arguments: Any) -> Any:
        began = monotonic()
        try:
            return step(*arguments)
        finally:
            took = monotonic() - began
            if took > HELD_SECONDS:
                self._report(took)
