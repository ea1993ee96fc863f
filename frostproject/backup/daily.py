"""The backup of the day: one of some that are kept, in one folder."""

import fcntl
import shutil
from pathlib import Path

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _

from agent.runtime.daily_backup import KEPT, PATTERN, is_due
from frostproject.backup.refused import BackupError, Tell
from frostproject.backup.saving import save

NICENESS = 10
#: The names of those made by hand into the same folder.
MANUAL = "frostagent-*.zip"


def save_daily(passphrase: str, tell: Tell) -> None:
    """Make it, unless there is one or another process makes it; the oldest go. Raises
    BackupError."""
    folder = Path(settings.BACKUP_DIR)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / ".lock").open("w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return
        if not is_due():
            return
        for left in folder.glob(".backup-*"):  # by one that was killed
            shutil.rmtree(left, ignore_errors=True)
        file = folder / PATTERN.replace("*", f"{timezone.localtime():%Y-%m-%d-%H%M%S}")
        save(file, passphrase, tell)
        limit = settings.BACKUP_KEEP_BYTES
        _refuse_large(file, limit)
        delete_oldest(PATTERN, KEPT, limit)


def _refuse_large(newest: Path, limit: int) -> None:
    if limit and (size := newest.stat().st_size) > limit:
        newest.unlink()
        words = _("The daily backup would take %(size)d MiB, and may take %(limit)d.")
        raise BackupError(words % {"size": size >> 20, "limit": limit >> 20})


def delete_oldest(pattern: str, most: int, limit: int = 0) -> None:
    """Keep the newest of ``pattern``, at most ``most`` of them and ``limit`` bytes; 0 is none."""
    taken = 0
    files = Path(settings.BACKUP_DIR).glob(pattern)
    for number, file in enumerate(sorted(files, reverse=True), start=1):
        taken += file.stat().st_size
        if number > most or (limit and taken > limit):
            file.unlink()
