"""Our own copies of the media in messages, on disk under the hash of their content.

A copy may have two pictures made from it: the one for models, if that is not the copy itself, and
the thumbnail of the admin. The folder is not the one that ``send_message`` may send from: the model
must not send one chat's media to another. Everything here blocks; callers on the event loop use a
thread.
"""

import contextlib
import errno
import hashlib
import os
import shutil
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agent.domain.file_types import HEAD, sniff_mime_type
from agent.llm.requests.messages import ModelPicture

HASH_CHARS = 64


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A copy on disk; ``mime`` is what its content is, "" where that is not known."""

    sha256: str
    mime: str
    size: int
    path: Path


@dataclass(frozen=True, slots=True)
class StoredContent:
    """The files on disk of one content: our copy and those made from it; ``used_at`` in seconds
    since 1970."""

    used_at: float
    size: int
    sha256: str

    @property
    def is_whole(self) -> bool:
        """Whether it has its name already, the hash of its content; until then it is being
        written."""
        return len(self.sha256) == HASH_CHARS


class FileStore:
    """The folder of the copies. What is in it is written once and never changed.

    When a file was changed is when it was used last. ``least_free`` are the bytes that have
    to be free on the disk: with less, nothing is kept any more.
    """

    def __init__(self, folder: Path, least_free: int = 0) -> None:
        self._folder = folder
        self.least_free = least_free
        self._lock = threading.Lock()
        self.written = 0
        """Bytes that this process has kept so far."""

    def has_room(self) -> bool:
        """Whether enough is free on the disk."""
        existing = next(
            folder for folder in (self._folder, *self._folder.parents) if folder.is_dir()
        )
        return shutil.disk_usage(existing).free >= self.least_free

    def put(self, content: bytes) -> StoredFile:
        """Keep ``content``, unless it is kept already. Raises OSError when the disk is full."""
        sha256 = hashlib.sha256(content).hexdigest()
        path = self.path(sha256)
        if not _used(path):
            self._count(len(content))
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
            part.write_bytes(content)
            part.replace(path)
        return StoredFile(sha256, sniff_mime_type(content[:HEAD]), len(content), path)

    def put_pieces(self, pieces: Iterable[bytes]) -> str:
        """Keep a content that comes in pieces; its hash. Raises OSError, and what ``pieces``
        raises: then nothing is kept."""
        name, digest = uuid.uuid4().hex, hashlib.sha256()
        part = self._folder / name[:2] / f"{name}.part"
        self._count(0)
        part.parent.mkdir(parents=True, exist_ok=True)
        try:
            with part.open("wb") as file:
                for piece in pieces:
                    self._count(len(piece))
                    digest.update(piece)
                    file.write(piece)
            path = self.path(digest.hexdigest())
            path.parent.mkdir(parents=True, exist_ok=True)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        return digest.hexdigest()

    def find(self, sha256: str) -> StoredFile | None:
        """The copy of that hash, None when it is gone."""
        path = self.path(sha256)
        try:
            with path.open("rb") as file:
                _used(path)
                return StoredFile(
                    sha256, sniff_mime_type(file.read(HEAD)), path.stat().st_size, path
                )
        except OSError:
            return None

    def path(self, sha256: str) -> Path:
        return self._folder / sha256[:2] / sha256

    def shown_path(self, sha256: str) -> Path:
        """Where the picture stands that models are shown, if the copy itself is not fit for it."""
        return self._folder / sha256[:2] / f"{sha256}.shown"

    def thumbnail_path(self, sha256: str) -> Path:
        return self._folder / sha256[:2] / f"{sha256}.thumb"

    def shown_source(self, sha256: str) -> Path:
        """The file of the picture as models are shown it."""
        shown = self.shown_path(sha256)
        return shown if shown.is_file() else self.path(sha256)

    def shown(self, sha256: str) -> ModelPicture | None:
        """The picture as models are shown it; None when it is gone."""
        path = self.shown_source(sha256)
        try:
            with path.open("rb") as file:
                return ModelPicture(
                    sniff_mime_type(file.read(HEAD)), os.fstat(file.fileno()).st_size, path
                )
        except OSError:
            return None

    def remove(self, sha256: str) -> None:
        """Delete the copy, the files made from it, and what failed writes left behind."""
        for path in self.path(sha256).parent.glob(f"{sha256}*"):
            path.unlink(missing_ok=True)

    def older_than(self, seconds: float) -> Iterator[str]:
        """The hashes of copies that were used last longer ago than ``seconds``."""
        limit = time.time() - seconds
        for entry, found in self._entries():
            if found.st_mtime < limit:
                yield entry.name.partition(".")[0]

    def stored(self) -> list[StoredContent]:
        """Everything there is, what was not used for longest first."""
        contents: dict[str, tuple[float, int]] = {}
        for entry, found in self._entries():
            sha256 = entry.name.partition(".")[0]
            used_at, size = contents.get(sha256, (0.0, 0))
            contents[sha256] = max(used_at, found.st_mtime), size + found.st_size
        return sorted(
            (StoredContent(*facts, sha256) for sha256, facts in contents.items()),
            key=lambda one: one.used_at,
        )

    def _entries(self) -> Iterator[tuple["os.DirEntry[str]", os.stat_result]]:
        for folder in sorted(self._folder.glob("??")):
            with contextlib.suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    with contextlib.suppress(FileNotFoundError):
                        yield entry, entry.stat(follow_symlinks=False)

    def _count(self, size: int) -> None:
        """Note that ``size`` bytes are about to be written. Raises OSError where there is no
        room."""
        if not self.has_room():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with self._lock:
            self.written += size


def _used(path: Path) -> bool:
    """Note that a file is of use now; False where there is none."""
    try:
        os.utime(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    except OSError:  # of another user, who may still let us read it
        return path.is_file()
    return path.is_file()
