"""What stands on record: rows of the database as plain values, and what of them has no end."""

from dataclasses import asdict, dataclass, field
from typing import Any

from chaos.process import ChaosServer

_MESSAGES = """
SELECT m.id, m.direction, m.state, m.reason, m.detail, m.text, m.echo, m.run_id, m.tool_call_id, m.claimed_by,
    m.merged_into_id,
    s.account, s.kind, s.peer_id
FROM agent_message m JOIN agent_chatsession s ON s.id = m.session_id ORDER BY m.id
"""
_RUNS = "SELECT id, message_id, state, error, claimed_by FROM agent_run ORDER BY id"
_CALLS = "SELECT id, run_id, tool_name, state, error, claimed_by FROM agent_toolcall ORDER BY id"
_SUMS = """
SELECT session_id AS chat, SUM(received) AS received, SUM(answered) AS answered,
    SUM(failed) AS failed, SUM(sent) AS sent, SUM(unsent) AS unsent, SUM(unknown) AS unknown
FROM agent_activitysum WHERE hour >= 0 GROUP BY session_id
"""
#: What the sums have to be, by the rows.
_COUNTS = """
SELECT session_id AS chat, SUM(CASE WHEN direction = 'in' THEN 1 ELSE 0 END) AS received,
    SUM(CASE WHEN direction = 'in' AND state = 'answered' THEN 1 ELSE 0 END) AS answered,
    SUM(CASE WHEN direction = 'in' AND state = 'failed' THEN 1 ELSE 0 END) AS failed,
    SUM(CASE WHEN direction = 'out' AND state = 'delivered' THEN 1 ELSE 0 END) AS sent,
    SUM(CASE WHEN direction = 'out' AND state = 'failed' THEN 1 ELSE 0 END) AS unsent,
    SUM(CASE WHEN direction = 'out' AND state = 'unknown' THEN 1 ELSE 0 END) AS unknown
FROM agent_message WHERE reason NOT IN ('later_result', 'own_message') GROUP BY session_id
"""
Sums = dict[int, dict[str, int]]
_PROCESSES = "SELECT id FROM agent_serverprocess"


@dataclass(frozen=True, slots=True)
class Message:
    id: int
    direction: str
    state: str
    text: str
    account: str
    chat: str
    reason: str = ""
    detail: str = ""
    echo: str = ""
    run: int | None = None
    call: int | None = None
    claimed_by: str = ""
    merged_into: int | None = None

    @property
    def is_unended(self) -> bool:
        return self.state in ("waiting", "running", "pending", "sent")


@dataclass(frozen=True, slots=True)
class Run:
    id: int
    message: int | None
    state: str
    error: str = ""
    claimed_by: str = ""

    @property
    def is_unended(self) -> bool:
        return self.state == "running"


@dataclass(frozen=True, slots=True)
class Call:
    id: int
    run: int
    tool: str
    state: str
    error: str = ""
    claimed_by: str = ""

    @property
    def is_unended(self) -> bool:
        return self.state in ("waiting", "running", "pending")


@dataclass(frozen=True, slots=True)
class Record:
    """All rows. ``processes``: the ids of those that are alive."""

    messages: list[Message] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    processes: frozenset[str] = frozenset()
    sums: Sums = field(default_factory=dict)
    counts: Sums = field(default_factory=dict)
    """What the program counted in each chat, and what its rows say."""

    def wrong_sums(self) -> list[str]:
        """Every chat whose sums are not those of its rows."""
        return [
            f"chat {chat} has the sums {self.sums.get(chat)}, and {count} by its rows"
            for chat, count in self.counts.items()
            if self.sums.get(chat) != count
        ]

    def unended(self) -> list[str]:
        """Every row that is still work to do, in words; a claim of a process that is gone is
        named."""
        rows: list[Message | Run | Call] = [*self.messages, *self.runs, *self.calls]
        found = []
        for row in rows:
            if row.is_unended:
                owner = (
                    " of a process that is gone"
                    if row.claimed_by and row.claimed_by not in self.processes
                    else ""
                )
                found.append(
                    f"{type(row).__name__.lower()} {row.id} is {row.state}{owner}{_words(row)}"
                )
        return found

    def dump(self) -> dict[str, Any]:
        return asdict(self) | {"processes": sorted(self.processes)}


def _words(row: Message | Run | Call) -> str:
    return f": {row.direction} {row.text[:60]}" if isinstance(row, Message) else ""


def read(server: ChaosServer) -> Record:
    """The record as it is now. Blocks."""
    return Record(
        [_message(row) for row in server.rows(_MESSAGES)],
        [
            Run(row["id"], row["message_id"], row["state"], row["error"], row["claimed_by"])
            for row in server.rows(_RUNS)
        ],
        [_call(row) for row in server.rows(_CALLS)],
        frozenset(row["id"] for row in server.rows(_PROCESSES)),
        _sums(server.rows(_SUMS)),
        _sums(server.rows(_COUNTS)),
    )


def _sums(rows: list[dict[str, Any]]) -> Sums:
    return {row.pop("chat"): {name: int(count) for name, count in row.items()} for row in rows}


def _message(row: dict[str, Any]) -> Message:
    same = {
        name: row[name] or ""
        for name in (
            "direction",
            "state",
            "text",
            "account",
            "reason",
            "detail",
            "echo",
            "claimed_by",
        )
    }
    return Message(
        id=row["id"],
        chat=f"{row['kind']}:{row['peer_id']}",
        run=row["run_id"],
        call=row["tool_call_id"],
        merged_into=row["merged_into_id"],
        **same,
    )


def _call(row: dict[str, Any]) -> Call:
    return Call(
        row["id"], row["run_id"], row["tool_name"], row["state"], row["error"], row["claimed_by"]
    )
