"""Whether a transaction took effect whose COMMIT was never acknowledged.

On PostgreSQL each transaction that writes leaves its own mark, by which it is looked up.
Its number there (``pg_xact_status``) would not do: after a crash the numbers that had not
reached the disk are given out again. SQLite runs in this process: a COMMIT that fails
there was rolled back.
"""

import uuid
from datetime import timedelta

from django.db import connection, transaction
from django.db.models.functions import Now

from agent.models import CommitMark

#: How long a transaction that still goes on is waited for, before the question is asked again; in
#: milliseconds.
#: PostgreSQL ends it by itself when its client is gone, see :mod:`agent.record.idle_transactions`.
WAIT_MS = 5_000
#: Marks of writers that have not written for so long are those of processes that are gone.
KEEP_MARKS_FOR = timedelta(days=1)


class CommitMarker:
    """The marks of one thread that writes. Every method is called in that thread."""

    def __init__(self) -> None:
        self._writer = uuid.uuid4().hex
        self._number = 0
        self._has_row = False

    def prepare(self) -> None:
        """Before the first transaction: the row is there for good, so that whoever asks waits for
        who changes it."""
        if connection.vendor == "postgresql" and not self._has_row:
            CommitMark.objects.filter(at__lt=Now() - KEEP_MARKS_FOR).delete()
            CommitMark.objects.bulk_create(
                [CommitMark(writer=self._writer, at=Now())], ignore_conflicts=True
            )
            self._has_row = True

    def write_mark(self) -> int:
        """Mark the present transaction, at its end; 0 where it wrote nothing, or nobody needs to
        ask."""
        if connection.vendor != "postgresql":
            return 0
        self._number += 1
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE agent_commitmark SET number = %s, at = now()"
                " WHERE writer = %s AND pg_current_xact_id_if_assigned() IS NOT NULL",
                [self._number, self._writer],
            )
            return self._number if cursor.rowcount else 0

    def took_effect(self, number: int) -> bool:
        """Whether the last transaction, which left ``number``, was committed.

        Waits for one that still goes on, because the database has not noticed that its client
        is gone. Raises a database error when that cannot be told now.
        """
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = {WAIT_MS}")
            cursor.execute(
                "SELECT number FROM agent_commitmark WHERE writer = %s FOR UPDATE", [self._writer]
            )
            row = cursor.fetchone()
        return row is not None and bool(row[0] == number)

    def remove(self) -> None:
        """Leave nothing behind: no more is written."""
        if self._has_row:
            CommitMark.objects.filter(writer=self._writer).delete()
