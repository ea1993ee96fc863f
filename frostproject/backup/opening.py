"""A file is opened as a backup and checked as a whole."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from frostproject.backup.archive import Archive
from frostproject.backup.passphrase import ask_passphrase, given_passphrase
from frostproject.backup.refused import BackupError, Tell, WrongPassphraseError
from frostproject.backup.restoring import Restore


@contextmanager
def open_backup(file: Path, options: dict[str, Any], tell: Tell) -> Iterator[Restore]:
    """What can be restored, all of which has been checked. Raises BackupError for any other
    file."""
    try:
        with _open(file, given_passphrase(options)) as archive:
            restore = Restore(archive, tell)
            restore.check()
            yield restore
    except OSError as error:
        words = _("%(file)s cannot be read: %(reason)s")
        raise BackupError(words % {"file": file, "reason": error.strerror or error}) from error


def _open(file: Path, passphrase: str) -> Archive:
    try:
        return Archive(file, passphrase)
    except WrongPassphraseError:
        if passphrase or not (typed := ask_passphrase(_("Passphrase of the backup: "))):
            raise
        return Archive(file, typed)
