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
        _delete_oldest(folder, file)


def _delete_oldest(folder: Path, newest: Path) -> None:
    limit = settings.BACKUP_KEEP_BYTES
    if limit and (size := newest.stat().st_size) > limit:
        newest.unlink()
        words = _("The daily backup would take %(size)d MiB, and may take %(limit)d.")
        raise BackupError(words % {"size": size >> 20, "limit": limit >> 20})
    taken = 0
    for number, file in enumerate(sorted(folder.glob(PATTERN), reverse=True), start=1):
        taken += file.stat().st_size
        if number > KEPT or (limit and taken > limit):
            file.unlink()
