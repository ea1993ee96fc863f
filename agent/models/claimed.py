"""The columns of rows that one process works on at a time, see :mod:`agent.domain.claims`.

They came when there were installations with millions of rows: only a column that may be
NULL, with its default in the database, is added to a table of SQLite without a copy of it.
"""

from typing import Any

from django.db import models
from django.db.models import F, Value
from django.db.models.functions import Coalesce

#: Of an update that ends every claim on the rows it changes.
NEXT_CLAIM = Coalesce(F("claim_number"), 0) + 1


def claim_number() -> "models.IntegerField[Any, Any]":
    """How often the row has changed hands: who holds an older number holds nothing."""
    return models.IntegerField(null=True, db_default=Value(0), editable=False)


def place() -> "models.CharField[Any, Any]":
    """:attr:`agent.domain.types.ChatAddress.place` of the chat that the row belongs to, whatever
    session it is filed under."""
    return models.CharField(max_length=200, null=True, db_default=Value(""), editable=False)
