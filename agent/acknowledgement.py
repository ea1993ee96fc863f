"""Whether a transaction took effect whose COMMIT was never acknowledged.

PostgreSQL can be asked for that by the transaction's own number. SQLite runs in this
process: a COMMIT that fails there was rolled back.
"""

import time
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from django.db import DatabaseError, DataError, OperationalError, connection

#: How long a transaction may be said to go on, before whoever still holds it is ended; in seconds.
DECIDED_WITHIN = 5.0
PAUSE_SECONDS = 0.1


#: Of each connection, what :func:`_recovered_at` said over it: a crash ends every connection.
_recoveries: "WeakKeyDictionary[Any, str]" = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Number:
    """A transaction's own number, and when the database that gave it out had recovered last."""

    xid: int
    recovered_at: str


def transaction_id() -> Number | None:
    """What the present transaction can be asked for by at its end; None where it wrote nothing or nobody needs to ask."""
    if connection.vendor != "postgresql":
        return None
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id_if_assigned()::text")
        xid = cursor.fetchone()[0]
    if xid and connection.connection not in _recoveries:
        _recoveries[connection.connection] = _recovered_at()
    return Number(int(xid), _recoveries[connection.connection]) if xid else None


def took_effect(number: Number) -> bool:
    """Whether transaction ``number`` was committed. Raises a database error when that cannot be asked now.

    One that still goes on, because the database has not noticed that its client is gone,
    is ended after ``DECIDED_WITHIN``.
    """
    if _is_given_out_again(number):
        return False
    end = time.monotonic() + DECIDED_WITHIN
    while (status := _status(number)) == "in progress":
        if time.monotonic() > end:
            _terminate(number)
        time.sleep(PAUSE_SECONDS)
    return status == "committed"


def _is_given_out_again(number: Number) -> bool:
    """Whether the number is, or will be, another transaction's: a crash takes back all that had not reached the disk.

    The checkpoint at the end of the recovery names the first number that is given out after it.
    """
    if _recovered_at() == number.recovered_at:
        return False
    with connection.cursor() as cursor:
        cursor.execute("SELECT next_xid FROM pg_control_checkpoint()")
        epoch, _, xid = cursor.fetchone()[0].partition(":")
    return (int(epoch) << 32 | int(xid)) <= number.xid


def _recovered_at() -> str:
    """What changes with each recovery from a crash, which begins the statistics anew; an orderly restart leaves it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT stats_reset::text FROM pg_stat_bgwriter")
        return str(cursor.fetchone()[0])


def _status(number: Number) -> str:
    """NULL is a number too old to be known, an error one that a crash has taken back."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_xact_status(%s::xid8)", [str(number.xid)])
            return str(cursor.fetchone()[0] or "")
    except (DataError, DatabaseError) as error:
        if isinstance(error, OperationalError) or getattr(error.__cause__, "sqlstate", "") != "22023":
            raise
        return ""


def _terminate(number: Number) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_xid = %s::xid8::xid", [str(number.xid)]
        )
