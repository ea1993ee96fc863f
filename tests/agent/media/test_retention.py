"""Copies are deleted when they were not used for long enough, and no sooner."""

import asyncio
import os
import time
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone, translation

from agent.media import media_store
from agent.media.file_store import StoredFile
from agent.media.media_store import prune_copies_by_age
from agent.models import KeptFile
from agent.runtime import wiring
from tests.environment import PATIENCE
from tests.pictures import picture

pytestmark = pytest.mark.django_db


def keep(seed: int, *, days_ago: float, has_row: bool = True) -> StoredFile:
    """A copy that was written and used last ``days_ago``."""
    kept = wiring.build_file_store().put(picture("PNG", (seed, seed, seed)))
    at = timezone.now() - timedelta(days=days_ago)
    if has_row:
        KeptFile.objects.create(
            sha256=kept.sha256, mime=kept.mime, size=kept.size, created_at=at, last_used_at=at
        )
    os.utime(kept.path, (time.time(), time.time() - days_ago * 86_400))
    return kept


@pytest.fixture
def copies(transactional_db: None, settings, tmp_path) -> dict[str, StoredFile]:
    settings.RECEIVED_DIR = tmp_path
    return {"old": keep(1, days_ago=31), "new": keep(2, days_ago=29)}


async def test_only_copies_that_were_not_used_for_long_go(record, copies):
    wiring.build_file_store().thumbnail_path(copies["old"].sha256).write_bytes(b"t")
    assert await prune_copies_by_age(record, wiring.build_file_store(), 30) == 1
    assert not list(copies["old"].path.parent.glob(f"{copies['old'].sha256}*"))
    assert copies["new"].path.exists()


async def test_a_copy_that_no_row_names_goes_as_well(record, copies):
    orphan = keep(3, days_ago=40, has_row=False)
    young = keep(4, days_ago=1, has_row=False)
    await prune_copies_by_age(record, wiring.build_file_store(), 30)
    assert (orphan.path.exists(), young.path.exists()) == (False, True)


async def test_an_old_copy_that_was_used_again_stays(record, copies):
    await _used_now(copies["old"])
    assert await prune_copies_by_age(record, wiring.build_file_store(), 30) == 0
    assert copies["old"].path.exists()


async def test_old_copies_go_while_the_server_runs(record, copies, monkeypatch):
    monkeypatch.setattr(media_store, "FIRST_SECONDS", 0.0)
    running = asyncio.create_task(media_store.run_copy_expiry(record, wiring.build_file_store()))
    async with asyncio.timeout(PATIENCE):
        while copies["old"].path.exists():  # noqa: ASYNC110 - nothing says when
            await asyncio.sleep(0.01)
    running.cancel()
    assert copies["new"].path.exists()


async def _used_now(kept: StoredFile) -> None:
    await KeptFile.objects.filter(sha256=kept.sha256).aupdate(last_used_at=timezone.now())


def told(**options: int) -> str:
    out = StringIO()
    call_command("forget_media", stdout=out, **options)
    return out.getvalue()


def test_the_command_keeps_what_the_settings_keep(copies):
    assert "1" in told()
    assert (copies["old"].path.exists(), copies["new"].path.exists()) == (False, True)


def test_the_command_deletes_everything_when_it_is_told_so(copies):
    assert "2" in told(days=0)
    assert not KeptFile.objects.exists()


def test_the_command_asks_for_days_where_copies_are_kept_for_ever(copies, settings):
    settings.MEDIA_KEEP_DAYS = 0
    with translation.override("en"):
        with pytest.raises(CommandError, match="MEDIA_KEEP_DAYS"):
            told()
        with pytest.raises(CommandError, match="negative"):
            told(days=-1)
