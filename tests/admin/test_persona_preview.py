"""The preview of a persona: the request as it would be sent in a chat, without sending it."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from agent.models import EndpointChoice, ModelEndpoint, Note, Persona, Run
from tests.admin.record import answered, chat, logged_in, said

SAID = "how is the weather?"


@pytest.fixture
def sage(db: None) -> Persona:
    row: Persona = Persona.objects.create(
        name="sage",
        prompt="You speak in {chat_kind}. You like {food}.",
        examples=[["hi", "ho"]],
        tool_choice="only",
        tools="get_weather",
    )
    return row


def preview(browser: Client, row: Persona, session: str = "700", text: str = SAID) -> Any:
    sent = {"session": session, "text": text}
    return browser.post(f"/admin/agent/persona/{row.pk}/preview/", sent)


def test_the_whole_request_is_shown_and_nothing_is_kept(browser: Client, sage: Persona):
    session = chat()
    answered(said(session, "earlier words", in_history=True), "earlier answer", in_history=True)
    runs = Run.objects.count()
    shown = preview(browser, sage).context["preview"]
    roles, texts = zip(*shown["messages"], strict=True)
    assert roles == ("system", "user", "assistant", "user")
    assert texts[0].startswith("You speak in 群聊. You like {food}.")
    assert "用户：hi\n你：ho" in texts[0]
    assert "earlier words" in texts[1]
    assert SAID in texts[3]
    assert [name for name, _ in shown["tools"]] == ["get_weather"]
    assert "{food}" in shown["notes"][0]
    assert Run.objects.count() == runs


def test_the_endpoints_are_shown_in_order_with_what_each_is_sent(browser: Client, sage: Persona):
    session = chat()
    for _ in range(5):
        answered(said(session, "many words " * 300, in_history=True), in_history=True)
    fields = {"base_url": "http://127.0.0.1:9/v1", "temperature": 0.5}
    small = ModelEndpoint.objects.create(name="Small", model="s", window=2000, **fields)
    large = ModelEndpoint.objects.create(name="Large", model="l", **fields)
    for position, endpoint in enumerate((large, small), 1):
        EndpointChoice.objects.create(
            persona=sage, role="chat", endpoint=endpoint, position=position
        )
    first, second = preview(browser, sage).context["preview"]["endpoints"]
    assert (first["endpoint"].name, second["endpoint"].name) == ("Large", "Small")
    assert '"temperature": 0.5' in first["body"]
    assert first["left_out"] == 0
    assert second["left_out"] > 0
    assert second["tokens"] < first["tokens"]


def test_notes_are_shown_and_not_counted_as_used(browser: Client, sage: Persona):
    session = chat()
    said(session)
    note = Note.objects.create(
        platform="onebot",
        account=session.account,
        owner_kind="person",
        owner_id="20001",
        text="likes tea",
        visibility="everywhere",
    )
    before = Note.objects.filter(pk=note.pk).values().get()
    preview(browser, sage)
    assert Note.objects.filter(pk=note.pk).values().get() == before


def test_a_chat_that_there_is_not_is_said_at_its_field(browser: Client, sage: Persona):
    assert "There is no such chat on record." in preview(browser, sage, "1").content.decode()


def test_who_may_not_read_chats_sees_no_preview(db: None, sage: Persona):
    client = logged_in("viewer")
    user = User.objects.get(pk=client.session["_auth_user_id"])
    user.groups.clear()
    user.user_permissions.add(
        *Permission.objects.filter(codename__in=("view_persona", "view_every_chat"))
    )
    assert preview(client, sage).status_code == 403
