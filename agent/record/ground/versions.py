"""The numbers by which a process knows that what it remembers of rows was changed."""

from agent.record.ground import statements
from tools.live_rows import LiveKind


def read_versions() -> dict[int, int]:
    """The numbers of the last changes, by any process, of each :class:`LiveKind`; 0 before the
    first."""
    found = {int(key): int(number) for key, number in statements.read_versions.rows()}
    return dict.fromkeys(map(int, LiveKind), 0) | found


def settings_version() -> int:
    """The number of the last change of a row that the operator edits, by any process."""
    return read_versions()[LiveKind.SETTINGS]
