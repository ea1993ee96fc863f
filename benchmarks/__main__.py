"""``python -m benchmarks [SCENARIO ...]``: one JSON line per scenario on stdout, progress on
stderr."""

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks import fleet, machine, profiling
from benchmarks.process import ServerError
from benchmarks.scenarios import SCENARIOS, Options, play
from benchmarks.speedups import run

SCENARIO_SECONDS = 2400


def parse(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="The load benchmark; see benchmarks/README.md."
    )
    parser.add_argument(
        "scenario", nargs="*", choices=[[], *SCENARIOS], help="all of them where none is named"
    )
    parser.add_argument("--list", action="store_true", help="say what each scenario is, and end")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a tenth of the size: whether it works, not how fast it is",
    )
    parser.add_argument(
        "--daphne",
        action="store_true",
        help="start the server with daphne instead of manage.py runserver",
    )
    parser.add_argument(
        "--processes",
        type=int,
        choices=range(2, fleet.MOST_COUNT + 1),
        metavar="N",
        help=f"play the scenario processes with so many servers, 2 to {fleet.MOST_COUNT}; where "
        "no scenario is named, that one alone",
    )
    parser.add_argument(
        "--profile",
        metavar="SCENARIO",
        choices=SCENARIOS,
        help="run one with every thread profiled",
    )
    return parser.parse_args(words)


def names(chosen: argparse.Namespace) -> Iterable[str]:
    """The scenarios to play, in order."""
    if chosen.profile:
        return [chosen.profile]
    return chosen.scenario or (["processes"] if chosen.processes else SCENARIOS)


def measure(name: str, options: Options) -> tuple[dict[str, Any], bool]:
    """The line to print, and whether the answers were right."""
    head = {"scenario": name, "quick": options.scale < 1, "machine": machine.describe()}
    started = time.monotonic()
    sys.stderr.write(f"{name} ...\n")
    try:
        outcome, model = run(play(SCENARIOS[name], options, SCENARIO_SECONDS))
    except (ServerError, OSError, TimeoutError) as error:
        return head | {
            "ok": False,
            "correct": False,
            "error": f"{type(error).__name__}: {error}",
        }, False
    seconds = round(time.monotonic() - started, 1)
    sys.stderr.write(
        f"{name} {'ok' if outcome.is_met else 'NOT MET' if outcome.is_correct else 'WRONG'} after {seconds} s\n"
    )
    return head | outcome.line() | {"model": model, "seconds": seconds}, outcome.is_correct


def main() -> int:
    chosen = parse()
    if chosen.list:
        for name, scenario in SCENARIOS.items():
            print(f"{name:13} {(scenario.__doc__ or '').splitlines()[0]}")
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the server is ended too
    os.sched_setaffinity(0, machine.cores()[1])
    profile = (
        Path(tempfile.mkdtemp(prefix="frost-profile-")) / chosen.profile if chosen.profile else None
    )
    count = chosen.processes or fleet.MOST_COUNT
    options = Options(0.1 if chosen.quick else 1, chosen.daphne, profile, count)
    all_right = True
    for name in names(chosen):
        line, is_right = measure(name, options)
        all_right &= is_right
        print(json.dumps(line, ensure_ascii=False), flush=True)
    if profile:
        profiling.report(profile)
    return 0 if all_right else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
