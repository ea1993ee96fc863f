"""What operators changed in rows, by whom, and the way back.

There are no save signals: code that lets an operator edit rows does so within
:func:`record_changes`. Writes of the program itself are not recorded and cost nothing.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.serializers.json import DjangoJSONEncoder
from django.db import transaction
from django.db.models import DateField, Model, Q, QuerySet
from django.utils.translation import gettext

from tools.admin.related_rows import read_related, restore_related
from tools.live_rows import Tracked, tracked_fields
from tools.models import ToolConfig, ToolConfigChange
from tools.models.change import SAID_AUTHOR, row_subject
from tools.secrets.encryption import DecryptionError, decrypt, encrypt

SHOWN, SEALED = "$shown", "$sealed"


def find_changes(row: Model) -> "QuerySet[ToolConfigChange]":
    """The changes of ``row``, the newest first."""
    return ToolConfigChange.objects.filter(
        Q(config=row) if isinstance(row, ToolConfig) else Q(subject=row_subject(row))
    )


@contextmanager
def record_changes(author: User | str | None, *rows: Model) -> Iterator[list[ToolConfigChange]]:
    """Put on record what is changed in the stored ``rows`` meanwhile, in one transaction with it.

    ``author`` is None for the program itself, and words for somebody without an account in the
    admin: an owner in a chat. What is handed out is filled at the end: a change for each row in
    which something is different.
    """
    made: list[ToolConfigChange] = []
    with transaction.atomic():
        before = [(row, read_tracked_values(row)) for row in rows]
        yield made
        made += [
            change
            for row, was in before
            if (change := _change(row, author, was, read_tracked_values(row)))
        ]


def record_look(pk: int, fingerprint: str, author: User | None) -> bool:
    """Record that ``author`` has reviewed the declaration of the tool. Returns False and does
    nothing when the declaration no longer has ``fingerprint``, or needs no review any more.
    """
    with transaction.atomic():
        config = (
            ToolConfig.objects.select_for_update().filter(pk=pk).exclude(fingerprint="").first()
        )
        if config is None or config.fingerprint != fingerprint:
            return False
        with record_changes(author, config):
            config.looked_at, config.looked_declaration = config.fingerprint, config.declaration
            config.save(update_fields=["looked_at", "looked_declaration", "updated_at"])
        return True


def revert_change(
    change: ToolConfigChange, row: Model, author: User | None
) -> ToolConfigChange | None:
    """Give the fields of ``change`` back what they held before it, and record that as a change of
    its own.

    Later changes of other fields stay. None where the fields hold those values already.
    Raises :class:`django.core.exceptions.ValidationError` when an old value is no longer
    valid, and then nothing is changed.
    """
    known = tracked_fields(type(row))
    names = sorted(change.before.keys() & {*known.fields, *known.sealed})
    lists = sorted(change.before.keys() & known.related.keys())
    with record_changes(author, row) as made:
        stored = type(row)._base_manager.select_for_update().get(pk=row.pk)
        columns = stored._meta.concrete_fields
        for column in (one for one in columns if one.name in names):
            kept = change.before[column.name]
            value = _opened(column.name, kept) if column.name in known.sealed else kept
            setattr(stored, column.attname, column.to_python(value))
        if "looked_at" in names:
            names.append("looked_declaration")
            stored.looked_declaration = None  # type: ignore[attr-defined] # only the newest is kept
        stored.full_clean(exclude={one.name for one in columns} - {*known.fields, *known.sealed})
        stamps = [one.name for one in columns if isinstance(one, DateField) and one.auto_now]
        if names or lists:
            stored.save(update_fields=[*names, *stamps])
            for name in lists:
                restore_related(stored, name, known.related[name], change.before[name])
    return made[0] if made else None


def read_tracked_values(row: Model, *, for_update: bool = False) -> dict[str, Any]:
    """What is tracked of the stored row, by name; nothing of a row that is not there.

    ``for_update``: in a transaction, others wait with their changes until it ends.
    """
    known = tracked_fields(type(row))
    rows = type(row)._base_manager.filter(pk=row.pk)
    in_transaction = transaction.get_connection(rows.db).in_atomic_block
    stored = (rows.select_for_update() if for_update and in_transaction else rows).first()
    if stored is None:
        return {}
    values = {name: _read(stored, name) for name in (*known.fields, *known.sealed, *known.masked)}
    return values | {name: read_related(stored, name, of) for name, of in known.related.items()}


def _read(row: Model, name: str) -> Any:
    """The value of a field or attribute; of a row that it refers to, the key."""
    columns = {one.name: one.attname for one in row._meta.concrete_fields}
    try:
        value = getattr(row, columns.get(name, name))
        return json.loads(json.dumps(value, cls=DjangoJSONEncoder))
    except DecryptionError:
        return None


def _change(
    row: Model, author: User | str | None, was: dict[str, Any], now: dict[str, Any]
) -> ToolConfigChange | None:
    changed = [name for name in was if name in now and was[name] != now[name]]
    if not changed:
        return None
    known = tracked_fields(type(row))
    names = [
        *changed,
        *(
            name
            for name in known.sealed
            if name not in changed and known.sealed.keys() & set(changed)
        ),
    ]
    said = {SAID_AUTHOR: author} if isinstance(author, str) else {}
    return ToolConfigChange.objects.create(
        config=row if isinstance(row, ToolConfig) else None,
        subject="" if isinstance(row, ToolConfig) else row_subject(row),
        name=str(row)[:200],
        author=None if isinstance(author, str) else author,
        before={name: _kept(known, name, was, now) for name in names},
        after={name: _kept(known, name, now, was) for name in names} | said,
    )


def _kept(known: Tracked, name: str, values: dict[str, Any], others: dict[str, Any]) -> Any:
    value, other = values[name], others[name]
    if name in known.fields or name in known.related:
        return value
    show = known.sealed[name] if name in known.sealed else known.masked[name][1]
    is_object = isinstance(value, dict) and isinstance(other, dict)
    different = (
        {key: one for key, one in value.items() if key not in other or other[key] != one}
        if is_object
        else value
    )
    if name in known.masked:
        return show(different)
    return {SEALED: encrypt(json.dumps(value))} | (
        {SHOWN: show(different)} if value != other else {}
    )


def _opened(name: str, kept: Any) -> Any:
    try:
        return json.loads(decrypt(kept[SEALED]))
    except DecryptionError as error:
        words = gettext("What is stored here was sealed under another secret key.")
        raise ValidationError({name: words}) from error
