"""The rows of plugins follow the folder; what the operator decided stays. Runs in the database
thread."""

from collections.abc import Sequence

from django.utils.translation import gettext

from tools.models import Plugin
from tools.plugins.folder import PluginFolder
from tools.text.storable import make_storable

_FOUND = ("plugin_id", "version", "manifest")


def sync_plugin_rows(found: Sequence[PluginFolder]) -> None:
    """Make a row, not enabled, for each folder that has none; say of rows without a folder that it
    is gone.

    A folder that has another name now keeps its row, if its id tells. Nothing is written
    when nothing is new.
    """
    rows = {row.folder: row for row in Plugin.objects.all()}
    gone = {
        row.plugin_id: row
        for row in rows.values()
        if row.plugin_id and row.folder not in {each.folder for each in found}
    }
    for each in found:
        row = rows.get(each.folder) or (gone.pop(each.plugin_id, None) if not each.fault else None)
        if row is None:
            Plugin.objects.bulk_create(
                [Plugin(folder=each.folder, **_values(each))], ignore_conflicts=True
            )
        elif row.folder != each.folder or _values(each) != {
            name: getattr(row, name) for name in _values(each)
        }:
            Plugin.objects.filter(pk=row.pk).update(folder=each.folder, **_values(each))
        if row is not None:
            rows.pop(row.folder, None)
    known = {each.folder for each in found}
    missing = gettext("Its folder is gone.")
    for row in rows.values():
        if row.folder not in known and row.fault != missing:
            Plugin.objects.filter(pk=row.pk).update(fault=missing)


def _values(found: PluginFolder) -> dict[str, object]:
    """What a row says of its folder; where the manifest cannot be read, what it said before
    stays."""
    read = {name: make_storable(getattr(found, name)) for name in _FOUND} if found.plugin_id else {}
    return {"fault": make_storable(found.fault), **read}
