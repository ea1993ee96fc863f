"""The folder of plugins: what is in it, and when that changes. Nothing in it is ever imported
here."""

import asyncio
import contextlib
import hashlib
import logging
import os
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from django.utils.translation import gettext
from watchfiles import Change, DefaultFilter, awatch

from tools.error_boundary import capture_error
from tools.plugins.manifest import MANIFEST, ManifestError, read_manifest

logger = logging.getLogger(__name__)

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
    manifest: dict[str, Any] = field(default_factory=dict)


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
    async with contextlib.aclosing(watching):
        await look_again()  # what changed before it was watched
        async for some in watching:
            is_there = await asyncio.to_thread(root.is_dir)
            if some or not is_there:
                await look_again()
            if not is_there:
                return


class PluginFileFilter(DefaultFilter):
    """What makes a plugin another: manifests, code, and folders that come and go, but no data that
    a plugin writes."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self._root = root

    def __call__(self, change: Change, path: str) -> bool:
        place = Path(path)
        is_code = place.suffix == ".py" or place.name == MANIFEST or place.parent == self._root
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
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and name not in DefaultFilter.ignore_dirs
        )
        yield from (
            Path(place, name) for name in sorted(files) if name.endswith(".py") or name == MANIFEST
        )
