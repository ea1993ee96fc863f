"""``python -m chaos [--short | --only NAME …]``: one JSON line for each scenario on stdout, progress on stderr."""

import argparse
import asyncio
import json
import shutil
import signal
import sys
import time
from dataclasses import replace

from chaos.case import KINDS
from chaos.mutants import MUTANTS
from chaos.play import ERRORS, Options, Outcome, play
from chaos.reminders import SHAPES, play_all
from chaos.scenarios import SCENARIOS, SHORT, Scenario

ALL = SCENARIOS | SHORT
#: Reminders, and kills meanwhile: with every change, and in a whole run.
SHORT_REMINDERS, REMINDERS = (100, 3), (2_000, 50)


def parse(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m chaos", description="Faults on a server under load; see chaos/README.md."
    )
    parser.add_argument("--list", action="store_true", help="say what each scenario is, and end")
    parser.add_argument(
        "--short", action="store_true", help="a little of everything, for every change"
    )
    parser.add_argument(
        "--mutations",
        nargs="*",
        metavar="NAME",
        choices=list(MUTANTS),
        help="break the server on purpose in each known way, or in these: each is to be seen",
    )
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", choices=list(ALL), help="these instead of all"
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="the same seed makes the same load and the same faults"
    )
    parser.add_argument(
        "--reminders",
        nargs=2,
        type=int,
        metavar=("COUNT", "KILLS"),
        help="so many reminders that fall due over so many kills, and nothing else",
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument(
        "--ends",
        type=int,
        metavar="N",
        help="how many faults, such as ends of processes, happen in each scenario",
    )
    length.add_argument(
        "--minutes", type=float, metavar="M", help="for how long faults happen in each scenario"
    )
    return parser.parse_args(words)


def chosen(options: argparse.Namespace) -> dict[str, Scenario]:
    if options.only:
        return {name: ALL[name] for name in options.only}
    return SHORT if options.short else SCENARIOS


async def run_mutant(name: str, options: Options) -> bool:
    """Whether a server that is broken on purpose is found out."""
    mutant = MUTANTS[name]
    sys.stderr.write(f"{name}: {mutant.about}\n")
    outcome = await run(mutant.scenario, replace(options, mutant=name))
    found = [f"{outcome.line[kind]} {kind}" for kind in KINDS if outcome.line.get(kind)]
    is_seen = bool(found)  # an error is no verdict
    said = ", ".join(found) or outcome.line.get("error", "")[:120]
    sys.stderr.write(f"{name:22} {'seen' if is_seen else 'NOT SEEN'}: {said}\n")
    if "kept" in outcome.line:
        shutil.rmtree(outcome.line["kept"], ignore_errors=True)
    return is_seen


async def run(name: str, options: Options) -> Outcome:
    sys.stderr.write(f"{name} ...\n")
    try:
        outcome = await play(name, ALL[name], options)
    except ERRORS as error:  # the world could not be built
        outcome = Outcome(
            {
                "scenario": name,
                "ok": False,
                "faults": 0,
                "error": f"{type(error).__name__}: {error}",
            },
            False,
        )
    print(json.dumps(outcome.line, ensure_ascii=False), flush=True)
    return outcome


def summary(outcomes: list[Outcome], seconds: float) -> str:
    """One line for each scenario with what was found, and one for all."""
    lines = []
    for outcome in outcomes:
        line = outcome.line
        found = ", ".join(f"{line[kind]} {kind}" for kind in KINDS if line.get(kind))
        lines.append(
            f"{line['scenario']:16} {line['faults']:4} faults  {found or line.get('error', 'clean')[:200]}"
        )
    failed = sum(not outcome.is_clean for outcome in outcomes)
    kept = [f"kept: {outcome.line['kept']}" for outcome in outcomes if "kept" in outcome.line]
    end = (
        f"{failed} of {len(outcomes)} scenarios failed"
        if failed
        else f"all {len(outcomes)} scenarios are clean"
    )
    return "\n".join([*lines, *kept, f"{end} after {seconds:.0f} s"])


def main() -> int:
    words = parse()
    if words.list:
        for name, scenario in ALL.items():
            print(f"{name:17} {scenario.about}")
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the servers are ended too
    began = time.monotonic()
    options = Options(words.seed, words.ends, words.minutes)
    if words.mutations is not None:
        names = words.mutations or list(MUTANTS)
        seen = [asyncio.run(run_mutant(name, options)) for name in names]
        sys.stderr.write(f"{sum(seen)} of {len(seen)} mutants were seen\n")
        return 0 if all(seen) else 1
    if words.reminders:
        count, kills = words.reminders
        return 0 if asyncio.run(play_all(list(SHAPES), count, kills, words.seed)) else 1
    shapes = [] if words.only else ["reminders"] if words.short else list(SHAPES)
    often = SHORT_REMINDERS if words.short else REMINDERS
    is_told = asyncio.run(play_all(shapes, *often, words.seed))
    outcomes = [asyncio.run(run(name, options)) for name in chosen(words)]
    sys.stderr.write(summary(outcomes, time.monotonic() - began) + "\n")
    return 0 if is_told and all(outcome.is_clean for outcome in outcomes) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
