"""Rows that belong to a tracked row, as its history keeps them: a list of objects by field name."""

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import ForeignKey, Model
from django.utils.translation import gettext

from tools.live_rows import TrackedRows

Entry = Mapping[str, Any]


def read_related(row: Model, name: str, rows: TrackedRows) -> list[dict[str, Any]]:
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
