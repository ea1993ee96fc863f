"""Runs a program with every thread profiled: ``python -m benchmarks.profiling OUT [-m MODULE | FILE] [ARGS]``.

``cProfile`` alone sees the main thread, while the database work of an ASGI server
is done in another. Each thread leaves ``OUT.THREAD.prof``; times are CPU seconds
of that thread, so that waiting is not counted.
"""

import contextlib
import cProfile
import pstats
import runpy
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

_profiles: dict[str, cProfile.Profile] = {}
_run_thread = threading.Thread.run


@contextlib.contextmanager
def _profiled(name: str) -> Iterator[None]:
    profile = cProfile.Profile(time.thread_time)
    # Newer Pythons allow one profiler at a time: then only the first thread is seen.
    with contextlib.suppress(ValueError):
        profile.enable()
        _profiles[name] = profile
    try:
        yield
    finally:
        profile.disable()


def _run_profiled(thread: threading.Thread) -> None:
    with _profiled(f"{thread.name}-{thread.ident}"):
        _run_thread(thread)


def main() -> None:
    out, *sys.argv = sys.argv[1:]
    threading.Thread.run = _run_profiled
    try:
        with _profiled("main"):
            if sys.argv[0] == "-m":
                del sys.argv[0]
                runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
            else:
                sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
                runpy.run_path(sys.argv[0], run_name="__main__")
    finally:
        for name, profile in _profiles.items():
            profile.dump_stats(f"{out}.{name}.prof")


def report(out: Path, lines: int = 25) -> None:
    """The costliest functions of each thread that took a tenth of a second or more, on stderr."""
    for path in sorted(out.parent.glob(f"{out.name}.*.prof")):
        stats = pstats.Stats(str(path), stream=sys.stderr)
        if stats.total_tt >= 0.1:
            sys.stderr.write(f"\n{path}\n")
            stats.strip_dirs().sort_stats("tottime").print_stats(lines)


if __name__ == "__main__":
    main()
