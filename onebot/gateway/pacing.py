"""When the next message of an account may be written, so that QQ's risk control has no reason to
stop it. In the memory of one process: that which holds the account's socket runs its chats.

Folk numbers, none documented by Tencent: about one message a second and account, with small bursts,
and twenty a minute and group.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from agent.domain.types import ChatAddress

#: Messages that may be sent at once after a rest, however low the rate is.
LEAST_BURST = 5
#: Random seconds at most by which a message waits longer that has to wait at all.
JITTER_SECONDS = 0.3
#: Accounts and chats from which on those are forgotten that have rested long enough.
SWEEP_FROM = 1_000


@dataclass(slots=True)
class _Lane:
    """What one account or chat has reserved."""

    due: float = 0.0
    """When its bucket is full again; in the past it is as good as forgotten."""
    last: float = 0.0
    """When the message that was asked for last is to be written."""

    per_minute: int = 0

    def next_free(self, now: float, per_minute: int) -> float:
        if per_minute and self.per_minute and self.due > now:  # as many messages, at the new rate
            self.due = now + (self.due - now) * self.per_minute / per_minute
        self.per_minute = per_minute
        burst = max(LEAST_BURST, per_minute // 2)
        return max(now, self.due - (burst - 1) * 60 / per_minute) if per_minute else now

    def reserve(self, at: float, per_minute: int) -> None:
        if per_minute:
            self.due = max(self.due, at) + 60 / per_minute


@dataclass(slots=True)
class Pacer:
    """Two token buckets for each message: its account's, and its chat's. ``clock`` counts monotonic
    seconds."""

    clock: Callable[[], float] = time.monotonic
    jitter: Callable[[], float] = lambda: random.random() * JITTER_SECONDS  # noqa: S311
    _lanes: dict[str | ChatAddress, _Lane] = field(default_factory=dict)
    _sweep_from: int = SWEEP_FROM

    def next_turn(self, chat: ChatAddress, account_rate: int, chat_rate: int) -> float:
        """Reserve the next turn of ``chat``; the seconds until it, 0.0 for now. Rates are messages
        a minute, 0 for no limit.

        Turns come in the order in which they were asked for. One that is not used is lost, no more.
        """
        if not (account_rate or chat_rate):
            return 0.0
        now = self.clock()
        if len(self._lanes) >= self._sweep_from:
            self._sweep(now)
        whole = self._lanes.setdefault(chat.account, _Lane())
        own = self._lanes.setdefault(chat, _Lane())
        # The account counts what a slow chat holds back when it is asked for: other chats do not
        # wait for that chat.
        turn = whole.next_free(now, account_rate)
        whole.reserve(turn, account_rate)
        turn = max(own.next_free(turn, chat_rate), own.last)
        own.reserve(turn, chat_rate)
        own.last = turn if turn <= now else turn + self.jitter()
        return max(0.0, own.last - now)

    def _sweep(self, now: float) -> None:
        self._lanes = {
            key: lane for key, lane in self._lanes.items() if max(lane.due, lane.last) > now
        }
        self._sweep_from = max(SWEEP_FROM, 2 * len(self._lanes))
