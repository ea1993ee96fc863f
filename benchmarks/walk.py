"""``python -m benchmarks.walk [--beside COMMIT] [--list]``: what one plain message of a group takes on
a running server with SQLite: files of the project that are entered, calls of its functions, SQL
statements, commits, and hops to other threads.

The server's threads are profiled by ``sys.setprofile`` from its start on; counted is what happens
between a message and half a second after its answer, and what each of some messages has taken is
printed, so that what the server does at its own times beside some of them is left out. ``calls``
are calls of functions from one place, and of coroutines when they are begun; comprehensions and
generators that go on count for nothing.
"""

import argparse
import asyncio
import contextlib
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import reduce
from pathlib import Path
from typing import Any

from benchmarks.process import (
    LIMITS,
    ROOT,
    TOKEN,
    Installation,
    Server,
    fresh_folder,
)
from benchmarks.same_day import checked_out
from tests.fake_onebot import FakeOneBot
from tests.scripted_model import ScriptedModel, says

WARM, COUNTED, REST_SECONDS = 8, 8, 0.5
#: Rests differ by this much, so that what happens once a second falls beside some messages.
_DRIFT_SECONDS = 0.25
_COUNTER = Path(__file__).with_name("walk_counter.py")


class CountedInstallation(Installation):
    """Whose server counts between two signals."""

    def command(self, port: int) -> list[str]:
        python, *words = super().command(port)
        return [python, "-c", _COUNTER.read_text(encoding="utf-8"), str(self.root), *words]


def measure(root: Path) -> dict[str, Any]:
    """The counts of what each of the counted messages took."""
    with fresh_folder() as folder, ScriptedModel() as model:
        model.answer_with(lambda _request: says("好的"))
        port = int(model.url.rsplit(":", 1)[1].split("/")[0])
        usual = dict.fromkeys(LIMITS, "")
        installation = CountedInstallation(
            folder / "data", port, True, settings=usual, root=root, has_core=False
        )
        installation.folder.mkdir()
        with installation.serving() as server:
            counts = asyncio.run(_play(server, installation.folder / "walk.json"))
    return common(counts)


def common(counts: list[dict[str, Any]]) -> dict[str, Any]:
    """What all of ``counts`` have in common: a message that meets something that the server does at
    its own times is told by no sum, as each may meet another."""
    shared: dict[str, Any] = {
        title: reduce(Counter.__and__, (Counter(count[title]) for count in counts))
        for title in ("files", "functions", "sql")
    }
    sums = {"calls": shared["functions"].total(), "statements": shared["sql"].total()}
    least = {name: min(count[name] for count in counts) for name in ("commits", "hops")}
    return shared | sums | least


async def _play(server: Server, file: Path) -> list[dict[str, Any]]:
    url, counts = f"ws://127.0.0.1:{server.port}/ws/frostagent", []
    async with FakeOneBot(url, token=TOKEN) as client:
        for number in range(WARM + COUNTED):
            await asyncio.sleep(REST_SECONDS + number % 4 * _DRIFT_SECONDS)
            server.child.send_signal(signal.SIGUSR1)
            await asyncio.sleep(0.05)
            await client.say_group(30001, 20002 + number % 2, f"第 {number} 句话")
            await client.next_action()
            await asyncio.sleep(REST_SECONDS)
            server.child.send_signal(signal.SIGUSR2)
            counts.append(await asyncio.to_thread(_written, file))
    return counts[WARM:]


def _written(file: Path) -> dict[str, Any]:
    end = time.monotonic() + 10
    while not file.exists():
        if time.monotonic() > end:
            raise TimeoutError("the server wrote no counts")
        time.sleep(0.02)
    count = dict(json.loads(file.read_text(encoding="utf-8")))
    file.unlink()
    return count


def show(name: str, count: dict[str, Any], *, is_listed: bool) -> None:
    print(
        f"{name}: {len(count['files'])} files, {count['calls']} calls, "
        f"{count['statements']} statements, {count['commits']} commits, {count['hops']} hops"
    )
    if is_listed:
        for title in ("files", "functions", "sql"):
            print(f"\n{title}")
            for words, times in Counter(count[title]).most_common():
                print(f"{times:6} {words}")


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m benchmarks.walk", description=__doc__)
    options.add_argument("--beside", metavar="COMMIT", help="count another commit too")
    options.add_argument("--list", action="store_true", help="say which they are")
    chosen = options.parse_args()
    with contextlib.ExitStack() as stack:
        if chosen.beside:
            root = stack.enter_context(checked_out(chosen.beside))
            show(chosen.beside, measure(root), is_listed=chosen.list)
        show("this code", measure(ROOT), is_listed=chosen.list)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
