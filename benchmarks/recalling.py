"""How the figures of :mod:`benchmarks.memory` are had and judged."""

import json
import subprocess
import sys

from benchmarks.outcome import Outcome
from benchmarks.process import ROOT, Installation

NOTES = 10_000
_SETUP = "import django; django.setup(); from benchmarks.memory import main; main()"


def costs(installation: Installation, notes: int) -> Outcome:
    """The most that a message costs, in milliseconds of CPU, with so many notes."""
    command = [sys.executable, "-c", _SETUP, str(notes)]
    output = subprocess.run(
        command,
        cwd=ROOT,
        env=installation.environment(),
        stdout=subprocess.PIPE,
        timeout=600,
        check=True,
    ).stdout
    return Outcome(
        {"recall_ms": 10, "alike_ms": 10, "off_ms": 0.05},
        json.loads(output),
        details={"notes": notes},
    )
