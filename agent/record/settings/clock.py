"""The row of the installation, as the process and its pages see it."""

from agent.models import Installation
from tools.local_time import Clock, set_clock


class ClockRow:
    """Has the zone of the row count in this process, as new as the last :meth:`refresh`. Used by
    the database thread only."""

    def __init__(self) -> None:
        self._version: int | None = None
        set_clock(Clock())  # that of another record may have been that of another database

    def refresh(self, version: int) -> None:
        """Read the row again, unless it was read at ``version`` of the settings already."""
        if version != self._version:
            set_clock(load_clock())
            self._version = version

    def forget(self) -> None:
        """Trust nothing remembered: a transaction was not committed."""
        self._version = None


def load_clock() -> Clock:
    """The clock as the row has it, the machine's without one. One query."""
    columns = Installation.objects.values_list("time_zone", "changed_on", "begun_on")
    return Clock(*(columns.filter(pk=Installation.ONLY).first() or ()))
