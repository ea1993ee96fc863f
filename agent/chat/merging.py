"""Messages that wait for their turn, and which of them are answered together. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from agent.domain.merging import merge_window
from agent.media.pipeline import PrefetchTask
from agent.record.runs.runs import ActiveRun
from agent.record.waiting.recovery import PendingMessage

#: Messages that are answered together, at most.
MOST_MERGED = 20
#: How long the first of them waits for others, at most: so many windows, and seconds.
WINDOWS, LONGEST_WAIT = 3, 30.0


class QueuedMessage(NamedTuple):
    """A message to be answered. ``active``: its run, if that began with the message's own commit.

    ``prefetch`` fetches its media since it arrived, for their links expire. ``earlier`` are those
    that are merged into it. ``arrived`` is by the clock of the event loop; 0 for one that is taken
    up from the record, which waits for nothing.
    """

    pending: PendingMessage
    active: ActiveRun | None = None
    resumed: bool = False
    prefetch: PrefetchTask | None = None
    earlier: "tuple[QueuedMessage, ...]" = ()
    arrived: float = 0.0

    @property
    def pk(self) -> int:
        return self.pending.pk

    @property
    def window(self) -> float:
        """Seconds in which further messages of the same person are awaited, if any."""
        return merge_window(self.pending.message, self.pending.manners) if self._can_merge else 0.0

    @property
    def _can_merge(self) -> bool:
        pending = self.pending
        return not (
            self.active
            or pending.has_begun
            or pending.notice
            or pending.command
            or pending.approval_reply
            or pending.is_later_result
        )

    def follows(self, group: "Sequence[QueuedMessage]") -> bool:
        """Whether this one, next in the queue, is answered together with ``group`` before it."""
        before = group[-1]
        return bool(
            len(group) < MOST_MERGED
            and before.window
            and self._can_merge
            and self.pk > before.pk
            and self.pending.message.sender_id == before.pending.message.sender_id
        )


def from_record(pending: PendingMessage) -> QueuedMessage:
    """``pending``, as it was claimed from the record."""
    earlier = tuple(QueuedMessage(one, resumed=True) for one in pending.earlier)
    return QueuedMessage(pending, resumed=True, earlier=earlier)


def waits_until(group: Sequence[QueuedMessage]) -> float:
    """When nothing more is awaited to be answered together with ``group``, by the clock of the
    event loop."""
    first, last = group[0], group[-1]
    if len(group) == MOST_MERGED:
        return 0.0
    longest = min(WINDOWS * first.window, LONGEST_WAIT)
    return min(last.arrived + last.window, first.arrived + longest)


def merge(group: Sequence[QueuedMessage]) -> list[QueuedMessage]:
    """The last of ``group``, with the others, and what is merged into them, as its earlier ones;
    nothing for none."""
    if not group:
        return []
    *others, last = group
    earlier = [one for other in others for one in (*other.earlier, other._replace(earlier=()))]
    return [last._replace(earlier=(*earlier, *last.earlier))]
