"""Stickers on record and on disk: rows follow the files of the folder, and what was sent is
counted."""

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from django.db.models import F
from django.utils import timezone

from agent.domain.errors import MediaError
from agent.domain.file_types import HEAD, sniff_mime_type
from agent.media.media_folder import locate_media_file, open_media_file
from agent.models import Sticker
from agent.models.sticker import FOLDER, PATH_LIMIT, WORDS_LIMIT

#: What every client sends as a picture.
TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp", "image/bmp"})
ENDINGS = (".jpg", ".jpeg", ".png", ".gif", ".webp", ".bmp")
#: Bytes of the largest sticker.
LARGEST = 10 * 2**20
#: Files of the folder that are known; new ones that one look takes in, and their bytes together,
#: one file more or less.
FILES, NEW_AT_ONCE, BYTES_AT_ONCE = 5_000, 200, 32 * 2**20
#: Stickers that one choice is made among.
CANDIDATES = 2_000


@dataclass(frozen=True, slots=True)
class StickerCandidate:
    """A sticker that may be sent; ``path`` is relative to the stickers' folder."""

    pk: int
    path: str
    words: str
    tags: str
    last_used_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class FolderLook:
    """What a look at the folder found: the stamps of its files by path, and the content hashes of
    those that are new or have changed."""

    stamps: Mapping[str, str]
    hashes: Mapping[str, str]


def sync_stickers() -> int:
    """Bring the rows in line with the folder; how many stickers may be sent. Asks the disk: not in
    the database thread."""
    known = load_known_stickers()
    return take_in_stickers(look_at_folder(known))


def load_known_stickers() -> dict[str, str]:
    """The stamps of the files on record that are not missing, by path."""
    return {path: row.stamp for path, row in _load_rows().items() if not row.is_missing}


def look_at_folder(known: Mapping[str, str]) -> FolderLook:
    """Ask the disk what is there, and read what is not as ``known``: not all of it at once, the
    next look continues."""
    stamps, hashes, room = dict(islice(_stamps(), FILES)), dict[str, str](), BYTES_AT_ONCE
    changed = (path for path, stamp in stamps.items() if known.get(path) != stamp)
    for path in islice(changed, NEW_AT_ONCE):
        hashes[path] = _content_hash(path)
        room -= int(stamps[path].partition(":")[0])
        if room <= 0:
            break
    return FolderLook(stamps, hashes)


def take_in_stickers(look: FolderLook) -> int:
    """Bring the rows in line with ``look``; how many stickers may be sent."""
    rows = _load_rows()
    lost = {path: row for path, row in rows.items() if path not in look.stamps}
    gone = [row.pk for row in lost.values() if not row.is_missing]
    Sticker.objects.filter(pk__in=gone).update(is_missing=True)
    missing = {row.sha256: row for row in lost.values()}
    for path, sha256 in look.hashes.items():
        facts = {"path": path, "stamp": look.stamps[path], "sha256": sha256, "is_missing": False}
        _take_in(facts, rows.get(path) or (missing.pop(sha256, None) if sha256 else None))
    return count_usable_stickers()


def _load_rows() -> dict[str, Sticker]:
    known = Sticker.objects.only("path", "stamp", "sha256", "is_missing")
    return {row.path: row for row in known.order_by("is_missing", "-pk")[: 2 * FILES]}


def count_usable_stickers() -> int:
    """How many stickers may be sent, by their rows alone."""
    return Sticker.objects.filter(enabled=True, is_missing=False).exclude(sha256="").count()


def list_sticker_candidates() -> list[StickerCandidate]:
    """The stickers that may be sent, those first that were not used for longest; at most
    :data:`CANDIDATES`."""
    rows = Sticker.objects.filter(enabled=True, is_missing=False).exclude(sha256="")
    rows = rows.order_by(F("last_used_at").asc(nulls_first=True), "pk")[:CANDIDATES]
    return [
        StickerCandidate(*row)
        for row in rows.values_list("pk", "path", "words", "tags", "last_used_at")
    ]


def mark_stickers_sent(pk: int) -> None:
    """Count a sticker as sent just now."""
    Sticker.objects.filter(pk=pk).update(use_count=F("use_count") + 1, last_used_at=timezone.now())


def mark_stickers_missing(pk: int) -> None:
    """Note that a file could not be found when it was to be sent; the next look finds it when it
    comes back."""
    Sticker.objects.filter(pk=pk).update(is_missing=True)


def locate_sticker(path: str) -> Path | None:
    """Where the sticker of that path lies; None when the path leads out of the media folder."""
    return locate_media_file(f"{FOLDER}/{path}")


def sticker_stamp(path: str) -> str:
    """A fingerprint that shows whether the file of a sticker has changed; "" for a missing file."""
    target = locate_sticker(path)
    try:
        return _stamp(target.lstat()) if target else ""
    except OSError:
        return ""


def _stamp(facts: os.stat_result) -> str:
    return f"{facts.st_size}:{facts.st_mtime_ns}"


def _take_in(facts: dict[str, Any], known: Sticker | None) -> None:
    """Put a file on record that is new or has changed. One that was moved keeps its words."""
    if known is not None:
        Sticker.objects.filter(pk=known.pk).update(**facts)
    else:
        words = words_from_path(facts["path"])
        Sticker.objects.bulk_create([Sticker(**facts, words=words)], ignore_conflicts=True)


def words_from_path(path: str) -> str:
    """What a file's name and folders say of it: ``猫/开心 cat_2.png`` is ``猫 开心 cat 2``."""
    parts = PurePosixPath(path).with_suffix("").parts
    return " ".join(" ".join(parts).replace("_", " ").replace("-", " ").split())[:WORDS_LIMIT]


def _content_hash(path: str) -> str:
    """The hash of a file's content, "" for one that is no picture or cannot be read."""
    target = locate_sticker(path)
    if target is None:
        return ""
    try:
        with open_media_file(target) as file:
            content = file.read(LARGEST + 1)
    except MediaError:
        return ""
    is_fit = sniff_mime_type(content[:HEAD]) in TYPES and len(content) <= LARGEST
    return hashlib.sha256(content).hexdigest() if is_fit else ""


def _stamps() -> Iterator[tuple[str, str]]:
    """Path, and size with time of change, of every picture of the folder that is not hidden.
    Follows no link."""
    top = locate_media_file(FOLDER)
    if top is None:
        return
    for folder, inner, names in os.walk(top):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        for name in sorted(
            name for name in names if name.lower().endswith(ENDINGS) and not name.startswith(".")
        ):
            file = Path(folder, name)
            try:
                facts = file.lstat()
                path = file.relative_to(top).as_posix()
                path.encode()
            except (OSError, UnicodeEncodeError):
                continue
            if len(path) <= PATH_LIMIT and stat.S_ISREG(facts.st_mode):
                yield path, _stamp(facts)
