"""Taking over on PostgreSQL while whoever was taken for dead is just writing."""

import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction
from django.db.backends.postgresql.base import DatabaseWrapper
from django.utils import timezone

from agent.models import Message, Run, ServerProcess, Step, ToolCall
from agent.record.waiting.recovery import claim_messages, record_heartbeat
from tests.agent.databases import in_place, postgres
from tests.agent.talk import PRIVATE, accept, message

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


def test_what_another_process_is_just_claiming_is_left_to_it():
    first, second = (accept(message(text), process_id="dead")[0].pk for text in "ab")
    with psycopg.connect(connection.connection.info.dsn) as late:
        late.execute("UPDATE agent_message SET claimed_by = 'late' WHERE id = %s", [first])
        ServerProcess.objects.create(pk="late", pid=1, last_seen_at=NOW)
        ending = threading.Thread(target=_commit_once_waited_for, args=(late,))
        ending.start()
        with transaction.atomic():
            assert [one.pk for one in claim_messages(PRIVATE.account, "me")] == [second]
        ending.join()
    assert Message.objects.get(pk=first).claimed_by == "late"


def _commit_once_waited_for(late: "psycopg.Connection[Any]") -> None:
    with psycopg.connect(late.info.dsn, autocommit=True) as watcher:
        while not watcher.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone():
            pass
    late.commit()
