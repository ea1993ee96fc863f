"""The scenarios: how the system is set up, what it is asked, and what happens to it meanwhile."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from chaos import faults, marks
from chaos.faults import Fault
from chaos.load import Load
from chaos.world import Shape


@dataclass(frozen=True, slots=True)
class Scenario:
    """Faults of one kind or several, by turns, on one world.

    ``count``: how many happen where the caller does not say. ``pauses``: least and most seconds
    between two. ``settle``: seconds to come to rest after the last, with everything up.
    """

    about: str
    faults: Sequence[Fault]
    count: int
    pauses: tuple[float, float] = (0.5, 3.0)
    shape: Shape = field(default_factory=Shape)
    load: Load = field(default_factory=Load)
    settle: float = 60

    @property
    def excuses(self) -> bool:
        return any(fault.excuses for fault in self.faults)


_CLUSTER = Shape(processes=3, is_brisk=True)
_SLOW = Shape(processes=3, is_brisk=True, latency=(0.2, 3.0))
_STORIES = dict.fromkeys(marks.STORIES, 1.0)
_TROUBLED = Load(
    rate=5,
    stories=dict.fromkeys(marks.STORIES, 2.0)
    | {f"{name}_1": 0.6 for name in marks.PASSING}
    | {f"{name}_9": 0.2 for name in marks.PASSING}
    | {"hang_9": 0.2, "garbage_9": 0.4},
)
_ENDLESS = Load(rate=1, stories={"plain": 3.0, "endless_9": 1.0})

SCENARIOS: dict[str, Scenario] = {
    "kills": Scenario(
        "one process on SQLite: SIGKILL and SIGTERM at any moment",
        [faults.KILL, faults.KILL, faults.KILL, faults.TERMINATE],
        count=12,
    ),
    "named-points": Scenario(
        "one process on SQLite: it dies at the named points, one after the other",
        faults.NAMED_POINTS,
        count=len(faults.NAMED_POINTS),
    ),
    "disk-full": Scenario(
        "one process on SQLite: commits fail, for moments and for long",
        [faults.DISK_FULL_FOR_LONG, faults.DISK_FULL, faults.DISK_FULL],
        count=3,
        pauses=(4, 6),
        load=Load(rate=8, new_chats=0.5),
    ),
    "locked": Scenario(
        "one process on SQLite: the database is locked for some seconds", [faults.LOCKED], count=3
    ),
    "model": Scenario(
        "one process on SQLite: the model hangs, cuts, refuses, talks nonsense or says nothing",
        [faults.LOAD_ALONE],
        8,
        load=_TROUBLED,
    ),
    "second-endpoint": Scenario(
        "one process on SQLite: the first endpoint of the model fails, the second answers",
        [faults.ENDPOINT_DOWN],
        4,
        shape=Shape(has_second=True),
    ),
    "endless": Scenario(
        "one process on SQLite: answers of the model without an end",
        [faults.LOAD_ALONE],
        3,
        load=_ENDLESS,
    ),
    "dead-sockets": Scenario(
        "one process on SQLite: clients go deaf without closing, are cut, dial in again",
        [faults.DEAD_SOCKET, faults.DROP, faults.HOP],
        count=9,
        shape=Shape(is_brisk=True),
        settle=90,
    ),
    "hops": Scenario(
        "three processes: clients change from one to another",
        [faults.HOP],
        12,
        (1, 3),
        _CLUSTER,
        settle=90,
    ),
    "kill-one": Scenario(
        "three processes: one is killed and stays away, again and again",
        [faults.KILL_FOR_LONG],
        4,
        (1, 3),
        _CLUSTER,
        settle=90,
    ),
    "redis": Scenario(
        "three processes: Redis is down while clients hop",
        [faults.REDIS_DOWN],
        4,
        (2, 4),
        _CLUSTER,
        settle=90,
    ),
    "postgres-fast": Scenario(
        "three processes: PostgreSQL restarts in order", [faults.POSTGRES_FAST], 4, (1, 4), _CLUSTER
    ),
    "postgres-at-once": Scenario(
        "three processes: PostgreSQL crashes", [faults.POSTGRES_AT_ONCE], 4, (1, 4), _CLUSTER
    ),
    "postgres-down": Scenario(
        "three processes: PostgreSQL is down for a while",
        [faults.POSTGRES_DOWN],
        1,
        (1, 4),
        _CLUSTER,
    ),
    "commit-cut": Scenario(
        "three processes: the connection is cut at COMMIT",
        [faults.COMMIT_CUT],
        15,
        (0.5, 2),
        _CLUSTER,
        settle=60,
    ),
    "cluster": Scenario(
        "three processes: everything that can happen to them, by turns",
        [
            *(
                faults.KILL,
                faults.HOP,
                faults.REDIS_DOWN,
                faults.COMMIT_CUT,
                faults.KILL_FOR_LONG,
                faults.POSTGRES_FAST,
            ),
            *(
                faults.TERMINATE,
                faults.DROP,
                faults.SLEEP,
                faults.POSTGRES_AT_ONCE,
                faults.COMMIT_CUT,
                faults.POSTGRES_DOWN,
            ),
            *faults.NAMED_POINTS,
        ],
        count=17,
        pauses=(0.5, 3),
        shape=_CLUSTER,
        settle=90,
    ),
    "sleep": Scenario(
        "three processes: one sleeps past its lease and wakes",
        [faults.SLEEP],
        2,
        (2, 4),
        _SLOW,
        settle=90,
    ),
}

#: For every change: one world of each kind in which everything happens once that needs no long
#: wait.
SHORT: dict[str, Scenario] = {
    "short-single": Scenario(
        "one process on SQLite: a little of everything",
        [
            faults.KILL,
            faults.NAMED_POINTS[0],
            faults.DISK_FULL,
            faults.TERMINATE,
            faults.LOCKED,
            faults.ENDPOINT_DOWN,
        ],
        count=6,
        pauses=(0.5, 1.5),
        shape=Shape(is_brisk=True, has_second=True),
        load=Load(
            rate=6,
            stories=_STORIES | {f"{name}_1": 0.2 for name in marks.PASSING} | {"garbage_9": 0.2},
        ),
        settle=40,
    ),
    "short-cluster": Scenario(
        "three processes: a little of everything",
        [
            faults.HOP,
            faults.REDIS_DOWN,
            faults.COMMIT_CUT,
            faults.POSTGRES_FAST,
            faults.COMMIT_CUT,
            faults.KILL,
        ],
        count=6,
        pauses=(0.5, 1.5),
        shape=_CLUSTER,
        settle=40,
    ),
}
