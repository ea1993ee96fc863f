"""What serves in this process, for the pages of the admin, which run in other threads."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from agent.record.ground.outage import DatabaseOutage
from agent.record.waiting.trials import TrialRefusal, TrialWish
from agent.runtime.steering import Steering
from agent.runtime.trials import Trials
from tools.registry.registry import ToolRegistry

T = TypeVar("T")
#: How long a page waits until what it asked for is on record, in seconds.
BEGIN_SECONDS = 20.0
#: How long a page waits for what it has the server do in a chat, in seconds.
STEER_SECONDS = 8.0


@dataclass(frozen=True, slots=True)
class ServingRegistry:
    """A registry, the loop that it lives on, and whether the database can be written as far as that
    knows."""

    registry: ToolRegistry
    loop: asyncio.AbstractEventLoop
    outage: Callable[[], DatabaseOutage | None] = lambda: None
    trials: Trials | None = None
    steering: Steering | None = None
    """None where no chats are answered."""

    def run(self, work: Callable[[ToolRegistry], Coroutine[Any, Any, T]]) -> T:
        """What ``work`` comes to on that loop. To be called from another thread, which waits."""
        return asyncio.run_coroutine_threadsafe(work(self.registry), self.loop).result()

    def ask_again(self, wish: TrialWish) -> int | TrialRefusal:
        """As :meth:`agent.runtime.trials.Trials.ask`, from another thread, which waits until it has
        begun. Raises TimeoutError where the database takes nothing for so long; it may begin
        later all the same."""
        if self.trials is None:
            raise LookupError("nothing can be asked again in this process")
        begun = asyncio.run_coroutine_threadsafe(self.trials.ask(wish), self.loop)
        return begun.result(BEGIN_SECONDS)

    def steer(self, work: Callable[[Steering], Coroutine[Any, Any, None]]) -> None:
        """Have ``work`` done on that loop, and wait for it, but not for long: what it is about is
        on record. To be called from another thread."""
        if self.steering is not None:
            done = asyncio.run_coroutine_threadsafe(work(self.steering), self.loop)
            with contextlib.suppress(TimeoutError):
                done.result(STEER_SECONDS)


_serving: list[ServingRegistry] = []


def begin_serving(serving: ServingRegistry) -> None:
    """``serving`` serves from now on."""
    _serving.append(serving)


def end_serving(registry: ToolRegistry) -> None:
    """``registry`` no longer serves; nothing happens when it never did."""
    _serving[:] = [one for one in _serving if one.registry is not registry]


def get_serving() -> ServingRegistry | None:
    """The registry that serves in this process; None in one that serves no client, such as a
    management command."""
    return _serving[-1] if _serving else None
