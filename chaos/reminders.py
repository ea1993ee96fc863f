"""Reminders that fall due while servers are killed: none is lost, none said twice, none in another
chat.

``python -m chaos.reminders --count 10000 --kills 200`` is more of what ``make chaos
ARGS="--reminders 2000 50"`` does: on one process with SQLite, then on three with PostgreSQL and
Redis.
"""

import argparse
import asyncio
import json
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from chaos.faults import KILL
from chaos.world import ACCOUNTS, FIRST_ACCOUNT, Shape, World, build
from tests.environment import PROJECT

#: Chats of each account, half of them groups.
CHATS = 20
#: Seconds in which reminders fall due, for each kill; and in which something has to be said.
PER_KILL, PATIENCE = 4.0, 90.0
_FILL = "import django; django.setup(); from chaos.reminders import fill; fill({}, {})"
_MARK = re.compile(r"\[\[r(\d+)\]\]")
_PACE = {"CHAT_ANSWERS_PER_MINUTE": "0"}
SHAPES = {
    "reminders": Shape(settings=_PACE, is_brisk=True),
    "reminders-cluster": Shape(processes=3, is_brisk=True, settings=_PACE),
}


def fill(count: int, seconds: float) -> None:
    """Put ``count`` reminders on record that fall due within ``seconds``. Runs in a process with
    Django set up."""
    from django.utils import timezone

    from agent.models import ChatSession, Reminder

    now, chance = timezone.now(), random.Random(count)
    chats = [
        ChatSession.objects.create(
            account=str(FIRST_ACCOUNT + number),
            kind=("group", "private")[at % 2],
            peer_id=str(70_000_000 + 100 * number + at),
            last_message_at=now,
        )
        for number in range(ACCOUNTS)
        for at in range(CHATS)
    ]
    Reminder.objects.bulk_create(
        Reminder(
            session=chats[number % len(chats)],
            text=f"[[r{number}]]",
            set_by="20001",
            due_at=now + timedelta(seconds=5 + chance.uniform(0, seconds)),
        )
        for number in range(count)
    )


async def play_reminders(name: str, count: int, kills: int, seed: int) -> dict[str, Any]:
    """What came of ``count`` reminders over ``kills``: the line to print."""
    began, line = time.monotonic(), {"scenario": name, "seed": seed, "faults": kills}
    async with build(SHAPES[name], f"{seed}/{name}") as world:
        server = world.servers[0]
        command = [sys.executable, "-c", _FILL.format(count, PER_KILL * kills)]
        await asyncio.to_thread(
            subprocess.run, command, cwd=PROJECT, env=server._environment(), check=True
        )
        for number in range(kills):
            chance = random.Random(f"{seed}/{name}/{number}")
            await asyncio.sleep(chance.uniform(0.2, 2.0))
            await KILL.strike(world, chance)
        await world.mend()
        line["rested"] = await _rest(world)
        line |= await asyncio.to_thread(_judge, world, count)
    line["seconds"] = round(time.monotonic() - began, 1)
    line["ok"] = line["rested"] and not (line["lost"] or line["doubled"] or line["misrouted"])
    return line


async def _rest(world: World) -> bool:
    """Whether every reminder has come to an end; False once nothing was said for long."""
    end, least = time.monotonic() + PATIENCE, -1
    query = "SELECT count(*) AS count FROM agent_reminder WHERE state = 'waiting'"
    while left := (await asyncio.to_thread(world.servers[0].rows, query))[0]["count"]:
        if left != least:
            end, least = time.monotonic() + PATIENCE, left
        if time.monotonic() > end:
            return False
        await asyncio.sleep(1.0)
    return True


def _judge(world: World, count: int) -> dict[str, Any]:
    """By what clients heard; what was cut off as it was sent is of unknown outcome on record."""
    rows = world.servers[0].rows(
        "SELECT r.text, r.state, s.account, s.kind, s.peer_id FROM agent_reminder r "
        "JOIN agent_chatsession s ON s.id = r.session_id"
    )
    chats = {row["text"]: (row["account"], f"{row['kind']}:{row['peer_id']}") for row in rows}
    doubtful = world.servers[0].rows(
        "SELECT text, detail FROM agent_message WHERE direction = 'out' AND state = 'unknown'"
    )
    unknown = {found[0] for row in doubtful if (found := _MARK.search(row["text"]))}
    heard = [
        (found[0], (one.account, one.chat))
        for account in world.accounts
        for one in account.heard
        if (found := _MARK.search(one.text))
    ]
    times = Counter(mark for mark, _chat in heard)
    missing = [mark for mark in chats if mark not in times]
    return {
        "reminders": count,
        "heard": len(times),
        "lost": len([mark for mark in missing if mark not in unknown]),
        "unknown": len([mark for mark in missing if mark in unknown]),
        "reasons": dict(Counter(row["detail"] for row in doubtful)),
        "doubled": sum(number > 1 for number in times.values()),
        "misrouted": sum(chat != chats.get(mark) for mark, chat in heard),
        "states": dict(Counter(row["state"] for row in rows)),
    }


async def play_all(names: Sequence[str], count: int, kills: int, seed: int) -> bool:
    """Whether nothing was found; prints a line of JSON for each."""
    is_clean = True
    for name in names:
        sys.stderr.write(f"{name} ...\n")
        line = await play_reminders(name, count, kills, seed)
        print(json.dumps(line, ensure_ascii=False), flush=True)
        is_clean &= bool(line["ok"])
    return is_clean


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m chaos.reminders", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--only", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument("--seed", type=int, default=1)
    words = parser.parse_args()
    return 0 if asyncio.run(play_all(words.only, words.count, words.kills, words.seed)) else 1


if __name__ == "__main__":
    sys.exit(main())
