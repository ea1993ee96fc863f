"""Tools of MCP servers that a message does not use: how many there are, and how the figures of
:mod:`benchmarks.outside_tools` are had."""

import json
import subprocess
import sys

from benchmarks.process import ROOT, Installation

SERVERS, TOOLS_EACH = 10, 20
TOOLS = SERVERS * TOOLS_EACH
_SETUP = "import django; django.setup(); from benchmarks.outside_tools import main; main()"


def settings() -> dict[str, str]:
    """What an installation needs that may start the servers."""
    return {"MCP_ALLOWED_COMMANDS": sys.executable}


def listing_costs(installation: Installation) -> dict[str, float]:
    """Milliseconds of CPU for what a step of a run is offered, with the tools and without, in a
    process of its own."""
    command = [sys.executable, "-c", _SETUP]
    environment = installation.environment()
    output = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, timeout=120, check=True
    ).stdout
    return dict(json.loads(output.splitlines()[-1]))
