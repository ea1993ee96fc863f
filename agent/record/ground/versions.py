"""The numbers by which a process knows that what it remembers of rows was changed."""

import json
from collections.abc import Mapping
from functools import lru_cache

from agent.record.ground import statements
from tools.live_rows import LiveKind


def read_versions() -> Mapping[int, int]:
    """The numbers of the last changes, by any process, of each :class:`LiveKind`; 0 before the
    first."""
    [(versions,)] = statements.read_versions.rows()
    return parse_versions(versions)


@lru_cache(maxsize=4)  # they are seldom new
def parse_versions(versions: str | None) -> Mapping[int, int]:
    """The same of the JSON that statements find."""
    found = {int(key): int(number) for key, number in json.loads(versions or "{}").items()}
    return dict.fromkeys(map(int, LiveKind), 0) | found


def settings_version() -> int:
    """The number of the last change of a row that the operator edits, by any process."""
    return read_versions()[LiveKind.SETTINGS]
