"""How soon a change counts in another process: how the figures of :mod:`benchmarks.changes` are had
and judged."""

import json
import subprocess
import sys

from benchmarks.outcome import Outcome
from benchmarks.process import ROOT, Installation

CHANGES = 100
_SETUP = "import django; django.setup(); from benchmarks.changes import main; main()"


def times(installation: Installation, changes: int) -> Outcome:
    """Milliseconds from the commit of a changed row until another process counts it, on a
    PostgreSQL of its own."""
    from tests.services import PostgresServer  # of its own requirements, which others do not need

    command = [sys.executable, "-c", _SETUP, str(changes)]
    with PostgresServer() as postgres:
        environment = installation.environment() | {"DATABASE_URL": postgres.new_database()}
        output = subprocess.run(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, timeout=300, check=True
        ).stdout
    figures = json.loads(output.splitlines()[-1])
    return Outcome({"worst_ms": 50}, figures, details={"changes": changes})
