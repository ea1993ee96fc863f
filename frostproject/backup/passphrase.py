"""Where the passphrase of a backup comes from."""

import getpass
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from frostproject.backup.refused import BackupError


def add_option(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--passphrase-file",
        metavar="PATH",
        help="A file whose first line is the passphrase; without it FROST_BACKUP_PASSPHRASE "
        "counts, and in a terminal it is asked for.",
    )


def given_passphrase(options: dict[str, Any]) -> str:
    """That of the option or the environment, "" for none. Raises BackupError where the file has
    none."""
    path = options["passphrase_file"]
    if path is None:
        return str(settings.FROST_BACKUP_PASSPHRASE)
    try:
        text = Path(path).read_text("utf-8").partition("\n")[0].strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BackupError(_("The passphrase cannot be read: %s") % error) from error
    if not text:
        raise BackupError(_("There is no passphrase in the first line of %s.") % path)
    return text


def find_passphrase(options: dict[str, Any]) -> str:
    """That which is given, or typed in a terminal. Raises BackupError where there is none: nobody
    is to find out later that a backup holds no keys."""
    words = _("Passphrase to seal it with: ")
    if found := given_passphrase(options) or ask_passphrase(words, twice=True):
        return found
    words = _(
        "A backup is sealed with a passphrase, in FROST_BACKUP_PASSPHRASE or --passphrase-file, or "
        "made --without-keys: it then holds no keys and tokens, and is not sealed."
    )
    raise BackupError(words)


def ask_passphrase(words: str, *, twice: bool = False) -> str:
    """What is typed in a terminal, "" without one. Raises BackupError for two that differ."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return ""
    typed = getpass.getpass(words).strip()
    if typed and twice and getpass.getpass(_("Once more: ")).strip() != typed:
        raise BackupError(_("The two are not the same."))
    return typed
