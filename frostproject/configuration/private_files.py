"""Checks that other users of this machine cannot access our files: the data folder, the database,
the .env file.

No other program serves files from the data folder, so no other user needs permissions on it.
"""

import contextlib
import itertools
import logging
import os
import re
import shlex
import stat
import tempfile
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from django.utils.translation import gettext as _

logger = logging.getLogger(__name__)

PROJECT = Path(__file__).resolve().parents[2]
OTHERS_RIGHTS = stat.S_IRWXG | stat.S_IRWXO
#: The most files and folders that a start checks. The others are in folders that are private by
#: then.
MAX_LOOKED_AT = 5_000
#: Names of one sentence.
MAX_NAMED = 5
#: Names of files that only this program creates, and names of other files that may be in a folder
#: of ours.
_OWN = re.compile(
    r"frostagent\.sqlite3.*|\.?(?:secret_key|onebot_access_token|http_api_token)(?:\..*)?"
    r"|received|backups|restored\.env"
)
_USUAL = re.compile(r"media|static|cache|lost\+found|\.gitkeep|\.gitignore|\.DS_Store")


def restrict_folder(folder: Path) -> None:
    """Take from others every right on ``folder`` and what is in it, as far as both are ours.

    Links are not followed; what belongs to others, or has a second name elsewhere, stays as
    it is. Of a folder that is used for other things too, only what is surely ours is closed.
    """
    if os.name != "posix":
        return
    is_alone = is_ours_alone(folder)
    inside = itertools.islice(_inside(folder, everything=is_alone), MAX_LOOKED_AT)
    for path in itertools.chain([folder] if is_alone else [], inside, _database_files()):
        if (found := _facts(path)) and found.st_mode & OTHERS_RIGHTS and _may_be_changed(found):
            with contextlib.suppress(OSError):  # what stays open is reported
                os.chmod(path, stat.S_IMODE(found.st_mode) & ~OTHERS_RIGHTS)


def is_ours_alone(folder: Path) -> bool:
    """Whether nothing in ``folder`` can be of use to another program."""
    if is_shared_folder(folder):
        return False
    with contextlib.suppress(OSError):
        return all(_OWN.fullmatch(name) or _USUAL.fullmatch(name) for name in os.listdir(folder))
    return False


def is_shared_folder(folder: Path) -> bool:
    """Whether ``folder`` is one that other programs need: a home, a temporary folder, or one above
    this program."""
    own = {PROJECT, Path(tempfile.gettempdir()).resolve(), Path("~").expanduser().resolve()}
    found = _facts(folder)
    is_sticky = found is not None and bool(found.st_mode & stat.S_ISVTX)
    return is_sticky or folder in own or any(folder in one.parents for one in own)


def find_exposed_paths(folder: Path) -> list[Path]:
    """What of the folder, its top level and the database others have a right on."""
    if os.name != "posix":
        return []
    is_alone = is_ours_alone(folder)
    try:
        names = sorted(name for name in os.listdir(folder) if is_alone or _OWN.fullmatch(name))
    except OSError:
        names = []
    paths = dict.fromkeys([folder, *(folder / name for name in names), *_database_files()])
    return [path for path in paths if is_open_to_others(path)]


def is_open_to_others(path: Path) -> bool:
    """Whether others have a right on a file or folder; False for a link, and for what is not
    there."""
    found = _facts(path)
    return os.name == "posix" and found is not None and bool(found.st_mode & OTHERS_RIGHTS)


def is_owned_by_others(folder: Path) -> bool:
    """Whether another user owns ``folder``, and so may always read it."""
    found = _facts(folder)
    return os.name == "posix" and found is not None and found.st_uid != os.geteuid()


class Exposure(NamedTuple):
    """What others can get at, and what to do about it. ``holds_database``: they can read all that
    was said."""

    text: str
    advice: str
    holds_database: bool = False


def list_exposures(folder: Path, dotenv: Path) -> Iterator[Exposure]:
    """What others can get at."""
    if is_owned_by_others(folder):
        text = (
            _(
                "The data folder %s belongs to another user of this machine, who can read "
                "everything in it."
            )
            % folder
        )
        yield Exposure(text, f"sudo chown -R {os.geteuid()} {shlex.quote(str(folder))}")
    if paths := find_exposed_paths(folder):
        is_read = any(is_readable_by_others(one) for one in _database_files())
        yield Exposure(_can_read(*paths), _advice(folder, paths), is_read)
    if is_open_to_others(dotenv):
        yield Exposure(_can_read(dotenv), f"chmod go= {shlex.quote(str(dotenv))}")


def is_readable_by_others(path: Path) -> bool:
    """Whether others may read a file, and enter its folder."""
    found, around = _facts(path), _facts(path.parent)
    return (
        os.name == "posix"
        and found is not None
        and around is not None
        and bool(found.st_mode & (stat.S_IRGRP | stat.S_IROTH))
        and bool(around.st_mode & (stat.S_IXGRP | stat.S_IXOTH))
    )


def _can_read(*paths: Path) -> str:
    named = ", ".join(map(str, paths[:MAX_NAMED])) + (" …" if len(paths) > MAX_NAMED else "")
    return _("Other users of this machine can read %s") % named


def _advice(folder: Path, paths: list[Path]) -> str:
    """How to make ``paths`` private: by the whole folder where that is open, and the paths outside
    it."""
    if folder not in paths:
        return f"chmod go= {shlex.join(map(str, paths))}"
    if is_shared_folder(folder):
        return _("Name a folder in FROST_DATA_DIR that is used for nothing else.")
    if not is_ours_alone(folder):
        return f"chmod go= {shlex.join(map(str, paths))}"
    return f"chmod -R go= {shlex.join(str(path) for path in paths if folder not in path.parents)}"


def log_exposures(folder: Path, dotenv: Path) -> None:
    """Say in the log what others can get at."""
    for found in list_exposures(folder, dotenv):
        logger.warning("%s -> %s", found.text, found.advice)


def _inside(folder: Path, *, everything: bool) -> Iterator[Path]:
    """The contents of ``folder``, the upper levels first; links are listed but not followed."""
    folders = deque([folder])
    while folders:
        current = folders.popleft()
        with contextlib.suppress(OSError), os.scandir(current) as entries:
            for entry in entries:
                if everything or current != folder or _OWN.fullmatch(entry.name):
                    yield Path(entry.path)
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(Path(entry.path))


def _database_files() -> list[Path]:
    """The file of the embedded database and the files that SQLite creates next to it."""
    database = settings.DATABASES["default"]
    if "sqlite" not in str(database["ENGINE"]):
        return []
    return [
        Path(f"{database['NAME']}{ending}")
        for ending in ("", "-wal", "-shm", "-journal", ".lock", ".made")
    ]


def _facts(path: Path) -> os.stat_result | None:
    """What is known of a file or folder; None for a link, anything else, and what is not there."""
    with contextlib.suppress(OSError):
        found = path.lstat()
        return found if stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode) else None
    return None


def _may_be_changed(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid() and (stat.S_ISDIR(found.st_mode) or found.st_nlink == 1)
