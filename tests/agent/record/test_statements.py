"""The statements of the message path, each tried on both databases."""

from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.db.backends.postgresql.base import DatabaseWrapper

from agent.models import (
    ChatEvent,
    ChatSession,
    Digest,
    Message,
    Note,
    Run,
    SpendSum,
    Step,
    Tally,
    ToolCall,
    ToolOffer,
)
from agent.models.activity import ANSWER_SECONDS
from agent.record.ground import statements
from agent.record.ground.statements import Statement
from agent.record.ground.versions import parse_versions
from tests.agent.databases import inside, postgres
from tools.live_rows import ConfigVersion, LiveKind

__all__ = ["postgres"]
pytestmark = pytest.mark.django_db

ALL = {name: one for name, one in vars(statements).items() if isinstance(one, Statement)}
AT = datetime(2026, 11, 24, 8, 30, 0, 123456, UTC)
PLACE: dict[str, object] = {
    "platform": "onebot",
    "account": "10001",
    "kind": "group",
    "peer_id": "30001",
}
WORDS = "100 % “好的” \\u4e2d 😀"


@pytest.fixture(params=["sqlite", "postgresql"])
def keys(request: pytest.FixtureRequest) -> Iterator[dict[str, object]]:
    """The keys of one row of each kind, in one database and in the other."""
    other = request.param == "postgresql"
    database: DatabaseWrapper | None = request.getfixturevalue("postgres") if other else None
    with inside(database) if database else nullcontext():
        assert connection.vendor == request.param
        yield make_rows()


def make_rows() -> dict[str, object]:
    session = ChatSession.objects.create(
        **dict[str, Any](PLACE), title=WORDS, state={"a": 1}, last_message_at=AT
    )
    heard: dict[str, Any] = {"sender_id": "20001", "sender_name": "Ann", "in_history": True}
    heard["state"] = "waiting"
    message = Message.objects.create(
        session=session, direction="in", event_key="7", claim_number=1, created_at=AT, **heard
    )
    by_hand: dict[str, Any] = {"direction": "out", "state": "pending", "author": "ann"}
    Message.objects.create(session=session, created_at=AT, **by_hand)
    run = Run.objects.create(session=session, claim_number=1, place="here", started_at=AT)
    step = Step.objects.create(run=run, number=1, created_at=AT)
    call = ToolCall.objects.create(
        run=run, step=step, tool_name="time", created_at=AT, state="pending", claimed_by="p2"
    )
    offer = ToolOffer.objects.create(digest="abc")
    Note.objects.create(text="note")
    summary: dict[str, Any] = {"kind": "summary", "text": WORDS, "first_run": 5, "last_run": 5}
    Digest.objects.create(session=session, created_at=AT, **summary)
    Tally.objects.create(subject="one")
    SpendSum.objects.create(day="2026-11-24", kind="total", currency="CNY", cost_nano=5)
    ConfigVersion.objects.update_or_create(pk=1, defaults={"number": 3})
    return {
        "session": session.pk,
        "message": message.pk,
        "run": run.pk,
        "step": step.pk,
        "call": call.pk,
        "offer": offer.pk,
    }


