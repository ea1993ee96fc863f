"""What operators did with rows, by whom, and the way back.

There are no save signals: code that lets an operator edit rows does so within
:func:`record_changes`. Writes of the program itself are not recorded and cost nothing.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.serializers.json import DjangoJSONEncoder
from django.db import transaction
from django.db.models import DateField, ForeignKey, Model, QuerySet
from django.utils.translation import gettext

from tools.live_rows import Tracked, TrackedRows, tracked_fields
from tools.models import ToolConfig, ToolConfigChange
from tools.models.change import SAID_AUTHOR, ChangeKind, row_subject
from tools.secrets.encryption import DecryptionError, decrypt, encrypt

SHOWN, SEALED = "$shown", "$sealed"


def find_history(row: Model) -> "QuerySet[ToolConfigChange]":
    """All that was done with ``row``, the newest first."""
    return ToolConfigChange.objects.filter(**_key(row))


def find_changes(row: Model) -> "QuerySet[ToolConfigChange]":
    """The changes of what ``row`` holds, the newest first."""
    return find_history(row).filter(kind=ChangeKind.CHANGED)


def _key(row: Model) -> dict[str, object]:
    return {"config": row} if isinstance(row, ToolConfig) else {"subject": row_subject(row)}


def record_event(
    author: User | None, row: Model, kind: ChangeKind, words: str | list[object] = ""
) -> ToolConfigChange:
    """Put on record what was done with ``row``, in ``words`` of this program or of Django's admin.
    One that is about to be deleted is kept with all that is tracked of it."""
    known, is_going = tracked_fields(type(row)), kind == ChangeKind.DELETED
    held = read_tracked_values(row) if is_going and known != Tracked() else {}
    return ToolConfigChange.objects.create(
        **({"subject": row_subject(row)} if is_going else _key(row)),
        kind=kind,
        name=str(row)[:200],
        author=author,
        words=words if isinstance(words, str) else json.dumps(words),
        before={name: _kept(known, name, held, dict.fromkeys(held)) for name in held},
    )


@contextmanager
def record_changes(author: User | str | None, *rows: Model) -> Iterator[list[ToolConfigChange]]:
    """Put on record what is changed in the stored ``rows`` meanwhile, in one transaction with it.

    ``author`` is None for the program itself, and words for somebody without an account in the
    admin: an owner in a chat. What is handed out is filled at the end: a change for each row in
    which something is different; the row has it as ``recorded``.
    """
    made: list[ToolConfigChange] = []
    with transaction.atomic():
        before = [(row, read_tracked_values(row)) for row in rows]
        yield made
        made += [change for row, was in before if (change := record_change(row, author, was))]


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
    with record_changes(author, row) as made:
        stored = type(row)._base_manager.select_for_update().get(pk=row.pk)
        known = tracked_fields(type(row))
        names = sorted(change.before.keys() & {*known.fields, *known.sealed})
        lists = sorted(change.before.keys() & known.related.keys())
        _put_back(change, stored, names)
        if "looked_at" in names:
            names.append("looked_declaration")
            stored.looked_declaration = None  # type: ignore[attr-defined] # only the newest is kept
        columns = stored._meta.concrete_fields
        stored.full_clean(exclude={one.name for one in columns} - {*known.fields, *known.sealed})
        stamps = [one.name for one in columns if isinstance(one, DateField) and one.auto_now]
        if names or lists:
            stored.save(update_fields=[*names, *stamps])
            for name in lists:
                restore_related(stored, name, known.related[name], change.before[name])
    return made[0] if made else None


def can_make_again(change: ToolConfigChange, model: type[Model]) -> bool:
    """Whether all that a deleted row of ``model`` needs was kept of it."""
    known, columns = tracked_fields(model), model._meta.concrete_fields
    needed = {one.name for one in columns if not (one.blank or one.has_default() or one.null)}
    is_whole = bool(change.before) and not known.masked and needed <= change.before.keys()
    return change.kind == ChangeKind.DELETED and is_whole


def make_again(change: ToolConfigChange, model: type[Model], author: User | None) -> Model:
    """Make the row of ``model`` that ``change`` deleted again, under its number.

    Raises :class:`django.core.exceptions.ValidationError` where it is there again, or what it held
    is no longer valid, and then nothing is changed.
    """
    known = tracked_fields(model)
    with transaction.atomic():
        row = model(pk=int(change.subject.rpartition(":")[2]))
        _put_back(change, row, change.before.keys() - known.related.keys())
        row.full_clean()
        row.save(force_insert=True)
        for name in change.before.keys() & known.related.keys():
            restore_related(row, name, known.related[name], change.before[name])
        record_event(author, row, ChangeKind.ADDED, [{"added": {}}])
    return row


def _put_back(change: ToolConfigChange, row: Model, names: Collection[str]) -> None:
    """Give the fields ``names`` of ``row`` what they held before ``change``."""
    sealed = tracked_fields(type(row)).sealed
    for column in (one for one in row._meta.concrete_fields if one.name in names):
        kept = change.before[column.name]
        value = _opened(column.name, kept) if column.name in sealed else kept
        setattr(row, column.attname, column.to_python(value))


def read_tracked_values(
    row: Model, *, for_update: bool = False, is_fresh: bool = False
) -> dict[str, object]:
    """What is tracked of the stored row, by name; nothing of a row that is not there.

    ``for_update``: in a transaction, others wait with their changes until it ends. ``is_fresh``:
    the row was read just now, and is not read again.
    """
    known = tracked_fields(type(row))
    rows = type(row)._base_manager.filter(pk=row.pk)
    in_transaction = transaction.get_connection(rows.db).in_atomic_block
    found = rows.select_for_update() if for_update and in_transaction else rows
    stored = row if is_fresh else found.first()
    if stored is None:
        return {}
    values = {name: _read(stored, name) for name in (*known.fields, *known.sealed, *known.masked)}
    return values | {name: read_related(stored, name, of) for name, of in known.related.items()}


def _read(row: Model, name: str) -> object:
    """The value of a field or attribute; of a row that it refers to, the key."""
    columns = {one.name: one.attname for one in row._meta.concrete_fields}
    try:
        value = getattr(row, columns.get(name, name))
        return json.loads(json.dumps(value, cls=DjangoJSONEncoder))
    except DecryptionError:
        return None


def record_change(
    row: Model, author: User | str | None, was: dict[str, object]
) -> ToolConfigChange | None:
    """Put on record that ``row`` held what it ``was``, by :func:`read_tracked_values`; None where
    it holds that still. The row has the change as ``recorded``."""
    now = read_tracked_values(row)
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
    row.recorded = change = ToolConfigChange.objects.create(  # type: ignore[attr-defined]
        **_key(row),
        name=str(row)[:200],
        author=None if isinstance(author, str) else author,
        before={name: _kept(known, name, was, now) for name in names},
        after={name: _kept(known, name, now, was) for name in names} | said,
    )
    return change


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


# Rows that belong to a tracked row, as its history keeps them: a list of objects by field name.

Entry = Mapping[str, object]


def read_related(row: Model, name: str, rows: TrackedRows) -> list[dict[str, object]]:
    """The rows that belong to ``row`` in the relation ``name``, in their order; of those they
    refer to, the keys."""
    return [
        {field: getattr(one, one._meta.get_field(field).attname) for field in rows.fields}
        for one in getattr(row, name).all()
    ]


def restore_related(row: Model, name: str, rows: TrackedRows, wanted: list[Entry]) -> None:
    """Make the rows that belong to ``row`` those that ``wanted`` describes; what is equal stays.

    Raises :class:`django.core.exceptions.ValidationError` under ``name`` where one cannot be made
    again, such as one that refers to a row that is deleted.
    """
    manager = getattr(row, name)
    missing = list(wanted)
    for one, entry in zip(manager.all(), read_related(row, name, rows), strict=True):
        if entry in missing:
            missing.remove(entry)
        else:
            one.delete()
    for kept in missing:
        made = manager.model(**{manager.field.name: row})
        for field in rows.fields:
            setattr(made, made._meta.get_field(field).attname, kept.get(field))
        try:
            made.full_clean()
        except ValidationError as error:
            reason = "; ".join(error.messages)
            raise ValidationError(
                {name: f"{format_entry(manager.model, kept)}: {reason}"}
            ) from error
        made.save()


def format_entries(model: type[Model], entries: list[Entry]) -> str:
    """A line for each of the rows that ``entries`` describe."""
    return "\n".join(format_entry(model, entry) for entry in entries)


def format_entry(model: type[Model], entry: Entry) -> str:
    """One row in words: its fields that are not empty."""
    parts = [(name, _shown(model, name, value)) for name, value in entry.items()]
    words = [f"{_label(model, name)}: {shown}" for name, shown in parts if shown]
    return ", ".join(words) or gettext("any")


def _label(model: type[Model], name: str) -> str:
    field: Any = model._meta.get_field(name)
    return str(field.verbose_name)


def _shown(model: type[Model], name: str, value: object) -> str:
    field: Any = model._meta.get_field(name)
    if isinstance(field, ForeignKey):
        other = field.related_model._base_manager.filter(pk=value).first()
        return str(other) if other is not None else f"#{value}"
    return str(dict(field.flatchoices).get(value, "" if value is None else value))
