"""Reminders of the benchmark: put on record in a child process, and how late they were said, by the
record."""

import contextlib
import sqlite3
from datetime import datetime, timedelta
from pathlib import Path

from benchmarks.chats import chats

#: Chats that they are spread over.
CHATS = 200
#: Seconds until the first is due, in which those are spread that are looked at one by one.
LEAD, SPREAD = 5, 20


def seed_reminders(pending: int, spread: int, at_once: int) -> None:
    """``pending`` that are due in a year, ``spread`` due within :data:`SPREAD` seconds, and
    ``at_once`` in one second after them."""
    from django.utils import timezone

    from agent.models import ChatSession, Reminder

    now = timezone.now()
    sessions = [
        ChatSession.objects.get_or_create(
            account=str(chat.account),
            kind=chat.kind,
            peer_id=str(chat.peer_id),
            defaults={"last_message_at": now},
        )[0]
        for chat in chats(CHATS, first=9_000)
    ]
    seconds = [
        *(365 * 86_400.0 + number for number in range(pending)),
        *(LEAD + SPREAD * number / max(1, spread) for number in range(spread)),
        *(LEAD + SPREAD + 10 + number / max(1, at_once) for number in range(at_once)),
    ]
    Reminder.objects.bulk_create(
        Reminder(
            session=sessions[number % CHATS],
            text=("far", "near")[after < 86_400],
            set_by="1",
            due_at=now + timedelta(seconds=after),
        )
        for number, after in enumerate(seconds)
    )


def read_lateness(folder: Path, skipped: int = 0) -> list[float]:
    """Seconds from the instant of each that was said until its message was on record, in the order
    of the instants, without the first ``skipped``."""
    [path] = folder.glob("*.sqlite3")
    query = """SELECT r.due_at, said.created_at FROM agent_reminder r
        JOIN agent_run run ON run.message_id = r.last_message
        JOIN agent_message said ON said.run_id = run.id AND said.direction = 'out'
        WHERE said.state = 'delivered' ORDER BY r.due_at LIMIT -1 OFFSET ?"""
    with contextlib.closing(sqlite3.connect(path)) as database:
        pairs = database.execute(query, (skipped,)).fetchall()
    moments = [[datetime.fromisoformat(one) for one in pair] for pair in pairs]
    return [(said - due).total_seconds() for due, said in moments]