#: Whatever the statements ask for beside the keys; those that add two rows have two of some.
VALUES: dict[str, dict[str, object]] = {
    "read_versions": {},
    "lock_runs": {"runs": "[run]"},
    "find_session": PLACE,
    "add_sessions": {**PLACE, "peer_id": ("1", "2"), "title": WORDS, "now": AT},
    "touch_session": {**PLACE, "pk": "session", "now": AT, "keys": ["6", "7"]},
    "find_session_state": {},
    "find_names_of_person": {"person": "20001", "newest": 9, "names": 5},
    "find_speakers": {"newest": 9},
    "find_recent": {"before": 2**60, "newest": 9},
    "find_history": {"after": 0, "newest": 9},
    "find_waiting": {},
    "find_claimants": {},
    "find_claimable": {"account": "10001", "process": "p1"},
    "find_by_hand": {},
    "find_earlier": {"message": 2**31 - 1},
    "add_arrivals": {
        "state": "waiting",
        "reason": "mention",
        "detail": WORDS,
        "sender_id": "20001",
        "sender_name": "Ann",
        "sender_role": "",
        "message_id": "8",
        "text": WORDS,
        "segments": [{"type": WORDS}],
        "raw": {"a": [1.5, None]},
        "quoted_id": None,
        "temp_group_id": "",
        "event_key": ("8", "9"),
        "header": None,
        "claimed_by": "me",
        "claim_number": 1,
        "place": "here",
        "in_history": True,
        "happened_at": AT,
        "created_at": AT,
        "recalled_at": None,
        "settled_at": None,
    },
    "take_message": {"pk": "message", "claim_number": 1, "process": "me"},
    "add_runs": {
        "origin": "chat",
        "model": "m",
        "claimed_by": "me",
        "claim_number": 1,
        "place": "here",
        "persona": "",
        "config_version": 3,
        "started_at": AT,
    },
    "find_any_note": {},
    "find_offer": {"digest": "abc"},
    "add_steps": {
        "number": (2, 3),
        "phase": "action",
        "request": [WORDS],
        "tools": ["time"],
        "response": None,
        "finish_reason": "stop",
        "error": "",
        "input_tokens": 1,
        "output_tokens": 2,
        "latency_ms": 3,
        "created_at": AT,
        "endpoint": (None, 999),
        "endpoint_name": "e",
        "model": "m",
        "cached_tokens": 0,
        "reasoning_tokens": 0,
        "cost_nano": 2**40,
        "currency": "CNY",
        "parameters": "{}",
        "sent": None,
        "attempts": None,
        "rest": {"a": WORDS},
    },
    "add_calls": {
        "position": (1, 2),
        "call_id": "c",
        "tool_name": "time",
        "arguments": WORDS,
        "requested_by": "20001",
        "state": "waiting",
        "created_at": AT,
    },
    "begin_call": {"pk": "call"},
    "settle_call": {
        "pk": "call",
        "state": "succeeded",
        "provider_name": "p",
        "mocked": False,
        "result": WORDS,
        "structured_content": [WORDS],
        "error": "",
        "duration_ms": 1,
        "full_result": "",
        "verdict": None,
        "decided_by": None,
        "state_change": {"before": {}, "after": {"name": WORDS}},
    },
    "add_replies": {
        "state": "sent",
        "text": WORDS,
        "segments": [],
        "echo": ("a", "b"),
        "tool_call": None,
        "temp_group_id": "",
        "part": (None, 2),
        "claimed_by": "me",
        "created_at": AT,
    },
    "send_message": {"pk": "message", "echo": "c", "process": "me"},
    "settle_messages": {
        "pk": "message",
        "state": "delivered",
        "message_id": "5",
        "detail": WORDS,
        "in_history": True,
        "now": AT,
        "again": False,
    },
    "explain_message": {"pk": "message", "reason": "stopped"},
    "tell_run": {"pk": "run", "text": WORDS},
    "finish_runs": {
        "pk": "run",
        "state": "completed",
        "final_text": WORDS,
        "error": "",
        "notes": [WORDS],
        "now": AT,
        "model_calls": 1,
        "input_tokens": 2,
        "output_tokens": 3,
    },
    "find_summary": {"kind": "summary", "after": 4},
    "find_tallies": {"subjects": ["one", "two"]},
    "save_tallies": {
        "subject": ("one", "two"),
        "recent": "1:2",
        "day": "2026-11-24",
        "of_day": 1,
        "told_at": 2**40,
        "told_on": "",
        "silent_until": 0,
        "now": 2**40,
    },
    "add_spent": {
        "day": "2026-11-24",
        "kind": ("total", "chat"),
        "subject": "",
        "currency": "CNY",
        "calls": 1,
        "input": 2,
        "cached": 3,
        "output": 4,
        "reasoning": 5,
        "cost_nano": 2**40,
    },
    "add_events": {
        "key": ("1", "2"),
        "kind": "mute",
        "change": "ban",
        "user_id": "20001",
        "target_id": "",
        "operator_id": "",
        "message_id": "",
        "seconds": (60, None),
        "words": WORDS,
        "happened_at": (AT, None),
        "at": AT,
    },
    "find_spent": {"kind": "total", "subject": "", "first_day": "2026-11-01"},
    "find_ended": {"messages": "[message]"},
    "find_chats_of_runs": {"runs": "[run]"},
    "count_arrivals": {"day": "2026-11-24", "hour": (-1, 8), "received": 1, "addressed": 1},
    "count_endings": {
        "day": "2026-11-24",
        "hour": (-1, 8),
        "runs": 1,
        "failed_runs": 0,
        "later": 0,
        **dict.fromkeys(("answered", "failed", "sent", "unsent", "unknown"), 1),
        **{f"within_{seconds}": 1 for seconds in ANSWER_SECONDS},
    },
    "count_calls": {"day": "2026-11-24", "hour": (-1, 8), "calls": 1, "failures": 0},
    "count_tool_uses": {"day": "2026-11-24", "tool": ("a", "b"), "calls": 1, "failures": 0},
}


def filled(values: dict[str, object], keys: dict[str, object], place: int = 0) -> dict[str, object]:
    """``values`` with the keys that they name, and of what differs what row ``place`` has."""
    found = dict(keys)
    for name, value in values.items():
        one = value[place] if isinstance(value, tuple) else value
        if name in ("pk", "runs", "sessions", "messages") and isinstance(one, str):
            key = keys[one.strip("[]")]
            one = [key] if one.startswith("[") else key
        found[name] = one
    return found


def test_every_statement_is_tried():
    assert ALL.keys() == VALUES.keys()


@pytest.mark.parametrize("name", VALUES)
def test_each_does_what_it_says(name, keys):
    statement, values = ALL[name], VALUES[name]
    if "INSERT" in statement.text:
        found = statement.many([filled(values, keys, place) for place in (0, 1)])
        statement.add([])
        assert len(found) == (2 if "RETURNING" in statement.text else 0)
    elif name == "settle_messages":
        assert len(statement.many([filled(values, keys)])) == 1
    elif statement.text.lstrip().startswith("SELECT") or "RETURNING" in statement.text:
        assert len(statement.rows(**filled(values, keys))) >= 1
    else:
        changes = Statement(f"{statement.text.rstrip()} RETURNING id")
        assert len(changes.rows(**filled(values, keys))) == 1


