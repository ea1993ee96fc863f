"""Runs a program with every thread profiled: ``python -m benchmarks.profiling OUT [-m MODULE | FILE] [ARGS]``.

``cProfile`` alone sees the main thread, while the database work of an ASGI server
is done in others. Threads whose names differ in numbers alone are added up, into
``OUT.NAME.prof``. Times are CPU seconds of the thread: waiting is not counted.
"""

import atexit
import contextlib
import cProfile
import pstats
import re
import runpy
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

_profiles: dict[str, list[cProfile.Profile]] = {}
_run_thread = threading.Thread.run


@contextlib.contextmanager
def _profiled(name: str) -> Iterator[None]:
    profile = cProfile.Profile(time.thread_time)
    # Newer Pythons allow one profiler at a time: then only the first thread is seen.
    with contextlib.suppress(ValueError):
        profile.enable()
        _profiles.setdefault(name, []).append(profile)
    try:
        yield
    finally:
        profile.disable()


def _run_profiled(thread: threading.Thread) -> None:
    with _profiled(re.sub(r"[^A-Za-z]*\d.*", "", thread.name) or "thread"):
        _run_thread(thread)


def _dump(out: str) -> None:
    for name, profiles in _profiles.items():
        pstats.Stats(*profiles).dump_stats(f"{out}.{name}.prof")


def main() -> None:
    out, *sys.argv = sys.argv[1:]
    threading.Thread.run = _run_profiled
    # At exit, that is after the threads of pools have ended: what a thread is still doing cannot be
    # timed from another.
    atexit.register(_dump, out)
    with _profiled("main"):
        if sys.argv[0] == "-m":
            del sys.argv[0]
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
            runpy.run_path(sys.argv[0], run_name="__main__")


def report(out: Path, lines: int = 25) -> None:
    """The costliest functions of each group of threads that took a tenth of a second or more, on
    stderr."""
    for path in sorted(out.parent.glob(f"{out.name}.*.prof")):
        stats = pstats.Stats(str(path), stream=sys.stderr)
        if stats.total_tt >= 0.1:
            sys.stderr.write(f"\n{path}\n")
            stats.strip_dirs().sort_stats("tottime").print_stats(lines)


if __name__ == "__main__":
    main()
