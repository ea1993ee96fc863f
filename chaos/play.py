"""Playing one scenario: the world is built, the load runs, faults happen, everything comes to rest,
and is judged."""

import asyncio
import contextlib
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psycopg

from chaos import record
from chaos.case import Evidence, Told, Verdict
from chaos.client import Account, Telling
from chaos.hands import Operator
from chaos.judge import judge
from chaos.load import Crowd
from chaos.model import DEAR_TOKENS, MAY_SPEND
from chaos.scenarios import Scenario
from chaos.world import World, build

#: Load before the first fault and after the last, in seconds.
WARM_SECONDS = 2.0
#: What ends a scenario before it can be judged: a server that does not start or end, a service that
#: does not come back.
ERRORS = (AssertionError, OSError, TimeoutError, psycopg.Error, subprocess.SubprocessError)


@dataclass(frozen=True, slots=True)
class Options:
    """``count`` of faults, or ``minutes`` of them; without either each scenario's own count."""

    seed: int = 1
    count: int | None = None
    minutes: float | None = None
    mutant: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    line: dict[str, Any]
    is_clean: bool


async def play(name: str, scenario: Scenario, options: Options) -> Outcome:
    """What came of it. What was found faulty is kept in a folder that the line names."""
    began = time.monotonic()
    seed = f"{options.seed}/{name}"
    line: dict[str, Any] = {"scenario": name, "seed": options.seed, "ok": False, "faults": 0}
    async with build(scenario.shape, seed, options.mutant) as world:
        try:
            line["faults"] = await go_through(world, scenario, options, seed)
            line["rested"] = await world.rested(scenario.settle)
            verdict = await conclude(world, await gather(world, excuses=scenario.excuses))
            line |= {"ok": verdict.is_clean, **report(world, verdict)}
        except ERRORS as error:
            line["error"] = f"{type(error).__name__}: {error}"
        line["seconds"] = round(time.monotonic() - began, 1)
        if not line["ok"]:
            line["kept"] = str(await asyncio.to_thread(keep, world, name, line))
    return Outcome(line, line["ok"])


async def go_through(world: World, scenario: Scenario, options: Options, seed: str) -> int:
    """The load and the faults, until everything is up again and nobody says anything more; how many
    faults there were."""
    crowd = Crowd(seed, scenario.load, world.accounts)
    operator = Operator(world.servers, seed)
    try:
        await asyncio.sleep(WARM_SECONDS)
        count = await disturb(world, scenario, options, seed)
        await asyncio.sleep(WARM_SECONDS)
    finally:
        await crowd.stop()
        await operator.stop()
        world.hands, world.taken = operator.written, operator.taken
    await world.mend()
    return count


async def disturb(world: World, scenario: Scenario, options: Options, seed: str) -> int:
    """Have the faults happen by turns; how many did. What the n-th does hangs on the seed alone."""
    count = options.count or scenario.count
    end = time.monotonic() + options.minutes * 60 if options.minutes else None
    number = 0
    while number < count if end is None else time.monotonic() < end:
        fault = scenario.faults[number % len(scenario.faults)]
        chance = random.Random(f"{seed}/fault/{number}")
        await asyncio.sleep(chance.uniform(*scenario.pauses))
        sys.stderr.write(f"  {number + 1}: {fault.about}\n")
        await fault.strike(world, chance)
        number += 1
    return number


# --- What is judged, and what is told of it ------------------------------------------------


async def gather(world: World, *, excuses: bool) -> Evidence:
    tellings: dict[tuple[str, str], list[Telling]] = defaultdict(list)
    for account in world.accounts:
        for one in account.tellings:
            tellings[one.account, str(one.mark)].append(one)
    told = [
        Told(ones[0].mark, account, all(map(may_be_missing, ones)))
        for (account, _), ones in tellings.items()
    ]
    return Evidence(
        told=told,
        heard=[heard for account in world.accounts for heard in account.heard],
        record=await world.read(),
        hits=world.model.hits,
        crossings=world.model.crossings,
        wire_violations=[
            fault for account in world.accounts for fault in _wire_violations(account)
        ],
        hands=world.hands,
        taken=world.taken,
        spent=world.model.spent,
        may_spend=MAY_SPEND + (len(world.servers) - 1) * DEAR_TOKENS,
        most_read=world.model.troubles.most_read,
        excuses=excuses,
    )


def may_be_missing(telling: Telling) -> bool:
    """Whether what was written to a socket may never have been read: it was cut, or the server's
    life ended."""
    socket = telling.socket
    return (
        not telling.event
        or socket.end == "cut"
        or (socket.end == "broke" and socket.life != socket.server.life)
    )


def _wire_violations(account: Account) -> list[str]:
    return account.violations + (
        account.socket.violations if account.socket and account.socket.end == "open" else []
    )


async def conclude(world: World, evidence: Evidence) -> Verdict:
    """The judge's verdict, and what was seen of the processes themselves."""
    verdict = judge(evidence)
    for server in world.servers:
        if (status := await world.ready(server)) != 200:
            verdict.fault("not_ready", f"/ready is {status} at port {server.port}")
    for line in refused_writes(world):
        verdict.fault("refused", line)
    for kind, words in world.complaints:
        verdict.fault(kind, words)
    return verdict


def refused_writes(world: World) -> list[str]:
    """Writes that the database would not take: nothing asks for such where all is well."""
    lines = [line for server in world.servers for line in server.log.splitlines()]
    return [line for line in lines if "A write was refused" in line]


def report(world: World, verdict: Verdict) -> dict[str, Any]:
    logs = [server.log for server in world.servers]
    figures: dict[str, Any] = dict(verdict.figures)
    figures |= {
        "model_calls": world.model.calls,
        "second_calls": world.model.second_calls,
        "ends": world.ends,
        "unknown": dict(verdict.unknown),
    }
    figures["tracebacks"] = sum(log.count("Traceback (most recent call last)") for log in logs)
    figures["critical"] = sum(log.count(" CRITICAL ") for log in logs)
    return dict(verdict.counts) | {
        "figures": figures,
        "notes": sorted(set(world.notes)),
        "samples": dict(verdict.samples),
    }


def keep(world: World, name: str, line: dict[str, Any]) -> Path:
    """A folder with the logs, the data folders, the record and all that was told and heard."""
    folder = Path(tempfile.mkdtemp(prefix=f"frost-chaos-{name}-"))
    for number, server in enumerate(world.servers):
        shutil.copytree(
            server.folder, folder / f"server-{number}", ignore=shutil.ignore_patterns("static")
        )
    _write(folder / "verdict.json", line)
    _write(
        folder / "heard.json",
        [asdict(heard) for account in world.accounts for heard in account.heard],
    )
    _write(
        folder / "told.json",
        [_telling(one) for account in world.accounts for one in account.tellings],
    )
    with contextlib.suppress(
        psycopg.Error
    ):  # a database that is not there is why the folder is kept
        _write(folder / "record.json", record.read(world.servers[0]).dump())
    return folder


def _telling(one: Telling) -> dict[str, Any]:
    socket = {"port": one.socket.server.port, "life": one.socket.life, "end": one.socket.end}
    return {"mark": str(one.mark), "account": one.account, "at": one.at, "socket": socket}


def _write(file: Path, content: object) -> None:
    file.write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")
