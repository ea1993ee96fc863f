"""What a scenario came to, and how it is printed."""

import platform
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from benchmarks.tally import Tally


@dataclass(slots=True)
class Outcome:
    """Each target is the most that the measured figure of the same name may be."""

    target: dict[str, float]
    measured: dict[str, float]
    faults: Counter[str] = field(default_factory=Counter)
    details: dict[str, Any] = field(default_factory=dict)
    unfinished: bool = False
    """The time was over before everything that was planned was done."""

    @property
    def is_correct(self) -> bool:
        return not self.faults.total()

    @property
    def is_met(self) -> bool:
        within = all(self.measured[name] <= most for name, most in self.target.items())
        return within and self.is_correct and not self.unfinished

    def line(self) -> dict[str, Any]:
        figures = {"ok": self.is_met, "correct": self.is_correct, "target": self.target}
        rest = {
            "measured": {name: round(value, 3) for name, value in self.measured.items()},
            "faults": dict(self.faults),
        }
        unfinished = {"unfinished": True} if self.unfinished else {}
        return (
            figures
            | rest
            | unfinished
            | {"details": self.details, "python": platform.python_version()}
        )


def of_tallies(
    target: dict[str, float], measured: dict[str, float], tallies: list[Tally], **details: Any
) -> Outcome:
    """An outcome with the faults of all ``tallies``."""
    faults = sum((tally.faults for tally in tallies), Counter[str]())
    unfinished = any(tally.answered < tally.planned for tally in tallies)
    return Outcome(target, measured, faults, details, unfinished)
