"""What serves in this process, for the pages of the admin, which run in other threads."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from agent.record.ground.outage import DatabaseOutage
from agent.record.waiting.trials import TrialRefusal, TrialWish
from agent.runtime.steering import Steering
from agent.runtime.trials import Trials
from tools.registry.registry import ToolRegistry

if TYPE_CHECKING:
    from agent.domain.alerts import AlertLook

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
    find_alerts: "Callable[[], AlertLook] | None" = None
    """To be called in a thread that may ask the database."""
    _waiting: "set[Future[Any]]" = field(default_factory=set)
    _over: threading.Event = field(default_factory=threading.Event)

    def run(self, work: Callable[[ToolRegistry], Coroutine[Any, Any, T]]) -> T:
        """What ``work`` comes to on that loop. To be called from another thread, which waits.
        Raises LookupError where the server ends meanwhile."""
        return self._wait(work(self.registry), None)

    def ask_again(self, wish: TrialWish) -> int | TrialRefusal:
        """As :meth:`agent.runtime.trials.Trials.ask`, from another thread, which waits until it has
        begun. Raises TimeoutError where the database takes nothing for so long; it may begin
        later all the same."""
        if self.trials is None:
            raise LookupError("nothing can be asked again in this process")
        return self._wait(self.trials.ask(wish), BEGIN_SECONDS)

    def steer(self, work: Callable[[Steering], Coroutine[Any, Any, None]]) -> None:
        """Have ``work`` done on that loop, and wait for it, but not for long: what it is about is
        on record. To be called from another thread."""
        if self.steering is not None:
            with contextlib.suppress(TimeoutError, LookupError):
                self._wait(work(self.steering), STEER_SECONDS)

    def ask(self, work: Callable[[Steering], Coroutine[Any, Any, T]]) -> T | None:
        """What ``work`` comes to on that loop; None where that takes longer than a page waits. It
        goes on then. To be called from another thread."""
        if self.steering is not None:
            with contextlib.suppress(TimeoutError, LookupError):
                return self._wait(work(self.steering), STEER_SECONDS)
        return None

    def end(self) -> None:
        """Nothing is done any more: the threads that wait go on, for the loop may stop before it
        has done what they wait for, and the server waits for them."""
        self._over.set()
        for future in list(self._waiting):
            future.cancel()

    def _wait(self, work: Coroutine[Any, Any, T], seconds: float | None) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        self._waiting.add(future)
        try:
            if self._over.is_set():
                future.cancel()
            return future.result(seconds)
        except CancelledError:
            raise LookupError("the server ends") from None
        finally:
            self._waiting.discard(future)


_serving: list[ServingRegistry] = []


def begin_serving(serving: ServingRegistry) -> None:
    """``serving`` serves from now on."""
    _serving.append(serving)


def end_serving(registry: ToolRegistry) -> None:
    """``registry`` no longer serves; nothing happens when it never did."""
    for serving in [one for one in _serving if one.registry is registry]:
        _serving.remove(serving)
        serving.end()


def steer(work: Callable[[Steering], Coroutine[Any, Any, None]]) -> None:
    """Have the server of this process do ``work`` at once, if it is one; others see what is about
    to change on record."""
    if (serving := get_serving()) is not None:
        serving.steer(work)


def get_serving() -> ServingRegistry | None:
    """The registry that serves in this process; None in one that serves no client, such as a
    management command."""
    return _serving[-1] if _serving else None
