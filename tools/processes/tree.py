"""The processes below a process: found, and killed all together (Linux: elsewhere none is seen)."""

import contextlib
import os
import signal
from pathlib import Path

ROUNDS = 50
"""How often it is looked for processes that were started since, before those that were found are
killed."""
_KERNEL_LISTS_CHILDREN = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists()


def find_descendants(process: int) -> list[int]:
    """The ids of all processes below ``process``, as far as they are seen at one look."""
    children = _children if _KERNEL_LISTS_CHILDREN else _parents().get
    found, waiting = list[int](), [process]
    while waiting:
        below = children(waiting.pop()) or []
        found += below
        waiting += below
    return found


def kill_descendants(process: int) -> None:
    """End every descendant of ``process`` at once. They are stopped first: who is stopped starts no
    others."""
    stopped = set[int]()
    for _ in range(ROUNDS):
        fresh = set(find_descendants(process)) - stopped
        if not fresh:
            break
        _send(fresh, signal.SIGSTOP)
        stopped |= fresh
    _send(stopped, signal.SIGKILL)


def kill_process_group(leader: int) -> None:
    """End what is left of ``leader``, of what it started, and of its group."""
    kill_descendants(leader)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _send(processes: set[int], number: int) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)


def _children(process: int) -> list[int]:
    found = list[int]()
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{process}/task"):
            found += map(int, Path(f"/proc/{process}/task/{thread}/children").read_text().split())
    return found


def _parents() -> dict[int, list[int]]:
    """Who has which children, from a look at every process of the machine."""
    found: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            parent = stat.read_text(errors="replace").rpartition(")")[2].split()[1]
            found.setdefault(int(parent), []).append(int(stat.parent.name))
    return found
