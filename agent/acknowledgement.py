"""Whether a transaction took effect whose COMMIT was never acknowledged.

PostgreSQL can be asked for that by the transaction's own number. SQLite runs in this
process: a COMMIT that fails there was rolled back.
"""

import time

from django.db import DatabaseError, DataError, OperationalError, connection

#: How long a transaction may be said to go on, before whoever still holds it is ended; in seconds.
DECIDED_WITHIN = 5.0
PAUSE_SECONDS = 0.1


def transaction_id() -> str:
    """The number of the present transaction, to be asked for at its end; "" where it wrote nothing or none is needed."""
    if connection.vendor != "postgresql":
        return ""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id_if_assigned()::text")
        return str(cursor.fetchone()[0] or "")


def took_effect(number: str) -> bool:
    """Whether transaction ``number`` was committed. Raises a database error when that cannot be asked now.

    One that still goes on, because the database has not noticed that its client is gone,
    is ended after ``DECIDED_WITHIN``.
    """
    end = time.monotonic() + DECIDED_WITHIN
    while (status := _status(number)) == "in progress":
        if time.monotonic() > end:
            _terminate(number)
        time.sleep(PAUSE_SECONDS)
    return status == "committed"


def _status(number: str) -> str:
    """NULL is a number too old to be known, an error one that a crash has taken back."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_xact_status(%s::xid8)", [number])
            return str(cursor.fetchone()[0] or "")
    except (DataError, DatabaseError) as error:
        if isinstance(error, OperationalError) or getattr(error.__cause__, "sqlstate", "") != "22023":
            raise
        return ""


def _terminate(number: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_xid = %s::xid8::xid", [number])
