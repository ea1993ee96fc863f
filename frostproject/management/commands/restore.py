"""``restore``: makes of a backup this installation, which is empty."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError
from django.utils.translation import gettext as _

from frostproject.backup import passphrase
from frostproject.backup.belongings import RESTORED_ENV
from frostproject.backup.opening import open_backup
from frostproject.backup.progress import ProgressBar
from frostproject.backup.refused import BackupError
from frostproject.configuration import private_files


class Command(BaseCommand):
    help = (
        "Restores a backup that manage.py backup has made, of this or an older version, into this "
        "installation, which is stopped and empty, or is replaced with --yes. All of it is checked "
        "first."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="The backup.")
        passphrase.add_option(parser)
        parser.add_argument(
            "--yes", action="store_true", help="Replace an installation that is not empty."
        )

    def handle(self, *arguments: Any, **options: Any) -> None:
        try:
            with open_backup(Path(options["file"]), options, ProgressBar()) as restore:
                given_up = restore.run(replaces=options["yes"])
                missing = restore.find_missing_keys()
        except BackupError as error:
            raise CommandError(error) from error
        private_files.restrict_folder(settings.DATA_DIR)
        self.stdout.write(_("Restored. Start the server now."), self.style.SUCCESS)
        if given_up:
            words = _("%d messages that were being answered are not answered again.")
            self.stdout.write(words % given_up)
        if restore.mended:
            words = _("Rows in which signs that PostgreSQL does not take were replaced: %d")
            self.stdout.write(words % restore.mended)
        if (found := settings.DATA_DIR / RESTORED_ENV).exists():
            words = _(
                "Settings that were other than here are in %s: copy to .env what is to count."
            )
            self.stdout.write(words % found)
        if missing:
            words = _("Not in the backup; here they are new, or have to be entered again:")
            self.stdout.write("\n  ".join([words, *missing]), self.style.WARNING)
