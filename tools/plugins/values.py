"""What plugins store for themselves: rows under keys, one plugin's never another's. For the
database thread."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import JSONField, Value

from tools.models import PluginValue

#: Keys of one plugin.
KEYS_LIMIT = 1_000


@dataclass(frozen=True, slots=True)
class StorageKey:
    """A key of a plugin, or the beginning of keys."""

    plugin_pk: int
    key: str


@dataclass(frozen=True, slots=True)
class StorageEntry:
    """A value to be kept under a key."""

    plugin_pk: int
    key: str
    value: Any


def get_values(places: Sequence[StorageKey]) -> list[Any]:
    """The value at each place; None where there is none."""
    return [_rows(place).values_list("value", flat=True).first() for place in places]


def put_values(entries: Sequence[StorageEntry]) -> list[bool]:
    """Keep each value in place of what was there; False where the plugin has :data:`KEYS_LIMIT`
    other keys."""
    return [_put(entry) for entry in entries]


def delete_values(places: Sequence[StorageKey]) -> list[bool]:
    """Drop what is there; whether anything was."""
    return [_rows(place).delete()[0] > 0 for place in places]


def list_keys(places: Sequence[StorageKey]) -> list[list[str]]:
    """The plugin's keys that begin so, in order."""
    return [_keys(place) for place in places]


def _rows(place: StorageKey) -> Any:
    return PluginValue.objects.filter(plugin_id=place.plugin_pk, key=place.key)


def _put(entry: StorageEntry) -> bool:
    mine = PluginValue.objects.filter(plugin_id=entry.plugin_pk)
    row = mine.filter(key=entry.key).first()
    if row is None and mine.count() >= KEYS_LIMIT:
        return False
    row = row or PluginValue(plugin_id=entry.plugin_pk, key=entry.key)
    # None alone would be NULL.
    row.value = Value(None, JSONField()) if entry.value is None else entry.value
    row.save()
    return True


def _keys(place: StorageKey) -> list[str]:
    """In Python and not in the query: SQLite knows no case in LIKE, and each database has an order
    of its own."""
    every = PluginValue.objects.filter(plugin_id=place.plugin_pk).values_list("key", flat=True)
    return sorted(key for key in every if key.startswith(place.key))
