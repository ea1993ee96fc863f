"""The state of a chat: what calls make of it, and what is stored of that."""

import logging
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import transaction

from agent.domain.chat_state import (
    SIZE_LIMIT,
    ChatState,
    StateChange,
    diff_states,
    stored_state_size,
)
from agent.models import ChatSession
from agent.record.chats.sessions import load_session_state, save_changes
from tests.admin.record import chat

Values = dict[str, Any]


def called(state: ChatState, **changes: Any) -> StateChange | None:
    """What is to be stored after a call that set ``changes``."""
    call = state.open_copy()
    call.given.update(changes)
    return state.apply_copy(call, "t")


def stored(session: ChatSession) -> Any:
    return ChatSession.objects.get(pk=session.pk).state


# --- What a call changes --------------------------------------------------------


def test_a_call_that_changes_nothing_leaves_nothing_to_store():
    assert called(ChatState(1, {"a": [1, {"b": 2}]})) is None
    assert called(ChatState(1)) is None


def test_what_a_call_sets_changes_and_removes_is_told_name_by_name():
    state = ChatState(1, {"same": 1, "old": [1], "gone": 2})
    call = state.open_copy()
    call.given["new"] = "x"
    call.given["old"].append(2)
    del call.given["gone"]
    assert state.apply_copy(call, "t") == StateChange(
        1, {"new": "x", "old": [1, 2]}, frozenset({"gone"})
    )
    assert state.values == {"same": 1, "old": [1, 2], "new": "x"}


@pytest.mark.parametrize(("before", "after"), [(1, True), (0, False), (1, 1.0), (None, "")])
def test_values_that_only_python_takes_for_the_same_are_different(before: Any, after: Any):
    assert called(ChatState(1, {"a": before}), a=after) == StateChange(1, {"a": after})


def test_temporary_values_are_there_for_the_next_call_and_never_stored():
    state = ChatState(1)
    assert called(state, **{"temp:page": 2}) is None
    call = state.open_copy()
    assert call.given == {"temp:page": 2}
    call.given.clear()
    assert state.apply_copy(call, "t") is None
    assert state.values == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"not-a-name": 1},
        {"other:a": 1},
        {3: 1},
        {"a": datetime(2026, 1, 1, tzinfo=UTC)},
        {"a": float("nan")},
        {"a": {1, 2}},
    ],
)
def test_what_cannot_be_stored_leaves_the_value_that_was_and_is_logged(
    changes: Values, caplog: pytest.LogCaptureFixture
):
    state = ChatState(1, {"a": "before"})
    call = state.open_copy()
    call.given.update(changes | {"b": 1})
    with caplog.at_level(logging.WARNING):
        assert state.apply_copy(call, "shouter") == StateChange(1, {"b": 1})
    assert state.values["a"] == "before"
    assert "shouter" in caplog.text


def test_a_value_that_holds_itself_is_left_out():
    loop: list[Any] = []
    loop.append(loop)
    assert called(ChatState(1), a=loop) is None


def test_text_that_no_database_holds_is_made_storable():
    assert called(ChatState(1), a="\0x\ud800") == StateChange(1, {"a": "\ufffdx\ufffd"})


def test_a_state_that_would_be_too_large_stays_as_it_was(caplog: pytest.LogCaptureFixture):
    state = ChatState(1, {"a": "x" * (SIZE_LIMIT // 2)})
    assert called(state, b="字" * (SIZE_LIMIT // 4)) is None
    assert "b" not in state.values
    assert "left out" in caplog.text
    assert called(state, b="字" * 100) is not None


def test_a_state_that_is_too_large_already_may_become_smaller():
    state = ChatState(1, {"a": "x" * SIZE_LIMIT, "b": "y" * 100})
    assert stored_state_size(state.values) > SIZE_LIMIT
    assert called(state, b="") == StateChange(1, {"b": ""})


def test_what_a_tool_does_to_its_copy_after_the_call_changes_nothing():
    state = ChatState(1, {"a": [1]})
    call = state.open_copy()
    state.apply_copy(call, "t")
    call.given["a"].append(2)
    assert state.values == {"a": [1]}


def test_calls_that_overlap_each_take_over_what_they_changed():
    state = ChatState(1, {"a": 1, "b": 1})
    outer, inner = state.open_copy(), state.open_copy()
    inner.given["a"] = 2
    outer.given["b"] = 2
    assert state.apply_copy(inner, "inner") == StateChange(1, {"a": 2})
    assert state.apply_copy(outer, "outer") == StateChange(1, {"b": 2})
    assert state.values == {"a": 2, "b": 2}


def test_without_a_chat_values_last_for_the_run_alone():
    state = ChatState()
    assert called(state, a=1) is None
    assert state.open_copy().given == {"a": 1}


# --- On record ------------------------------------------------------------------


@pytest.mark.django_db
def test_a_chat_begins_with_nothing_and_keeps_what_is_saved():
    session, other = chat(), chat("701")
    assert load_session_state(session.pk).state == {}
    save_changes(
        [
            StateChange(session.pk, {"a": "北京"}),
            StateChange(session.pk, {"b": [1]}, frozenset({"a"})),
        ]
    )
    assert load_session_state(session.pk).state == {"b": [1]}
    assert load_session_state(other.pk).state == {}


@pytest.mark.django_db
def test_saving_keeps_what_somebody_else_stored_meanwhile():
    session = chat()
    seen = load_session_state(session.pk).state
    save_changes([StateChange(session.pk, {"theirs": 1, "both": 1})])
    save_changes([diff_states(session.pk, seen, {"mine": 2, "both": 2})])
    assert stored(session) == {"theirs": 1, "both": 2, "mine": 2}


@pytest.mark.django_db
def test_saving_touches_nothing_but_the_state():
    session = chat(title="before")
    ChatSession.objects.filter(pk=session.pk).update(title="after")
    save_changes([StateChange(session.pk, {"a": 1})])
    session.refresh_from_db()
    assert (session.title, session.state) == ("after", {"a": 1})


@pytest.mark.django_db
def test_a_chat_that_is_gone_has_no_state_and_takes_none():
    with transaction.atomic():
        save_changes([StateChange(999, {"a": 1})])
    assert load_session_state(999).state == {}
    assert load_session_state(None).state == {}


@pytest.mark.django_db
@pytest.mark.parametrize("odd", [[1], "text", 7])
def test_a_state_that_is_no_object_counts_as_none(odd: Any):
    session = chat()
    ChatSession.objects.filter(pk=session.pk).update(state=odd)
    assert load_session_state(session.pk).state == {}
    save_changes([StateChange(session.pk, {"a": 1})])
    assert stored(session) == {"a": 1}
