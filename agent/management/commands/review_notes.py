"""``review_notes``: look through the notes now and put up for decision what could be one or could
go."""

import asyncio
from argparse import ArgumentParser

from django.core.management import BaseCommand
from django.utils.translation import gettext as _

from agent.domain.endpoint import ModelRole
from agent.llm.spending import meter
from agent.memory.review import review_notes
from agent.record.record import Record
from agent.runtime import wiring


class Command(BaseCommand):
    """Nothing is changed but notes that have expired, which are deleted."""

    help = (
        "Propose which notes could become one and which could go; the admin shows the proposals "
        "for decision."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--without-model", action="store_true", help="Look at the age of the notes alone."
        )

    def handle(self, *arguments: object, **options: object) -> None:
        uses_model = not options["without_model"]
        merges, retirements = asyncio.run(self._review(uses_model=uses_model))
        self.stdout.write(
            _("Proposed: %(merges)d merges, %(retirements)d deletions.")
            % {
                "merges": merges,
                "retirements": retirements,
            }
        )

    async def _review(self, *, uses_model: bool) -> tuple[int, int]:
        record = Record("review")
        book = wiring.build_endpoint_book(record)
        meter.set_receiver(record.spend)
        try:
            await record.submit(record.run_starter.reload_settings)
            model = book.find_model(ModelRole.MEMORY) if uses_model else None
            return await review_notes(record, model)
        finally:
            await book.close()
            meter.set_receiver(None)
            await record.close()
