"""``backup``: the whole installation into one file, while the server runs or not."""

import os
import signal
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError
from django.utils import timezone
from django.utils.translation import gettext as _

from frostproject.backup import daily, passphrase
from frostproject.backup.opening import open_backup
from frostproject.backup.progress import ProgressBar
from frostproject.backup.refused import BackupError
from frostproject.backup.saving import save


class Command(BaseCommand):
    help = (
        "Writes database, media, plugins and settings into one new file, while the server runs or "
        "not: sealed with a passphrase, or without keys and tokens. With --check it only says "
        "whether FILE could be restored."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "file",
            metavar="FILE",
            nargs="?",
            help="The new file; default: one with the time in its name, in the folder backups of "
            "the data folder.",
        )
        parser.add_argument("--check", action="store_true", help="Look at FILE and write nothing.")
        parser.add_argument(
            "--daily",
            action="store_true",
            help="That of the day, unless there is one; deletes the oldest of them.",
        )
        parser.add_argument(
            "--keep",
            metavar="N",
            type=int,
            help="Without FILE: delete the oldest that were made so, but for N of them.",
        )
        parser.add_argument(
            "--without-keys",
            action="store_true",
            help="Do not seal it, and leave keys and tokens out.",
        )
        passphrase.add_option(parser)

    def run_from_argv(self, argv: list[str]) -> None:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # removes what is half done
        super().run_from_argv(argv)

    def handle(self, *arguments: object, **options: object) -> None:
        try:
            if options["check"]:
                self._check(options)
            elif options["daily"]:
                os.nice(daily.NICENESS)
                daily.save_daily(passphrase.given_passphrase(options), ProgressBar())
            else:
                self._save(options)
        except BackupError as error:
            raise CommandError(error) from error

    def _check(self, options: dict[str, Any]) -> None:
        if not options["file"]:
            raise CommandError(_("--check wants the FILE to look at."))
        with open_backup(Path(options["file"]), options, ProgressBar()) as restore:
            for line in restore.describe():
                self.stdout.write(line)
        self.stdout.write(_("It can be restored."), self.style.SUCCESS)

    def _save(self, options: dict[str, Any]) -> None:
        if options["keep"] is not None and options["keep"] < 1:
            raise CommandError(_("--keep wants the number of files that stay, from 1 on."))
        given = "" if options["without_keys"] else passphrase.find_passphrase(options)
        name = daily.MANUAL.replace("*", f"{timezone.localtime():%Y-%m-%d-%H%M%S}")
        file = Path(options["file"] or settings.BACKUP_DIR / name)
        for name in save(file, given, ProgressBar()):
            self.stderr.write(_("Left out, since it cannot be read or named: %s") % ascii(name))
        if options["keep"] and not options["file"]:
            daily.delete_oldest(daily.MANUAL, options["keep"])
        if not given:
            self.stdout.write(_("It holds no keys and tokens, and what was said is not sealed."))
        self.stdout.write(f"{file.stat().st_size / 2**20:.1f} MiB")
        self.stdout.write(str(file), self.style.SUCCESS)  # the last line, for scripts
