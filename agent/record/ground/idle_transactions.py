"""Processes that fall asleep inside a transaction: PostgreSQL keeps their locks for them, but not
for ever.

A process that is stopped, or whose machine is moved or gone, holds up all others who
want the same rows, also those who have taken its work over. So does a statement that does not come
to an end: the thread that writes for a whole process bounds its own.
"""

import threading

from django.db.backends.base.base import BaseDatabaseWrapper

from tools.time_limits import TIME_LIMITS

#: How long a transaction may say nothing before its connection is ended, in seconds.
IDLE_TRANSACTION_SECONDS = TIME_LIMITS.silent_transaction
#: How long one statement of a thread that writes for the whole process may take, in seconds.
STATEMENT_SECONDS = 60.0
_thread = threading.local()


def limit_statements() -> None:
    """Bound every statement over connections that this thread makes from now on."""
    _thread.seconds = STATEMENT_SECONDS


def limit_idle_transaction(connection: BaseDatabaseWrapper, **_signal: object) -> None:
    """Have a new connection ended when its process sleeps inside a transaction; what that wrote is
    rolled back."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                f"SET idle_in_transaction_session_timeout = {int(IDLE_TRANSACTION_SECONDS * 1000)}"
            )
            if seconds := getattr(_thread, "seconds", None):
                cursor.execute(f"SET statement_timeout = {int(seconds * 1000)}")
