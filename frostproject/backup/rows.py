"""Rows as lines of JSON, the same from every database, and back."""

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import IO, Any

from django.core.exceptions import ValidationError
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.translation import gettext as _

from frostproject.backup.refused import damaged

LONGEST_ROW = 256 * 2**20
"""Bytes of one line that are read; a message of a chat is a frame of 64 MiB at the most."""
AT_ONCE = 100
_FOREIGN = re.compile("[\0\ud800-\udfff]")
_FOREIGN_SIGNS = (rb"\u0000", rb"\ud")
Row = list[Any]


def tables_of(apps: Any) -> dict[str, type[models.Model]]:
    """The models that have tables of their own, by their names."""
    found = apps.get_models(include_auto_created=True, include_swapped=True)
    kept = [model for model in found if model._meta.managed and not model._meta.proxy]
    return {model._meta.label_lower: model for model in kept}


def columns_of(model: type[models.Model]) -> list[str]:
    return [field.attname for field in model._meta.local_concrete_fields]


def write_rows(model: type[models.Model], alias: str, hide: dict[str, Any]) -> Iterator[bytes]:
    """A line for each row. ``hide`` are functions of values that are not to be in it as they
    are, by their columns."""
    names = columns_of(model)
    hidden = [(names.index(name), function) for name, function in hide.items()]
    rows = model._base_manager.using(alias).order_by("pk").values_list(*names)
    for row in rows.iterator(AT_ONCE):
        values = list(row)
        for index, function in hidden:
            values[index] = function(values[index])
        yield json.dumps(values, default=_plain, separators=(",", ":")).encode() + b"\n"


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes | memoryview):
        return base64.b64encode(value).decode()
    return str(value)


def read_rows(
    model: type[models.Model],
    columns: Sequence[str],
    lines: IO[bytes],
    mend: Callable[[Row], Row] | None = None,
) -> Iterator[Row]:
    """The values of each row, in the order of ``columns``, as Django's fields have them. ``mend``
    is given each row with signs that not every database takes. Raises BackupError for what is no
    row of this table."""
    fields: Any = [model._meta.get_field(name) for name in columns]
    readers = [None if isinstance(one, models.JSONField) else one.to_python for one in fields]
    for number, line in enumerate(iter(lambda: lines.readline(LONGEST_ROW), b""), start=1):
        try:
            values = json.loads(line)
            if not isinstance(values, list) or not line.endswith(b"\n"):
                raise ValueError
            if mend and any(sign in line for sign in _FOREIGN_SIGNS):
                values = mend(values)
            yield [
                value if value is None or read is None else read(value)
                for value, read in zip(values, readers, strict=True)
            ]
        except (ValueError, TypeError, RecursionError, ValidationError, ArithmeticError) as error:
            words = _("row %(number)d of %(table)s") % {
                "number": number,
                "table": model._meta.label_lower,
            }
            raise damaged(words) from error


def insert_rows(
    model: type[models.Model],
    columns: Sequence[str],
    rows: Iterable[Row],
    connection: BaseDatabaseWrapper,
) -> Iterator[int]:
    """Insert as they are, without defaults, times of now and signals; after each batch how many it
    were."""
    fields: Any = [model._meta.get_field(name) for name in columns]
    name = connection.ops.quote_name
    places = ", ".join(["%s"] * len(fields))
    named = ", ".join(name(field.column) for field in fields)
    insert = f"INSERT INTO {name(model._meta.db_table)} ({named}) VALUES ({places})"  # noqa: S608
    waiting = iter(rows)
    with connection.cursor() as cursor:
        while batch := list(islice(waiting, AT_ONCE)):
            cursor.executemany(insert, [_stored(fields, row, connection) for row in batch])
            yield len(batch)


def _stored(fields: Sequence[Any], row: Row, connection: BaseDatabaseWrapper) -> Row:
    return [
        field.get_db_prep_value(value, connection)  # a null of JSON
        if value is None and isinstance(field, models.JSONField) and not field.null
        else field.get_db_prep_save(value, connection)
        for field, value in zip(fields, row, strict=True)
    ]


def clean(value: object) -> Any:
    """``value`` without the signs that PostgreSQL does not take: U+FFFD stands for each."""
    match value:
        case str():
            return _FOREIGN.sub("\ufffd", value)
        case list():
            return [clean(one) for one in value]
        case dict():
            return {clean(name): clean(one) for name, one in value.items()}
        case _:
            return value
