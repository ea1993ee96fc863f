"""``forget_media``: delete the copies of pictures, voice and files that were not used for some
days."""

import asyncio
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError
from django.utils.translation import gettext as _, ngettext

from agent.media.media_store import prune_copies_by_age
from agent.record.record import Record
from agent.runtime import wiring


class Command(BaseCommand):
    help = (
        "Delete the copies of pictures, voice and files in messages that were not used for some "
        "days."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--days",
            type=int,
            help="Days since they were used last; MEDIA_KEEP_DAYS if not given, 0 for all copies.",
        )

    def handle(self, *arguments: Any, **options: Any) -> None:
        days = options["days"]
        if days is None:
            days = settings.MEDIA_KEEP_DAYS
            if not days:
                raise CommandError(
                    _("MEDIA_KEEP_DAYS is 0: copies are kept for ever. Say --days to delete some.")
                )
        if days < 0:
            raise CommandError(_("--days must not be negative."))
        count = asyncio.run(_forget(days))
        self.stdout.write(
            ngettext("%(count)d copy was deleted.", "%(count)d copies were deleted.", count)
            % {"count": count}
        )


async def _forget(days: int) -> int:
    record = Record("")
    try:
        return await prune_copies_by_age(record, wiring.build_file_store(), days)
    finally:
        await record.close()
