"""What a call of an MCP server's tool costs: how the figures of :mod:`benchmarks.mcp_calls` are had
and judged."""

import json
import subprocess
import sys

from benchmarks.outcome import Outcome
from benchmarks.process import ROOT, Installation

_SETUP = "import django; django.setup(); from benchmarks.mcp_calls import main; main()"


def costs(installation: Installation, calls: int) -> Outcome:
    """Milliseconds that a call over stdio takes, by the library alone and through our registry, in
    one run."""
    command = [sys.executable, "-c", _SETUP, str(calls)]
    environment = installation.environment() | {"MCP_ALLOWED_COMMANDS": sys.executable}
    output = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, timeout=300, check=True
    ).stdout
    return Outcome({"added_ms": 3}, json.loads(output.splitlines()[-1]), details={"calls": calls})
