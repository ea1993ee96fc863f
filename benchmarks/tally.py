"""What one measured stretch of load came to: counts of faults, and times in milliseconds."""

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Tally:
    """Counts are of messages; every fault is a defect of the server, whatever the load."""

    planned: int = 0
    sent: int = 0
    answered: int = 0
    max_in_flight: int = 0
    wall_seconds: float = 0
    faults: Counter[str] = field(default_factory=Counter)
    samples: list[str] = field(default_factory=list)
    """The first few answers that belong to no message, and why sockets were closed."""
    latency_ms: list[float] = field(default_factory=list)
    added_ms: list[float] = field(default_factory=list)
    """From event to model request plus from model answer to action: what the server itself took."""
    before_model_ms: list[float] = field(default_factory=list)
    after_model_ms: list[float] = field(default_factory=list)
    late_ms: list[float] = field(default_factory=list)
    """How late the rig itself sent; large values mean that the rig was the limit."""

    def fault(self, kind: str, sample: str = "") -> None:
        self.faults[kind] += 1
        if sample and len(self.samples) < 5:
            self.samples.append(sample)

    def report(self) -> dict[str, Any]:
        times = {
            name: spread(getattr(self, name))
            for name in ("latency_ms", "added_ms", "before_model_ms", "after_model_ms", "late_ms")
            if getattr(self, name)
        }
        counts = {"sent": self.sent, "answered": self.answered, "max_in_flight": self.max_in_flight}
        rate = {
            "wall_seconds": round(self.wall_seconds, 2),
            "per_second": round(self.answered / (self.wall_seconds or 1), 1),
        }
        return counts | rate | times | ({"samples": self.samples} if self.samples else {})


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which ``share`` of ``values`` lie; 0 for no values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def spread(values: Sequence[float]) -> dict[str, float]:
    shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
    found = {name: percentile(values, share) for name, share in shares.items()} | {
        "max": max(values)
    }
    return {name: round(value, 2) for name, value in found.items()}


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Least squares: how much y grows per x over the last half of ``points``; 0 for fewer than
    two."""
    half = points[len(points) // 2 :]
    if len(half) < 2:
        return 0.0
    return statistics.linear_regression([x for x, _ in half], [y for _, y in half]).slope
