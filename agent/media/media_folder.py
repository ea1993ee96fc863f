"""The files that may leave this machine: those of the media folder, put there by the operator or by
a tool.

Our own copies of media in messages are stored apart. They can be sent as well, but no name that a
model gives leads to them (:func:`locate_media_file`): a tool that sends one has found it in its own
chat.

A file is checked twice: by its name when it is requested, and again when it is opened, because it
may have been replaced by then. The second check follows no links.
"""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from django.conf import settings

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
