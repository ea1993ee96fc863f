"""A database that refuses all writes, as opposed to one write that is invalid itself. Pure."""

from dataclasses import dataclass
from datetime import datetime

from django.db import DatabaseError, InterfaceError, OperationalError
from django.utils import timezone
from django.utils.translation import gettext_noop

#: Primary result codes of SQLite that no other request would fare better with: locked, out of
#: memory, read-only,
#: disk error, damaged, full, cannot be opened (https://www.sqlite.org/rescode.html).
SQLITE_CODES = frozenset({5, 6, 7, 8, 10, 11, 13, 14, 15, 26})
#: Classes of SQLSTATE: connection, rolled back in favour of another, resources, the operator, the
#: system; and locks
#: transactions that may only read, and one that was ended because its process slept
#: (https://www.postgresql.org/docs/current/errcodes-appendix.html).
SQLSTATES = ("08", "40", "53", "57", "58", "55P03", "25006", "25P03")


#: One statement was cancelled, for it took too long: the next one may be well.
CANCELLED = "57014"
#: Public names of refusals: the database's own message may name hosts, users and paths.
PLAIN = {
    5: gettext_noop("it is locked by another program"),
    6: gettext_noop("it is locked by another program"),
    8: gettext_noop("it can only be read"),
    10: gettext_noop("the disk reports an error"),
    11: gettext_noop("its file is damaged"),
    13: gettext_noop("the disk is full"),
    14: gettext_noop("its file cannot be opened"),
    26: gettext_noop("its file is damaged"),
    "25006": gettext_noop("it can only be read"),
    "53100": gettext_noop("the disk is full"),
    "53300": gettext_noop("it has too many connections"),
    "57P01": gettext_noop("it is being stopped"),
    "57P03": gettext_noop("it is not ready yet"),
}
UNREACHABLE = gettext_noop("it cannot be reached")


@dataclass(frozen=True, slots=True)
class DatabaseOutage:
    """Since when the database has refused, why (a public text), and how many writes wait for it."""

    since: datetime
    reason: str
    waiting: int

    @property
    def plain_text(self) -> str:
        """One sentence without hosts or paths."""
        since = f"{timezone.localtime(self.since):%H:%M:%S}"
        return f"cannot be written since {since}: {self.reason}; {self.waiting} writes wait"


def plain_reason(error: BaseException | None) -> str:
    """Why the database refuses, as a public text; :data:`UNREACHABLE` if it gives no reason."""
    cause = error.__cause__ if error is not None else None
    code = getattr(cause, "sqlite_errorcode", None)
    return PLAIN.get(
        code & 0xFF if code is not None else getattr(cause, "sqlstate", None) or "", UNREACHABLE
    )


def is_database_refusal(error: BaseException) -> bool:
    """Whether the database refuses whatever it is asked: the same write may succeed later, and no
    other would now."""
    if isinstance(error, InterfaceError):
        return True
    if not isinstance(error, DatabaseError):
        return False
    cause = error.__cause__
    if (code := getattr(cause, "sqlite_errorcode", None)) is not None:
        return (code & 0xFF) in SQLITE_CODES
    state = getattr(cause, "sqlstate", None)
    if state is None:
        return isinstance(error, OperationalError)
    return str(state).startswith(SQLSTATES) and state != CANCELLED
