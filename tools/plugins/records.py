"""The records of plugins: rows, log lines, crashes and status. All functions run in the database
thread."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Model
from django.utils import timezone
from django.utils.translation import gettext

from tools.models import Plugin, PluginCrash, PluginLogLine, PluginStatus
from tools.plugins.folder import PluginFolder
from tools.text.storable import make_storable

#: Of each plugin, the newest that are kept.
LINES_KEPT, CRASHES_KEPT = 1_000, 50
#: A state that was not confirmed for so long is that of a process which is gone.
STALE = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class LogEntry:
    plugin_pk: int
    at: datetime
    level: str
    text: str


@dataclass(frozen=True, slots=True)
class CrashEntry:
    plugin_pk: int
    at: datetime
    reason: str
    last_words: str


@dataclass(frozen=True, slots=True)
class PluginReport:
    """The status of a plugin in this process; ``state`` is "" when this process does not run it."""

    plugin_pk: int
    process_id: str
    state: str = ""
    runner_pid: int | None = None
    started_at: datetime | None = None
    retry_at: datetime | None = None
    crashes: int = 0
    error: str = ""
    tools: tuple[str, ...] = field(default_factory=tuple)


def write_log_entries(lines: Sequence[LogEntry]) -> None:
    kept = _existing(line.plugin_pk for line in lines)
    PluginLogLine.objects.bulk_create(
        PluginLogLine(plugin_id=line.plugin_pk, at=line.at, level=line.level, text=line.text)
        for line in lines
        if line.plugin_pk in kept
    )
    for pk in kept:
        _keep_newest(PluginLogLine, pk, LINES_KEPT)


def write_crashes(crashes: Sequence[CrashEntry]) -> None:
    kept = _existing(crash.plugin_pk for crash in crashes)
    PluginCrash.objects.bulk_create(
        PluginCrash(
            plugin_id=crash.plugin_pk,
            at=crash.at,
            reason=crash.reason[:500],
            detail=crash.last_words,
        )
        for crash in crashes
        if crash.plugin_pk in kept
    )
    for pk in kept:
        _keep_newest(PluginCrash, pk, CRASHES_KEPT)


def write_reports(reports: Sequence[PluginReport]) -> None:
    kept, now = _existing(report.plugin_pk for report in reports), timezone.now()
    for report in reports:
        if report.plugin_pk in kept:
            _write_report(report, now)


def confirm_processes(process_ids: Sequence[str]) -> None:
    """Store heartbeats of these processes, and delete the rows of processes without one for
    long."""
    now = timezone.now()
    PluginStatus.objects.filter(process_id__in=process_ids).update(seen_at=now)
    PluginStatus.objects.filter(seen_at__lt=now - STALE).delete()


def delete_process_reports(process_ids: Sequence[str]) -> None:
    """These processes have nothing to do with any plugin any more."""
    PluginStatus.objects.filter(process_id__in=process_ids).delete()


def _write_report(report: PluginReport, now: datetime) -> None:
    key: dict[str, Any] = {"plugin_id": report.plugin_pk, "process_id": report.process_id}
    if not report.state:
        PluginStatus.objects.filter(**key).delete()
        return
    values = {
        "state": report.state,
        "runner_pid": report.runner_pid,
        "started_at": report.started_at,
        "retry_at": report.retry_at,
        "crashes": report.crashes,
        "error": report.error,
        "tools": list(report.tools),
        "seen_at": now,
    }
    PluginStatus.objects.update_or_create(defaults=values, **key)


def _existing(pks: Iterable[int]) -> set[int]:
    """Of ``pks`` those that have a row: the operator may have deleted it meanwhile."""
    return set(Plugin.objects.filter(pk__in=set(pks)).values_list("pk", flat=True))


def _keep_newest(model: type[Model], plugin_pk: int, most: int) -> None:
    rows = model._default_manager.filter(plugin_id=plugin_pk)
    oldest = rows.order_by("-pk").values_list("pk", flat=True)[most : most + 1].first()
    if oldest is not None:
        rows.filter(pk__lte=oldest).delete()


def sync_plugin_rows(found: Sequence[PluginFolder]) -> None:
    """Create a disabled row for each folder without one; mark rows whose folder is gone. The
    operator's settings stay.

    A renamed folder keeps its row if the plugin's id identifies it. Nothing is written when nothing
    is new.
    """
    rows = {row.folder: row for row in Plugin.objects.all()}
    known = {each.folder for each in found}
    gone = {
        row.plugin_id: row for row in rows.values() if row.plugin_id and row.folder not in known
    }
    for each in found:
        values: dict[str, object] = {"folder": each.folder, "fault": make_storable(each.fault)}
        if each.plugin_id:  # where the manifest cannot be read, what it said before stays
            for name in ("plugin_id", "version", "manifest"):
                values[name] = make_storable(getattr(each, name))
        row = rows.get(each.folder) or (gone.pop(each.plugin_id, None) if not each.fault else None)
        if row is None:
            Plugin.objects.bulk_create([Plugin(**values)], ignore_conflicts=True)
            continue
        if values != {name: getattr(row, name) for name in values}:
            Plugin.objects.filter(pk=row.pk).update(**values)
        rows.pop(row.folder, None)
    missing = gettext("Its folder is gone.")
    for row in rows.values():
        if row.folder not in known and row.fault != missing:
            Plugin.objects.filter(pk=row.pk).update(fault=missing)
