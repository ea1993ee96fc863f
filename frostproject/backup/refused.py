"""What a backup is refused for."""

from collections.abc import Callable

from django.utils.translation import gettext as _


class BackupError(Exception):
    """A backup cannot be made, read or restored; the text says why, for the operator."""


class WrongPassphraseError(BackupError):
    """A sealed backup that the passphrase given, if any, does not open."""


def damaged(what: str) -> BackupError:
    """For a file that is not as it was written."""
    words = _("The file is no whole backup: %s. It was cut, damaged or changed.")
    return BackupError(words % what)


#: Hears how far the work of a name is: what is done, of how much.
Tell = Callable[[str, int, int], None]
