"""``plugin new NAME`` makes a working example in the plugins folder; ``plugin check NAME`` loads
one and says what is wrong."""

import asyncio
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError
from django.utils.translation import gettext as _

from tools.plugins.example import check_plugin_name, example_files
from tools.plugins.manifest import MANIFEST, ManifestError, read_manifest
from tools.plugins.trial import LoadTrial, try_loading


class Command(BaseCommand):
    help = (
        "Make a new plugin, or check one: it is loaded in a process of its own, as the server "
        "would."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="new|check")
        new = actions.add_parser("new", help="Make a working example in the plugins folder.")
        new.add_argument("name", help="The name of the folder to make, like weather_news.")
        check = actions.add_parser(
            "check", help="Load a plugin and list its tools, or say why that is not possible."
        )
        check.add_argument(
            "folder", help="The name of a folder in the plugins folder, or the path of another."
        )

    def handle(self, *arguments: Any, **options: Any) -> None:
        if options["action"] == "new":
            self._new(options["name"])
        else:
            self._check(options["folder"])

    def _new(self, name: str) -> None:
        if problem := check_plugin_name(name):
            raise CommandError(problem)
        folder = Path(settings.PLUGINS_DIR) / name
        try:
            folder.mkdir(parents=True)
            for file, text in example_files(name).items():
                (folder / file).write_text(text, encoding="utf-8")
        except FileExistsError:
            raise CommandError(
                _("%(folder)s is there already; nothing was changed.") % {"folder": folder}
            ) from None
        except OSError as error:
            raise CommandError(
                _("%(folder)s cannot be written: %(reason)s")
                % {"folder": folder, "reason": error.strerror}
            ) from error
        self.stdout.write(self.style.SUCCESS(_("Made %(folder)s") % {"folder": folder}))
        self.stdout.write(
            _(
                "Next: enable it in the admin under Plugins, and change plugin.py: each time it is "
                "saved, it is loaded anew."
            )
        )
        self.stdout.write(
            _("To see what is wrong with it: manage.py plugin check %(name)s") % {"name": name}
        )

    def _check(self, wanted: str) -> None:
        folder = next(
            (
                each
                for each in (Path(settings.PLUGINS_DIR) / wanted, Path(wanted))
                if (each / MANIFEST).is_file()
            ),
            None,
        )
        if folder is None:
            raise CommandError(
                _("There is no plugin %(name)s: no folder with %(file)s.")
                % {"name": wanted, "file": MANIFEST}
            )
        try:
            manifest = read_manifest(folder)
        except ManifestError as problem:
            raise CommandError("\n".join([f"{MANIFEST}:", *problem.lines])) from None
        trial = asyncio.run(try_loading(folder.resolve(), manifest))
        self._tell(trial)
        if trial.problems:
            raise CommandError("\n".join(trial.problems))
        self.stdout.write(
            self.style.SUCCESS(
                _("%(name)s %(version)s is sound.")
                % {"name": manifest.id, "version": manifest.version}
            )
        )

    def _tell(self, trial: LoadTrial) -> None:
        for line in trial.lines:
            self.stdout.write(f"  | {line}")
        for spec in trial.tools:
            self.stdout.write(
                f"{spec.name}: {spec.description.splitlines()[0] if spec.description else '-'}"
            )
