"""Whether a transaction took effect whose COMMIT was never acknowledged.

On PostgreSQL each transaction that writes leaves its own mark, and is found by it later. Its number
there (``pg_xact_status``) would not do: after a crash the numbers that had not reached the disk are
given out again. SQLite runs in this process: a COMMIT that fails there was rolled back.
"""

import uuid
from datetime import timedelta

from django.db import connection, transaction
from django.db.models.functions import Now

from agent.models import CommitMark

#: How long to wait for a transaction that is still running, before the query is repeated; in
#: milliseconds. PostgreSQL ends it by itself when its client is gone, see
#: :mod:`agent.record.ground.idle_transactions`.
WAIT_MS = 5_000
#: Marks of writers that have not written for so long are those of processes that are gone.
KEEP_MARKS_FOR = timedelta(days=1)


class CommitMarker:
    """The marks of one thread that writes to PostgreSQL. Every method is called in that thread."""

    def __init__(self) -> None:
        self._writer = uuid.uuid4().hex
        self._number = 0
        self._has_row = False

    def prepare(self) -> None:
        """Insert the row before the first transaction. It stays, so a reader waits for the writer's
        row lock."""
        if not self._has_row:
            CommitMark.objects.filter(at__lt=Now() - KEEP_MARKS_FOR).delete()
            CommitMark.objects.bulk_create(
                [CommitMark(writer=self._writer, at=Now())], ignore_conflicts=True
            )
            self._has_row = True

    def write_mark(self) -> int:
        """Mark the current transaction at its end; 0 if it wrote nothing."""
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

        Waits for one that is still running because the database has not noticed that its client is
        gone. Raises a database error if the answer is not known yet.
        """
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = {WAIT_MS}")
            cursor.execute(
                "SELECT number FROM agent_commitmark WHERE writer = %s FOR UPDATE", [self._writer]
            )
            row = cursor.fetchone()
        return row is not None and bool(row[0] == number)

    def remove(self) -> None:
        """Delete this writer's row: it writes no more."""
        if self._has_row:
            CommitMark.objects.filter(writer=self._writer).delete()
