"""``review_notes``: look through the notes now and put up for decision what could be one or could
go."""

import asyncio
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand
from django.utils.translation import gettext as _

from agent.llm.meter import meter
from agent.memory.review import review_notes
from agent.record.record import Record
from agent.runtime import wiring
from tools.registry.settings import SettingsCache


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

    def handle(self, *arguments: Any, **options: Any) -> None:
        uses_model = bool(settings.UPSTREAM_ENDPOINT) and not options["without_model"]
        merges, retirements = asyncio.run(self._review(uses_model=uses_model))
        self.stdout.write(
            _("Proposed: %(merges)d merges, %(retirements)d deletions.")
            % {
                "merges": merges,
                "retirements": retirements,
            }
        )

    async def _review(self, *, uses_model: bool) -> tuple[int, int]:
        record = Record("review", SettingsCache(), lambda: None)
        meter.set_receiver(record.spend)
        model = wiring.build_chat_model() if uses_model else None
        try:
            return await review_notes(record, model)
        finally:
            if model is not None:
                await model.close()
            meter.set_receiver(None)
            await record.close()
