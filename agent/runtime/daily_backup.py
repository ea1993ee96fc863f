"""The backup of the day, made by a process of its own: when it is due, and what became of it.

A row switches it on. Its folder says when the last one was made, so that nothing is written in the
database for it.
"""

import asyncio
import contextlib
import logging
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path

from django.conf import settings

from agent.runtime.daily_work import DailyWork
from tools.error_boundary import log_errors

logger = logging.getLogger(__name__)

PATTERN = "daily-*.zip"
#: How many are kept; and how old the newest may be before another is made, in seconds.
KEPT, EVERY_SECONDS = 7, 24 * 3600 - 60
#: Signs of what went wrong that are kept.
SAID = 2_000


def list_backups() -> list[Path]:
    """Those that are there, the newest first."""
    files = sorted(Path(settings.BACKUP_DIR).glob(PATTERN), reverse=True)
    return [one for one in files if one.is_file() and not one.is_symlink()]


def find_newest() -> Path | None:
    return next(iter(list_backups()), None)


def is_due() -> bool:
    newest = find_newest()
    return newest is None or newest.stat().st_mtime < time.time() - EVERY_SECONDS


def find_failure() -> tuple[float, str] | None:
    """When the last one failed and what was said, unless one was made since."""
    with contextlib.suppress(OSError):
        return _failure().stat().st_mtime, _failure().read_text("utf-8")
    return None


def _failure() -> Path:
    return Path(settings.BACKUP_DIR, "failed.txt")


def back_up_daily() -> DailyWork:
    """Has it made. Of one that is ended while it is under way nothing is left."""
    return DailyWork("daily backup", is_due, _make)


async def _make() -> None:
    with log_errors(logger, "The daily backup could not be started"):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "manage.py", "backup", "--daily"),
            cwd=settings.BASE_DIR,
            stdin=DEVNULL,
            stdout=DEVNULL,
            stderr=PIPE,
            process_group=0,
        )
        try:
            said = (await process.communicate())[1].decode("utf-8", "replace").strip()[-SAID:]
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        if process.returncode:
            said = said or f"exit status {process.returncode}"
            logger.error("The daily backup failed: %s", said)
            _failure().parent.mkdir(exist_ok=True, mode=0o700)
            _failure().write_text(said, "utf-8")
            return
        logger.info("The daily backup was made: %s", find_newest())
        _failure().unlink(missing_ok=True)
