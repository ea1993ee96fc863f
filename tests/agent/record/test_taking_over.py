"""Taking over on PostgreSQL while whoever was taken for dead is just writing."""

import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.db.backends.postgresql.base import DatabaseWrapper
from django.utils import timezone

from agent.models import Run, Step, ToolCall
from agent.record.waiting.recovery import record_heartbeat
from tests.agent.databases import in_place, postgres

NOW = timezone.now()
__all__ = ["postgres"]  # a fixture


@pytest.fixture(autouse=True)
def _on_postgres(db: None, postgres: DatabaseWrapper) -> Iterator[None]:
    with in_place(postgres):
        yield


def test_a_call_that_begins_while_its_run_is_taken_over_is_of_unknown_outcome():
    run = Run.objects.create(claimed_by="late", started_at=NOW)
    step = Step.objects.create(run=run, number=1, request=[], tools=[], created_at=NOW)
    calls = [
        ToolCall.objects.create(
            run=run, step=step, position=place, arguments={}, state=state, created_at=NOW
        )
        for place, state in enumerate(("succeeded", "waiting"))
    ]
    with psycopg.connect(connection.connection.info.dsn) as late:
        late.execute("SELECT id FROM agent_run WHERE id = %s FOR NO KEY UPDATE", [run.pk])
        late.execute("UPDATE agent_toolcall SET state = 'running' WHERE id = %s", [calls[1].pk])
        ending = threading.Thread(target=_commit_once_waited_for, args=(late,))
        ending.start()
        record_heartbeat("me", alone=False, is_first=True)
        ending.join()
    run.refresh_from_db()
    assert (run.state, [call.state for call in step.tool_calls.order_by("pk")]) == (
        "interrupted",
        ["succeeded", "unknown"],
    )


def _commit_once_waited_for(late: "psycopg.Connection[Any]") -> None:
    with psycopg.connect(late.info.dsn, autocommit=True) as watcher:
        while not watcher.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone():
            pass
    late.commit()