def test_an_event_that_is_on_record_is_left_as_it_is(keys):
    row = filled(VALUES["add_events"], keys)
    assert statements.add_events.many([row]) == [(keys["session"], "1")]
    assert statements.add_events.many([row | {"words": "another"}]) == []
    event = ChatEvent.objects.get(key="1")
    assert (event.words, event.seconds, event.happened_at, event.at) == (WORDS, 60, AT, AT)


def test_what_is_written_is_read_again(keys):
    row = filled(VALUES["add_arrivals"], keys) | {"run": None}
    [pk] = statements.add_arrivals.add([row])
    message = Message.objects.get(pk=pk)
    assert (message.text, message.segments, message.raw) == (WORDS, row["segments"], row["raw"])
    assert (message.created_at, message.header, message.in_history) == (AT, None, True)
    chat = filled(VALUES["touch_session"], keys) | {"keys": ["8", "9"]}
    [[(key, at)]] = [row[4] for row in statements.touch_session.rows(**chat)]
    assert (key, statements.parse_moment(at)) == ("8", AT)
    [call] = statements.add_calls.add([filled(VALUES["add_calls"], keys)])
    assert ToolCall.objects.get(pk=call).arguments == WORDS


def test_an_end_is_written_once_unless_it_is_said_again(keys):
    outgoing: dict[str, Any] = {"direction": "out", "message_id": "4", "created_at": AT}
    other = Message.objects.create(session_id=keys["session"], **outgoing)
    row = filled(VALUES["settle_messages"], keys)
    rows = [row, row | {"pk": other.pk, "message_id": None, "run": None, "state": "failed"}]
    ended = sorted(statements.settle_messages.many(rows), key=lambda one: one[0])
    session, account = keys["session"], PLACE["account"]
    assert [tuple(one) for one in ended] == [
        (keys["message"], session, account, "in", "delivered", "", AT),
        (other.pk, session, account, "out", "failed", "", AT),
    ]
    message = Message.objects.get(pk=keys["message"])
    assert (message.message_id, message.run_id, message.detail) == ("5", keys["run"], WORDS)
    assert (message.in_history, message.settled_at) == (True, AT)
    other.refresh_from_db()
    assert (other.message_id, other.run_id, other.settled_at) == ("4", None, AT)
    assert statements.settle_messages.many(rows) == []
    assert len(statements.settle_messages.many([row | {"again": True}])) == 1


def test_many_runs_end_at_once_each_as_it_did(keys):
    started: dict[str, Any] = {"session_id": keys["session"], "started_at": AT}
    other = Run.objects.create(**started, model_calls=4)
    row = filled(VALUES["finish_runs"], keys)
    ends = [row, row | {"pk": other.pk, "state": "failed", "final_text": "", "notes": []}]
    statements.finish_runs.many(ends)
    found = Run.objects.order_by("pk").values_list("state", "final_text", "notes", "finished_at")
    assert list(found) == [("completed", WORDS, [WORDS], AT), ("failed", "", [], AT)]
    other.refresh_from_db()
    assert (other.model_calls, other.input_tokens, other.output_tokens) == (5, 2, 3)


def test_rows_that_are_there_are_added_to(keys):
    for _ in range(2):
        statements.add_spent.add([filled(VALUES["add_spent"], keys)])
    [(currency, *sums)] = statements.find_spent.rows(
        kind="total", subject="", first_day="2026-11-24"
    )
    assert (currency, [int(one) for one in sums]) == ("CNY", [4, 8, 2**41 + 5])


def test_any_number_of_rows_is_added_with_a_few_texts(keys):
    add = Statement("""
        INSERT INTO agent_chatsession (
            platform, account, kind, peer_id, title, state, discovered_tools, is_continuing,
            created_at, last_message_at
        ) VALUES (
            'onebot', %(at)s, 'group', %(at)s, '', '{}', '[]', false, '2026-11-29', '2026-11-29'
        ) RETURNING id
    """)
    counts = [*range(1, 12), 37, 64, 150]
    for count in counts:
        assert len(add.add([{"at": f"{count}-{number}"} for number in range(count)])) == count
    assert ChatSession.objects.filter(account__contains="-").count() == sum(counts)
    assert len(add._forms) == 11


def test_moments_and_json_are_read_from_what_a_change_returns(keys):
    ChatSession.objects.update(paused_until=AT)
    [row] = statements.touch_session.rows(**filled(VALUES["touch_session"], keys))
    assert (row[0], row[2], row[5], row[8]) == (WORDS, AT, {"a": 1}, [])
    assert parse_versions(row[3])[LiveKind.SETTINGS] == 3
    [state] = statements.find_session_state.rows(**keys)
    assert (state[0], state[3]) == ({"a": 1}, [])
