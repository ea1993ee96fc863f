"""How soon another process counts what one has committed, on PostgreSQL. Started by
:mod:`benchmarks.change_times`."""

import asyncio
import json
import random
import statistics
import subprocess
import sys
import time

from django.core.management import call_command
from django.db import transaction

from agent.models import Manners
from onebot.gateway.gateway import Gateway

START_SECONDS, MOST_SECONDS = 60.0, 5.0
PAUSE_SECONDS = 0.05, 0.4
_OTHER = "import django; django.setup(); from benchmarks.changes import follow; follow()"


def follow() -> None:
    """Live as a server does, and say of each change when it counts."""
    asyncio.run(_serve())


async def _serve() -> None:
    gateway = Gateway()
    live = gateway.runtime.record.live
    live.subscribe(lambda _, new: _say(new.manners.rows), "manners")
    gateway.ensure_started()
    await asyncio.Event().wait()


def _say(rows: tuple[Manners, ...]) -> None:
    counted_at = time.monotonic()  # one clock for all processes of a machine
    print(json.dumps([rows[0].name if rows else "", counted_at]), flush=True)


def main() -> None:
    """The milliseconds from the commits of so many changes, as JSON."""
    call_command("migrate", verbosity=0)
    count = int(sys.argv[1])
    with subprocess.Popen([sys.executable, "-c", _OTHER], stdout=subprocess.PIPE) as other:
        try:
            times = [1000 * seconds for seconds in _change(other, count)]
        finally:
            other.kill()
    print(json.dumps({"median_ms": statistics.median(times), "worst_ms": max(times)}))


def _change(other: "subprocess.Popen[bytes]", count: int) -> list[float]:
    lines = other.stdout
    assert lines is not None
    lines.readline()  # it has read the rows for the first time
    time.sleep(2)  # and listens
    row, found = Manners(name=""), []
    for number in range(count):
        time.sleep(random.uniform(*PAUSE_SECONDS))
        row.name = f"change {number}"
        with transaction.atomic():
            row.save()
            committed_at = time.monotonic()  # the commit itself is counted
        name = ""
        while name != row.name:
            name, counted_at = json.loads(lines.readline())
        found.append(counted_at - committed_at)
    return found
