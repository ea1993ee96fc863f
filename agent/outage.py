"""A database that refuses to be written: told apart from a write that is at fault itself. Pure."""

from dataclasses import dataclass
from datetime import datetime

from django.db import DatabaseError, InterfaceError, OperationalError

#: Primary result codes of SQLite that no other request would fare better with: locked, out of memory, read-only,
#: disk error, damaged, full, cannot be opened (https://www.sqlite.org/rescode.html).
SQLITE_CODES = frozenset({5, 6, 7, 8, 10, 11, 13, 14, 15, 26})
#: Classes of SQLSTATE: connection, rolled back in favour of another, resources, the operator, the system; and locks
#: and transactions that may only read (https://www.postgresql.org/docs/current/errcodes-appendix.html).
SQLSTATES = ("08", "40", "53", "57", "58", "55P03", "25006")


@dataclass(frozen=True, slots=True)
class Outage:
    """Since when the database has refused, what it says, and how many writes wait for it."""

    since: datetime
    reason: str
    waiting: int


def is_refusal(error: BaseException) -> bool:
    """Whether the database refuses whatever it is asked: the same write may succeed later, and no other would now."""
    if isinstance(error, InterfaceError):
        return True
    if not isinstance(error, DatabaseError):
        return False
    cause = error.__cause__
    if (code := getattr(cause, "sqlite_errorcode", None)) is not None:
        return (code & 0xFF) in SQLITE_CODES
    state = getattr(cause, "sqlstate", None)
    return str(state).startswith(SQLSTATES) if state else isinstance(error, OperationalError)
