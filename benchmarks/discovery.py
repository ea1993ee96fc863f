"""What deferred tools cost: how the figures of :mod:`benchmarks.many_tools` are had and judged."""

import json
import subprocess
import sys

from benchmarks.outcome import Outcome
from benchmarks.process import ROOT, Installation

TOOLS = 500
_SETUP = "import django; django.setup(); from benchmarks.many_tools import main; main()"


def costs(installation: Installation, tools: int = TOOLS) -> Outcome:
    """Milliseconds of CPU of one search, and of one step of a run, where so many tools are
    deferred."""
    command = [sys.executable, "-c", _SETUP, str(tools)]
    output = subprocess.run(
        command,
        cwd=ROOT,
        env=installation.environment(),
        stdout=subprocess.PIPE,
        timeout=120,
        check=True,
    ).stdout
    return Outcome({"search_ms": 5}, json.loads(output), details={"tools": tools})
