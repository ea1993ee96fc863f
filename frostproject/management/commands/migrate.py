"""``migrate``: Django's, but a new database has the newest tables at once."""

from typing import Any

from django.core.management.base import no_translations
from django.core.management.commands import migrate

from frostproject.start import new_database

#: What is said beside this is for databases that have tables, or asks what would be done.
SPECIAL = ("app_label", "fake", "fake_initial", "plan", "check_unapplied", "prune")


class Command(migrate.Command):
    @no_translations
    def handle(self, *args: Any, **options: Any) -> None:
        alias = options["database"]
        if any(options[name] for name in SPECIAL) or not new_database.can_fill(alias):
            super().handle(*args, **options)
            return
        said = {name: options[name] for name in ("verbosity", "interactive")}
        new_database.fill(alias, stdout=self.stdout, **said)
        if options["verbosity"] >= 1:
            self.stdout.write("Made the tables of a new database.")
