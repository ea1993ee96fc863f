"""What pages ask of a million messages is answered by an index or within a window: never by a walk
through rows of all times."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agent.access import EVERYTHING
from agent.admin.chats.session_list import find_sessions_by_words
from agent.admin.chats.stream import load_message_runs
from agent.models import Message
from frostproject.cockpit.people import find_people, list_chats

pytestmark = pytest.mark.django_db
BOUNDED = ("INTEGER PRIMARY KEY (rowid", "(message_id=?)", "(sender_id=?")
"""How SQLite finds the rows: from an id on, or by a value in an index."""


def runs() -> Any:
    return load_message_runs([Message(pk=pk, direction="in") for pk in (3, 4)])


@pytest.mark.parametrize(
    "ask",
    [
        runs,
        lambda: find_sessions_by_words("word"),
        lambda: find_people("", EVERYTHING),
        lambda: find_people("word", EVERYTHING),
        lambda: list_chats("20001", EVERYTHING),
    ],
)
def test_rows_are_found_from_an_id_on_or_by_an_index(ask):
    with CaptureQueriesContext(connection) as asked:
        ask()
    for sql in [one["sql"] for one in asked if not one["sql"].endswith("DESC LIMIT 1")]:
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
            plan = [row[3] for row in cursor.fetchall()]
        assert any(way in plan[0] for way in BOUNDED), (sql, plan)
