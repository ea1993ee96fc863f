"""The row of the installation, as the process and its pages see it."""

from agent.models import Installation
from tools.local_time import Clock


def load_clock() -> Clock:
    """The clock as the row has it, the machine's without one. One query."""
    columns = Installation.objects.values_list("time_zone", "changed_on", "begun_on")
    return Clock(*(columns.filter(pk=Installation.ONLY).first() or ()))
