"""The folder of plugins: what is in it, and when that changes. Nothing in it is ever imported
here.

The records of plugins: rows, log lines, crashes and status. All functions run in the database
thread.
"""

import asyncio
import contextlib
import hashlib
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from django.utils import timezone
from django.utils.translation import gettext
from watchfiles import Change, DefaultFilter, awatch

from tools.error_boundary import capture_error
from tools.models import Plugin, PluginCrash, PluginLogLine, PluginStatus
from tools.plugins.manifest import MANIFEST, ManifestError, read_manifest
from tools.text.storable import make_storable

logger = logging.getLogger(__name__)
Event = TypeVar("Event", PluginLogLine, PluginCrash)

#: The most folders that are read, the most files of a folder that are watched for changes, the most
#: characters of its name.
MOST_FOLDERS, MOST_FILES, NAME_CHARS = 200, 2_000, 200
#: Changes that come so close together are one, in milliseconds.
DEBOUNCE_MS, STEP_MS = 600, 200
#: The polling interval where the system reports no changes, in seconds.
LOOK_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class PluginFolder:
    """One plugin's folder. ``stamp`` changes with its manifest and code; ``fault`` is "" where the
    manifest is sound."""

    folder: str
    stamp: str
    plugin_id: str = ""
    version: str = ""
    fault: str = ""
    manifest: dict[str, object] = field(default_factory=dict)


def scan_folder(root: Path) -> list[PluginFolder]:
    """Every plugin in ``root``, by the name of its folder; of several with one id the first is
    sound."""
    try:
        names = sorted(name for name in os.listdir(root) if _is_plugin(root, name))
    except OSError:
        return []
    found, owners = [], dict[str, str]()
    for each in (_found(root, name) for name in names[:MOST_FOLDERS]):
        owner = owners.setdefault(each.plugin_id, each.folder) if each.plugin_id else each.folder
        found.append(each if owner == each.folder else _duplicate(each, owner))
    return found


async def watch_folder(root: Path, look_again: Callable[[], Awaitable[None]]) -> None:
    """Call ``look_again`` whenever something in ``root`` may have changed, and now and then while
    it is not there."""
    is_told = False
    while True:
        with capture_error() as attempt:
            await _watch(root, look_again)
        if attempt.error is not None and not is_told:
            logger.error(
                "%s cannot be watched; it is looked at every %g s",
                root,
                LOOK_SECONDS,
                exc_info=attempt.error,
            )
            is_told = True
        await asyncio.sleep(LOOK_SECONDS)
        await look_again()


async def _watch(root: Path, look_again: Callable[[], Awaitable[None]]) -> None:
    """The same for as long as ``root`` is there."""
    if not await asyncio.to_thread(root.is_dir):
        return
    watching = awatch(
        root,
        watch_filter=PluginFileFilter(root),
        debounce=DEBOUNCE_MS,
        step=STEP_MS,
        yield_on_timeout=True,
    )
    is_first = True  # the watching began with it, and something may have changed before
    async with contextlib.aclosing(watching):
        async for some in watching:
            is_there = await asyncio.to_thread(root.is_dir)
            if some or is_first or not is_there:
                await look_again()
            if not is_there:
                return
            is_first = False


class PluginFileFilter(DefaultFilter):
    """What makes a plugin another: manifests, code, and folders that come and go, but no data that
    a plugin writes."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self._root = root

    def __call__(self, change: Change, path: str) -> bool:
        changed = Path(path)
        is_code = (
            changed.suffix == ".py" or changed.name == MANIFEST or changed.parent == self._root
        )
        return is_code and super().__call__(change, path)


def _is_plugin(root: Path, name: str) -> bool:
    return (
        name.isprintable()
        and len(name) <= NAME_CHARS
        and not name.startswith(".")
        and (root / name / MANIFEST).is_file()
    )


def _found(root: Path, name: str) -> PluginFolder:
    folder = root / name
    try:
        manifest = read_manifest(folder)
    except ManifestError as fault:
        return PluginFolder(name, _stamp(folder), fault="\n".join(fault.lines))
    return PluginFolder(
        name, _stamp(folder), manifest.id, manifest.version, manifest=manifest.as_json()
    )


def _duplicate(found: PluginFolder, owner: str) -> PluginFolder:
    fault = gettext(
        "The id %(id)s is in two folders, %(first)s and %(second)s; only the first counts."
    ) % {
        "id": found.plugin_id,
        "first": owner,
        "second": found.folder,
    }
    return replace(found, fault=fault)


def _stamp(folder: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for number, file in enumerate(_code(folder)):
        if number >= MOST_FILES:
            break
        try:
            state = file.stat()
        except OSError:
            continue
        digest.update(
            f"{file.relative_to(folder)}\0{state.st_size}\0{state.st_mtime_ns}\0".encode(
                errors="replace"
            )
        )
    return digest.hexdigest()


def _code(folder: Path) -> Iterator[Path]:
    for changed, folders, files in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and name not in DefaultFilter.ignore_dirs
        )
        yield from (
            Path(changed, name)
            for name in sorted(files)
            if name.endswith(".py") or name == MANIFEST
        )


#: Of each plugin, the newest that are kept.
LINES_KEPT, CRASHES_KEPT = 1_000, 50
#: A state that was not confirmed for so long is that of a process which is gone.
STALE = timedelta(seconds=60)


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


def add_newest(rows: Sequence[Event], most: int) -> None:
    """Store ``rows``, all of one model, and keep the newest ``most`` of each plugin."""
    kept, stored = _existing(row.plugin_id for row in rows), type(rows[0])._default_manager
    for row in rows:
        row.pk = None  # it has one from a transaction that was not committed
    stored.bulk_create(row for row in rows if row.plugin_id in kept)
    for pk in kept:
        mine = stored.filter(plugin_id=pk)
        oldest = mine.order_by("-pk").values_list("pk", flat=True)[most : most + 1].first()
        if oldest is not None:
            mine.filter(pk__lte=oldest).delete()


def write_reports(reports: Sequence[PluginReport]) -> None:
    kept, now = _existing(report.plugin_pk for report in reports), timezone.now()
    for report in reports:
        values: dict[str, Any] = asdict(report) | {"seen_at": now}
        key = {"plugin_id": values.pop("plugin_pk"), "process_id": values.pop("process_id")}
        if not report.state:
            PluginStatus.objects.filter(**key).delete()
        elif report.plugin_pk in kept:
            PluginStatus.objects.update_or_create(defaults=values, **key)


def confirm_processes(process_ids: Sequence[str]) -> None:
    """Store heartbeats of these processes, and delete the rows of processes without one for
    long."""
    now = timezone.now()
    PluginStatus.objects.filter(process_id__in=process_ids).update(seen_at=now)
    PluginStatus.objects.filter(seen_at__lt=now - STALE).delete()


def delete_process_reports(process_ids: Sequence[str]) -> None:
    """These processes have nothing to do with any plugin any more."""
    PluginStatus.objects.filter(process_id__in=process_ids).delete()


def _existing(pks: Iterable[int]) -> set[int]:
    """Of ``pks`` those that have a row: the operator may have deleted it meanwhile."""
    return set(Plugin.objects.filter(pk__in=set(pks)).values_list("pk", flat=True))


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
