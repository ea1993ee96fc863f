"""The files that may leave this machine: those of the media folder, put there by the operator or by
a tool.

Our own copies of media in messages are stored apart. They can be sent as well, but no name that a
model gives leads to them (:func:`locate_media_file`): a tool that sends one has found it in its own
chat.

A file is checked twice: by its name when it is requested, and again when it is opened, because it
may have been replaced by then. The second check follows no links.
"""

import contextlib
import itertools
import os
import re
import stat
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, BinaryIO

from django.conf import settings
from django.utils.translation import gettext as _

from agent.domain.errors import MediaError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
#: Not blocking: a named pipe that takes a file's place would be waited for at its opening.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def media_folder_root() -> Path:
    """The media folder itself, with links resolved."""
    return Path(settings.MEDIA_DIR).resolve()


def locate_media_file(name: str) -> Path | None:
    """``name`` relative to the media folder, with links resolved; None when it leads out of it.

    Says nothing of whether there is such a file.
    """
    folder = media_folder_root()
    try:
        target = (folder / name).resolve()
    except (OSError, ValueError, RuntimeError):
        return None
    return target if target.is_relative_to(folder) else None


def regular_file_size(path: Path) -> int | None:
    """Bytes of the regular file ``path``; None when it is none: missing, a folder, a pipe, a
    device."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


@contextlib.contextmanager
def open_media_file(path: Path) -> Iterator[BinaryIO]:
    """A regular file for reading, unbuffered; ``path`` as :func:`locate_media_file` gave it, or
    that of a copy.

    Raises :class:`MediaError` when it is gone, has become a link or a device, or cannot be
    read. Blocks while the disk does.
    """
    try:
        with open(_descriptor(path), "rb", buffering=0) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise MediaError(f"{path.name} is not a regular file")
            yield file
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not in the media folder"
        raise MediaError(f"{path.name} cannot be read from the media folder: {reason}") from error


def _descriptor(path: Path) -> int:
    """Walk to ``path`` folder by folder. Raises ValueError outside the folders, OSError at a
    link."""
    copies = Path(settings.RECEIVED_DIR).resolve()
    top = copies if path.is_relative_to(copies) else media_folder_root()
    *folders, name = path.relative_to(top).parts or [""]
    if ".." in folders or name in ("", ".."):
        raise ValueError(str(path))
    here = os.open(top, _FOLDER)
    try:
        for folder in folders:
            inner = os.open(folder, _FOLDER | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = inner
        return os.open(name, _FILE, dir_fd=here)
    finally:
        os.close(here)


# The media folder as the operator fills it: what lies there, under which name it is sent, and
# putting and taking away.
#
# Everything here asks the disk, and blocks while it does.

#: The largest file that is taken in, in bytes: QQ takes no larger video.
UPLOAD_BYTES = 100 * 2**20
#: Entries of one folder that are read.
LISTED = 10_000
#: Bytes of a name, of which file systems take 255, and those of its ending.
NAME_BYTES, ENDING_BYTES = 180, 20


class NameTaken(MediaError):  # noqa: N818 - it says what happened
    """There is a file of that name already, and it was not to be replaced."""


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """A file or a folder; ``path`` is what ``send_message`` calls it."""

    name: str
    path: str
    is_folder: bool

    def facts(self) -> tuple[int, datetime] | None:
        """Bytes, and when it was last changed; None when it is gone."""
        try:
            found = (media_folder_root() / self.path).lstat()
        except OSError:
            return None
        return found.st_size, datetime.fromtimestamp(found.st_mtime, UTC)


def list_folder(folder: str) -> tuple[list[FolderEntry], bool]:
    """Folders, then files of ``folder``, by name, and whether there are more than :data:`LISTED`.

    Links and names that begin with a dot are left out. Raises :class:`MediaError` when there is no
    such folder.
    """
    media_folder_root().mkdir(
        parents=True, exist_ok=True
    )  # the folder itself may have been tidied away
    directory = _folder(folder)
    try:
        with os.scandir(directory) as scan:
            seen = list(itertools.islice(scan, LISTED + 1))
            found = [_entry(one, directory) for one in seen[:LISTED] if _is_shown(one)]
    except OSError as error:
        raise MediaError(f"{folder or '/'}: {error.strerror}") from error
    return sorted(found, key=lambda entry: (not entry.is_folder, entry.name)), len(seen) > LISTED


def save_media_file(folder: str, name: str, chunks: Iterable[bytes], *, replace: bool) -> str:
    """Put a file into ``folder``, whole or not at all; the path to send it by.

    Its name is :func:`safe_name`. Raises :class:`NameTaken`, and :class:`MediaError` for a
    file that is too large or cannot be written.
    """
    directory, name = _folder(folder), safe_name(name)
    try:
        with _draft(directory) as draft:
            _write(draft, chunks)
            (os.replace if replace else os.link)(draft.name, directory / name)
    except FileExistsError as error:
        raise NameTaken(name) from error
    except OSError as error:
        raise MediaError(f"{name}: {error.strerror}") from error
    return str((directory / name).relative_to(media_folder_root()))


def remove_media_file(path: str) -> None:
    """Take one file away, or a link, but not what it leads to. Raises :class:`MediaError`."""
    parent, name = path.rpartition("/")[::2]
    if name in ("", ".", ".."):
        raise MediaError(_("“%(path)s” is not a file.") % {"path": path})
    try:
        (_folder(parent) / name).unlink()
    except (OSError, ValueError) as error:
        raise MediaError(f"{path}: {getattr(error, 'strerror', error)}") from error


def safe_name(name: str) -> str:
    """``name`` in letters, digits, ``-``, ``_`` and ``.`` alone, of any script; never hidden, never
    too long."""
    plain = (
        re.sub(r"[^-\w.]", "_", unicodedata.normalize("NFC", name.strip())).lstrip(".") or "file"
    )
    stem, ending = os.path.splitext(plain)
    return _cut(stem, NAME_BYTES) + _cut(ending, ENDING_BYTES)


def _cut(text: str, length: int) -> str:
    return text.encode()[:length].decode(errors="ignore")


def _folder(name: str) -> Path:
    found = locate_media_file(name)
    if found is None or not os.path.isdir(
        found
    ):  # unlike that of pathlib, it takes names that are too long
        raise MediaError(_("“%(path)s” is no folder of the media folder.") % {"path": name})
    return found


def _is_shown(entry: "os.DirEntry[str]") -> bool:
    return not entry.name.startswith(".") and (
        entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)
    )


def _entry(entry: "os.DirEntry[str]", directory: Path) -> FolderEntry:
    path = str((directory / entry.name).relative_to(media_folder_root()))
    return FolderEntry(entry.name, path, entry.is_dir(follow_symlinks=False))


@contextlib.contextmanager
def _draft(directory: Path) -> Iterator[IO[bytes]]:
    """A hidden file in ``directory`` that is gone afterwards, unless it got another name."""
    with tempfile.NamedTemporaryFile(dir=directory, prefix=".upload-", delete=False) as draft:
        try:
            yield draft
        finally:
            Path(draft.name).unlink(missing_ok=True)


def _write(draft: IO[bytes], chunks: Iterable[bytes]) -> None:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > UPLOAD_BYTES:
            raise MediaError(
                _("The file is larger than %(limit)s MiB.") % {"limit": UPLOAD_BYTES >> 20}
            )
        draft.write(chunk)
    draft.flush()
