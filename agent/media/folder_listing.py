"""The media folder as the operator fills it: what lies there, under which name it is sent, and
putting and taking away.

Everything here asks the disk, and blocks while it does.
"""

import contextlib
import itertools
import os
import re
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from django.utils.translation import gettext as _

from agent.domain.errors import MediaError
from agent.media.media_folder import locate_media_file, media_folder_root

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
    place = _folder(folder)
    try:
        with os.scandir(place) as scan:
            seen = list(itertools.islice(scan, LISTED + 1))
            found = [_entry(one, place) for one in seen[:LISTED] if _is_shown(one)]
    except OSError as error:
        raise MediaError(f"{folder or '/'}: {error.strerror}") from error
    return sorted(found, key=lambda entry: (not entry.is_folder, entry.name)), len(seen) > LISTED


def save_media_file(folder: str, name: str, chunks: Iterable[bytes], *, replace: bool) -> str:
    """Put a file into ``folder``, whole or not at all; the path to send it by.

    Its name is :func:`safe_name`. Raises :class:`NameTaken`, and :class:`MediaError` for a
    file that is too large or cannot be written.
    """
    place, name = _folder(folder), safe_name(name)
    try:
        with _draft(place) as draft:
            _write(draft, chunks)
            (os.replace if replace else os.link)(draft.name, place / name)
    except FileExistsError as error:
        raise NameTaken(name) from error
    except OSError as error:
        raise MediaError(f"{name}: {error.strerror}") from error
    return str((place / name).relative_to(media_folder_root()))


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
    place = locate_media_file(name)
    if place is None or not os.path.isdir(
        place
    ):  # unlike that of pathlib, it takes names that are too long
        raise MediaError(_("“%(path)s” is no folder of the media folder.") % {"path": name})
    return place


def _is_shown(entry: "os.DirEntry[str]") -> bool:
    return not entry.name.startswith(".") and (
        entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)
    )


def _entry(entry: "os.DirEntry[str]", place: Path) -> FolderEntry:
    path = str((place / entry.name).relative_to(media_folder_root()))
    return FolderEntry(entry.name, path, entry.is_dir(follow_symlinks=False))


@contextlib.contextmanager
def _draft(place: Path) -> Iterator[IO[bytes]]:
    """A hidden file in ``place`` that is gone afterwards, unless it got another name."""
    with tempfile.NamedTemporaryFile(dir=place, prefix=".upload-", delete=False) as draft:
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
