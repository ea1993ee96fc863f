"""What a backup is refused for."""

from typing import Protocol

from django.utils.translation import gettext as _


class BackupError(Exception):
    """A backup cannot be made, read or restored; the text says why, for the operator."""


class WrongPassphraseError(BackupError):
    """A sealed backup that the passphrase given, if any, does not open."""


def damaged(what: str) -> BackupError:
    """For a file that is not as it was written."""
    words = _("The file is no whole backup: %s. It was cut, damaged or changed.")
    return BackupError(words % what)


class Tell(Protocol):
    """Hears how far the work called ``label`` is."""

    def __call__(self, label: str, done: int, total: int) -> None: ...
