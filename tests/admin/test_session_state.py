"""The state of a chat is edited on its page, and nothing else of it is."""

import json
from typing import Any

from django.test import Client

from agent.domain.chat_state import SIZE_LIMIT
from agent.models import ChatSession
from tests.admin.record import chat, faults, page
from tools.models import ToolConfigChange


def address(session: ChatSession) -> str:
    return f"/admin/agent/chatsession/{session.pk}/change/"


def save(client: Client, session: ChatSession, state: Any, **fields: Any) -> list[str]:
    """Send the form of a page that showed the state as it is now; returns the faults, none if it
    was saved."""
    shown = json.dumps(ChatSession.objects.get(pk=session.pk).state)
    form = {
        "state": state if isinstance(state, str) else json.dumps(state),
        "initial-state": shown,
        "_continue": "Save",
    }
    found = faults(client, address(session), form | fields)
    return [problem for problems in found.values() for problem in problems]


def state_of(session: ChatSession) -> Any:
    return ChatSession.objects.get(pk=session.pk).state


def test_the_state_is_shown_and_saved(browser: Client):
    session = chat()
    assert 'name="initial-state"' in page(browser, address(session) + "?panel=settings")
    state = {"city": "北京", "app:n": 1, "user:ratio": 0.5, "名字": None, "is_on": True}
    assert save(browser, session, state) == []
    assert state_of(session) == state
    assert "北京" in page(browser, address(session) + "?panel=settings")


def test_nothing_else_of_the_chat_is_saved_with_it(browser: Client):
    session = chat(title="before")
    assert save(browser, session, {"a": 1}, title="forged", peer_id="1", account="2") == []
    now = ChatSession.objects.get(pk=session.pk)
    assert (now.title, now.peer_id, now.account) == ("before", "700", "10001")
    assert now.last_message_at == session.last_message_at


NO_STATES: list[tuple[Any, str]] = [
    ([1], "Write an object"),
    ('"text"', "Write an object"),
    ("{", "valid JSON"),
    ("9" * 5000, "valid JSON"),
    ({"a-b": 1}, "“a-b” is no name"),
    ({"x:a": 1}, "“x:a” is no name"),
    ({"": 1}, "“” is no name"),
    ({"temp:a": 1}, "temp:"),
    ({"a": [1]}, "“a” needs a text, a number"),
    ({"a": {}}, "“a” needs a text, a number"),
    ('{"a": NaN}', "valid JSON"),
    ('{"a": [NaN]}', "valid JSON"),
    ({"a": "x" * SIZE_LIMIT}, "16384 bytes"),
]


def test_what_cannot_be_a_state_is_refused_with_the_reason(browser: Client):
    session = chat()
    for state, words in NO_STATES:
        (problem,) = save(browser, session, state)
        assert words in problem
        assert state_of(session) == {}


def test_every_problem_has_a_line_and_what_was_typed_is_shown_again(browser: Client):
    session = chat()
    assert len(save(browser, session, {"a-b": 1, "c": [], "d": 1})) == 2
    typed = '{"a-b":   1}'
    text = browser.post(address(session), {"state": typed}).content.decode()
    assert "&quot;a-b&quot;:   1" in text
    assert 'id="state"' in text


def test_what_a_tool_stored_may_stay_whatever_its_shape(browser: Client):
    session = chat()
    ChatSession.objects.filter(pk=session.pk).update(state={"list": [1, {"x": None}], "a": 1})
    assert save(browser, session, {"list": [1, {"x": None}], "a": 2}) == []
    assert state_of(session) == {"list": [1, {"x": None}], "a": 2}
    assert len(save(browser, session, {"list": [1], "a": 2})) == 1


def test_what_a_tool_stores_while_somebody_edits_is_not_lost(browser: Client):
    session = chat()
    shown = json.dumps({"a": 1, "b": 1, "c": 1})
    ChatSession.objects.filter(pk=session.pk).update(state={"a": 2, "b": 1, "c": 1, "by_tool": 3})
    assert save(browser, session, {"a": 1, "b": 5}, **{"initial-state": shown}) == []
    assert state_of(session) == {"a": 2, "b": 5, "by_tool": 3}


def test_a_request_without_the_field_changes_nothing_and_an_emptied_one_empties_it(browser: Client):
    session = chat()
    ChatSession.objects.filter(pk=session.pk).update(state={"a": 1})
    assert browser.post(address(session), {}).status_code == 302
    assert state_of(session) == {"a": 1}
    assert save(browser, session, "") == []
    assert state_of(session) == {}


def test_a_change_is_on_record_with_its_author(browser: Client):
    session = chat()
    save(browser, session, {"a": 1})
    entry = ToolConfigChange.objects.get()
    subject = f"agent.chatsession:{session.pk}"
    assert (entry.subject, str(entry.author)) == (subject, "user-")
    page(browser, f"/admin/agent/chatsession/{session.pk}/history/")


def test_the_timing_gate_of_a_chat_is_set_beside_its_state_and_stays_when_it_is_left_out(
    browser: Client,
):
    session = chat()
    browser.post(address(session), {"timing_gate": "true", "state": "{}"})
    session.refresh_from_db()
    assert session.timing_gate is True
    browser.post(address(session), {"state": '{"a": 1}'})
    session.refresh_from_db()
    assert (session.timing_gate, session.state) == (True, {"a": 1})
