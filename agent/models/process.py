"""Server processes, what they hold, and what they committed last."""

from typing import Any

from django.db import models
from django.db.models import F, Value
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_lazy as _

#: Of an update that ends every claim on the rows it changes, see :mod:`agent.domain.states`.
NEXT_CLAIM = Coalesce(F("claim_number"), 0) + 1


# The columns of rows that one process works on at a time. They were added when there were
# installations with millions of rows: only a column that may be NULL, with its default in the
# database, is added to a table of SQLite without a copy of it.


def claim_number_field() -> "models.IntegerField[Any, Any]":
    """How often the row has changed hands: who holds an older number holds nothing."""
    return models.IntegerField(null=True, db_default=Value(0), editable=False)


def place_field() -> "models.CharField[Any, Any]":
    """:attr:`agent.domain.types.ChatAddress.place` of the chat that the row belongs to, whatever
    session it is filed under."""
    return models.CharField(max_length=200, null=True, db_default=Value(""), editable=False)


class ServerProcess(models.Model):
    """A running server process; work claimed by one that is gone is taken over by another."""

    id = models.CharField(primary_key=True, max_length=32)
    host = models.CharField(_("host"), max_length=200)
    pid = models.IntegerField(_("process id"))
    started_at = models.DateTimeField(_("started"), auto_now_add=True)
    last_seen_at = models.DateTimeField(_("last seen"))

    class Meta:
        verbose_name = _("server process")
        verbose_name_plural = _("server processes")

    def __str__(self) -> str:
        return f"{self.host}/{self.pid}"


class CommitMark(models.Model):
    """The last transaction of one writer that took effect: each of them raises the number of its
    writer's row. It shows whether a COMMIT took effect whose acknowledgement was lost."""

    writer = models.CharField(primary_key=True, max_length=32)
    number = models.BigIntegerField(default=0)
    at = models.DateTimeField()

    class Meta:
        verbose_name = _("commit mark")
        verbose_name_plural = _("commit marks")

    def __str__(self) -> str:
        return f"{self.writer} {self.number}"
