"""``import``: what another program keeps, as rows of this one."""

# ruff: noqa: N999 - a command is called as its file

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandError
from django.utils.translation import gettext as _, ngettext

from agent.runtime import database
from frostproject.imports.making import Outcome, Plan, make, plan
from frostproject.imports.plan import ImportRefused
from frostproject.imports.reading import read_found
from frostproject.imports.sources import read_source
from tools.text.readable import escape_invisible_chars


class Command(BaseCommand):
    help = (
        "Shows what would be made of the data of AstrBot, LangBot or FrostAgent, of a persona, a "
        "character card, MCP servers or an OpenAPI document. With --yes it is made."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE_OR_FOLDER", help="A ZIP of a folder is as good.")
        parser.add_argument("--yes", action="store_true", help="Make the rows that are shown.")

    def handle(self, *arguments: Any, **options: Any) -> None:
        try:
            found = read_found(read_source(Path(options["file"])))
            database.migrate_embedded_database()  # it may come before the first start
            with database.explain_database_errors():
                planned = plan(found, None)
                if options["yes"]:
                    make(planned, None)
        except (ImportRefused, database.DatabaseRefused) as error:
            raise CommandError(escape_invisible_chars(str(error))) from error
        self._show(planned)
        if options["yes"]:
            words = ngettext("%d row was made.", "%d rows were made.", planned.made)
            self.stdout.write(words % planned.made, self.style.SUCCESS)
        else:
            self.stdout.write(_("Nothing was changed. With --yes the new rows are made."))

    def _show(self, planned: Plan) -> None:
        for one in planned.rows:
            self._write(f"[{one.outcome.label}] {one.kind_words}: {one.name}")
            for label, value in one.facts if one.outcome != Outcome.SAME else ():
                self._write(f"    {label}: {value}")
            for line in one.notes:
                self._write(f"    {line}")
        if planned.left:
            self.stdout.write(_("Left behind") + ":")
        for line in planned.left:
            self._write(f"  {line}")

    def _write(self, line: str) -> None:
        self.stdout.write(escape_invisible_chars(line.replace("\n", " ")))
