"""How a tool was used lately: counted over its newest calls, however many there are."""

import math
from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone

from agent.models import ToolCall

#: Newest calls of a tool that are read.
CALL_LIMIT = 1_000
PERIOD = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class ToolFigures:
    """Calls within :data:`PERIOD`. Durations in ms are those of calls that reached the tool, None
    without any."""

    calls: int
    failures: int
    mocked: int
    p50: int | None
    p95: int | None
    is_capped: bool
    limit: int = CALL_LIMIT


def load_tool_use(tool_name: str) -> ToolFigures:
    """One query of :data:`CALL_LIMIT` rows at most; the period is cut here, so that no old row is
    walked over for it."""
    newest = ToolCall.objects.filter(tool_name=tool_name).order_by("-pk")
    rows = list(newest.values_list("created_at", "state", "mocked", "duration_ms")[:CALL_LIMIT])
    begin = timezone.now() - PERIOD
    recent = [(state, mocked, duration) for at, state, mocked, duration in rows if at >= begin]
    durations = sorted(
        duration for _, mocked, duration in recent if duration is not None and not mocked
    )
    return ToolFigures(
        calls=len(recent),
        failures=sum(state == ToolCall.State.FAILED for state, _, _ in recent),
        mocked=sum(mocked for _, mocked, _ in recent),
        p50=percentile(durations, 50),
        p95=percentile(durations, 95),
        is_capped=len(recent) == CALL_LIMIT,
    )


def percentile(ordered: list[int], percent: int) -> int | None:
    """The smallest value that ``percent`` % of the ``ordered`` ones do not exceed (nearest rank);
    None of nothing."""
    return ordered[math.ceil(len(ordered) * percent / 100) - 1] if ordered else None
