"""What a call of a plugin's tool costs: how the figures of :mod:`benchmarks.plugin_calls` are had
and judged."""

import json
import subprocess
import sys

from benchmarks.outcome import Outcome
from benchmarks.process import ROOT, Installation

_SETUP = "import django; django.setup(); from benchmarks.plugin_calls import main; main()"


def costs(installation: Installation, calls: int) -> Outcome:
    """Milliseconds that a plugin adds to a function, in one run with the function itself, and a
    plugin's memory."""
    command = [sys.executable, "-c", _SETUP, str(calls)]
    output = subprocess.run(
        command,
        cwd=ROOT,
        env=installation.environment(),
        stdout=subprocess.PIPE,
        timeout=300,
        check=True,
    ).stdout
    return Outcome({"added_ms": 1.5}, json.loads(output.splitlines()[-1]), details={"calls": calls})
