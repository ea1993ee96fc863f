"""How soon a process knows that another one has changed a row, on PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from agent.models import ChatSession, Manners, Reminder
from agent.runtime import settings_watch
from agent.runtime.settings_watch import SettingsWatch
from tests.agent.databases import in_place, postgres

__all__ = ["postgres"]

#: A change that is told ends a wait long before its end.
WAIT, SOON = 60.0, 20.0

Work = Callable[[], Any]


@pytest.fixture
def there(postgres, django_db_blocker) -> Callable[[Work], Any]:
    """Does work on the database, as another process would, in a thread."""

    def work(done: Work) -> Any:
        with in_place(postgres), django_db_blocker.unblock():
            postgres.inc_thread_sharing()
            try:
                return done()
            finally:
                postgres.dec_thread_sharing()

    return lambda done: asyncio.to_thread(work, done)


@pytest.fixture
async def watch(postgres, monkeypatch) -> AsyncIterator[SettingsWatch]:
    """One that listens."""
    monkeypatch.setattr(settings_watch, "REST_SECONDS", 0.0)
    found = SettingsWatch()
    with in_place(postgres):
        task = asyncio.get_running_loop().create_task(found.listen())
        async with asyncio.timeout(SOON):
            await found.wait(WAIT)  # it says so when it begins
    yield found
    task.cancel()
    await asyncio.wait([task])


async def test_a_saved_row_is_told_with_its_commit(watch, there):
    await there(lambda: Manners.objects.create(name="m"))
    async with asyncio.timeout(SOON):
        await watch.wait(WAIT)


async def test_a_change_in_bulk_is_told(watch, there):
    await there(lambda: Manners.objects.update(enabled=False))
    async with asyncio.timeout(SOON):
        await watch.wait(WAIT)


async def test_a_reminder_is_told_when_it_is_set_and_when_it_is_moved(watch, there):
    now = timezone.now()

    def remind() -> None:
        chat = ChatSession.objects.create(
            account="1", kind="group", peer_id="2", last_message_at=now
        )
        Reminder.objects.create(session=chat, text="x", due_at=now)

    for change in (remind, lambda: Reminder.objects.update(due_at=now)):
        await there(change)
        async with asyncio.timeout(SOON):
            await watch.wait(WAIT)


async def test_who_was_cut_off_listens_again_and_looks_what_it_missed(watch, there):
    def cut() -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE query LIKE 'LISTEN %%' AND datname = current_database()"
            )

    await there(cut)
    async with asyncio.timeout(SOON):
        await watch.wait(WAIT)


async def test_a_wait_without_a_change_ends_by_itself(watch):
    await watch.wait(0.0)


async def test_sqlite_has_nothing_to_tell():
    async with asyncio.timeout(SOON):
        await SettingsWatch().listen()
