"""``python -m benchmarks.same_day [--beside COMMIT]``: the same day of 1,000 messages, played by
this code and by that of another commit; prints where requests to the model or actions to the chats
differ, and ends with 1 where they do.

Echoes, approval codes, times and ports are left out of the comparison; nothing else is.
"""

import argparse
import contextlib
import difflib
import hashlib
import itertools
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from benchmarks.day_play import DayError, Streams, play
from benchmarks.process import ROOT

SHOWN, AROUND = 30, 120


@contextlib.contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """The code of ``commit`` in a folder of its own, removed at the end."""
    with tempfile.TemporaryDirectory(prefix="frost-beside-") as folder:
        path = Path(folder) / "code"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(path), commit], check=True)
        try:
            yield path
        finally:
            subprocess.run([*git, "remove", "--force", str(path)], check=True)


def describe(name: str, streams: Streams) -> None:
    lines = [f"{name} {line}" for name, lines in streams.items() for line in lines]
    asked = sum(line.startswith("model ") for line in lines)
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
    print(f"{name}: {asked} requests to the model, {len(lines) - asked} actions to chats, {digest}")


def differences(before: Streams, after: Streams) -> Iterator[str]:
    """Each place where ``after`` is not ``before``, in words."""
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name, []), after.get(name, [])
        matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
        for kind, a, b, c, d in matcher.get_opcodes():
            if kind == "equal":
                continue
            for pair in itertools.zip_longest(old[a:b], new[c:d]):
                yield f"{name}, {a + 1}:\n{_beside(*pair)}"


def _beside(old: str | None, new: str | None) -> str:
    if old is None or new is None:
        return f"  {'-' if new is None else '+'} {(old or new or '')[-600:]}"
    at = next(
        (at for at, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]),
        min(len(old), len(new)),
    )
    start = max(at - AROUND, 0)
    return f"  - {old[start : at + AROUND]}\n  + {new[start : at + AROUND]}"


def keep(streams: Streams, path: Path) -> None:
    lines = (f"{name}\t{line}\n" for name, lines in streams.items() for line in lines)
    path.write_text("".join(lines), encoding="utf-8")


def parse() -> argparse.Namespace:
    options = argparse.ArgumentParser(prog="python -m benchmarks.same_day", description=__doc__)
    options.add_argument("--beside", metavar="COMMIT", help="the commit to compare with")
    options.add_argument("--seed", type=int, default=24, help="another day")
    options.add_argument("--keep", type=Path, metavar="FOLDER", help="write down what was heard")
    return options.parse_args()


def main() -> int:
    chosen = parse()
    with contextlib.ExitStack() as stack:
        roots = {"this code": ROOT}
        if chosen.beside:
            roots[chosen.beside] = stack.enter_context(checked_out(chosen.beside))
        pool = stack.enter_context(ProcessPoolExecutor(len(roots), get_context("spawn")))
        days = {name: pool.submit(play, root, chosen.seed) for name, root in roots.items()}
        try:
            played = {name: day.result() for name, day in days.items()}
        except DayError as error:
            print(error)
            return 2
    for number, (name, streams) in enumerate(played.items()):
        describe(name, streams)
        if chosen.keep:
            chosen.keep.mkdir(parents=True, exist_ok=True)
            keep(streams, chosen.keep / f"{('this', 'beside')[number]}.txt")
    if not chosen.beside:
        return 0
    found = list(differences(played[chosen.beside], played["this code"]))
    print("\n".join([*found[:SHOWN], f"{len(found)} differences" if found else "no differences"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
