"""Acts on the page of a chat: who may do what where, and what is on record afterwards."""

import io
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone
from PIL import Image

from agent.admin.chats import acts, who_answers
from agent.models import (
    ChatGrant,
    ChatSession,
    Manners,
    Message,
    OperatorAct,
    Persona,
    PersonaChoice,
)
from agent.record.chats.chat_record import find_address
from agent.record.settings.manners import load_manners_table
from tests.admin.record import (
    answered,
    call_of,
    chat,
    logged_in,
    page,
    run_for,
    said,
    step_of,
)

pytestmark = pytest.mark.django_db
TOKEN = "a" * acts.TOKEN_CHARS


class FakeSteering:
    """What a running server is asked for."""

    def __init__(self) -> None:
        self.sends = 0

    def compose(self, parts: Any) -> list[dict[str, Any]]:
        return [
            {"type": part.type, "data": {"text": part.text, "file": part.path}} for part in parts
        ]

    def find_owners(self, _account: str) -> list[str]:
        return ["20009"]

    def is_connected(self, _chat: Any) -> bool:
        return True


class FakeServing:
    steering = FakeSteering()

    def steer(self, _work: Any) -> None:
        self.steering.sends += 1


@pytest.fixture(autouse=True)
def serving(monkeypatch: pytest.MonkeyPatch) -> FakeServing:
    found = FakeServing()
    for module in (acts, who_answers):
        monkeypatch.setattr(module, "get_serving", lambda: found)
        monkeypatch.setattr(module, "steer", found.steer)
    return found


def do(
    browser: Client, session: ChatSession, name: str, message: Message | None = None, **form: Any
) -> HttpResponse:
    path = f"/admin/agent/chatsession/{session.pk}/act/{name}/"
    return browser.post(path + (f"{message.pk}/" if message else ""), form)  # type: ignore[return-value]


def told(browser: Client, session: ChatSession, name: str, *on: Message, **form: Any) -> str:
    """The page after the act."""
    answer = do(browser, session, name, *on, **form)
    assert answer.status_code == 302
    return page(browser, answer["Location"].partition("#")[0])


def done_acts() -> list[tuple[str, str]]:
    return list(OperatorAct.objects.order_by("pk").values_list("kind", "author_name"))


def a_picture() -> SimpleUploadedFile:
    made = io.BytesIO()
    Image.new("RGB", (8, 8)).save(made, "PNG")
    return SimpleUploadedFile("a.png", made.getvalue())


EVERY = [
    "take-over",
    "hand-back",
    "only",
    "everybody",
    "silence",
    "speak",
    "lift",
    "reset",
    "persona",
    "answer",
]


def test_viewers_do_nothing_and_chats_out_of_reach_do_not_exist():
    here, there = chat("700"), chat("701")
    viewer, owner = logged_in("viewer"), logged_in("chat_owner")
    user = owner.session["_auth_user_id"]
    ChatGrant.objects.create(user_id=user, account=here.account, chat=here.key)
    for name in EVERY:
        before = OperatorAct.objects.count()
        assert do(viewer, here, name).status_code == 403, name
        assert do(owner, there, name).status_code == 404, name
        assert OperatorAct.objects.count() == before, name
        assert do(owner, here, name).status_code == 302, name
        address = f"/admin/agent/chatsession/{here.pk}/act/{name}/"
        assert owner.get(address).status_code == 405, name
    assert not OperatorAct.objects.filter(session=there).exists()


def test_only_one_person_is_answered_for_an_hour_and_that_is_undone(browser: Client):
    session = chat("700", kind="group")
    message = said(session, sender_id="20001", sender_name="Ann")
    shown = page(browser, f"/admin/agent/chatsession/{session.pk}/change/")
    assert '<option value="20009">the owner (20009)' in shown
    panel = page(browser, f"/admin/agent/chatsession/{session.pk}/change/?panel=m{message.pk}")
    assert '<input type="hidden" name="person" value="20001">' in panel
    text = told(browser, session, "only", person="20001", span="60")
    assert "Only Ann is answered here" in text
    manners = load_manners_table().find(find_address(session))
    assert manners.is_for_another("20002", timezone.now())
    assert not manners.is_for_another("20002", timezone.now() + timedelta(hours=1))
    assert "only one person" in page(browser, "/admin/agent/chatsession/")
    assert "Only Ann" not in told(browser, session, "everybody")
    assert [kind for kind, _ in done_acts()] == ["only", "everybody"]
    assert "20001 until" in page(browser, f"/admin/agent/chatsession/{session.pk}/change/")


def test_a_call_is_stopped_once_while_it_is_under_way_in_the_same_chat(browser: Client):
    session, other = chat("700"), chat("701")
    run = run_for(said(session, state="running", reason="mention"), state="running")
    call = call_of(step_of(run), state="running")
    assert "nothing to stop" in told(browser, other, "stop-call", call=call.pk)
    panel = f"/admin/agent/chatsession/{session.pk}/change/?panel=m{run.message_id}"
    assert f'name="call" value="{call.pk}"' in page(browser, panel)
    assert "its run goes on" in told(browser, session, "stop-call", call=call.pk)
    assert "nothing to stop" in told(browser, session, "stop-call", call=call.pk)
    call.refresh_from_db()
    assert (call.state, call.stopped_by) == ("running", "user-")
    shown = page(browser, panel)
    assert 'name="call"' not in shown
    assert "is being stopped" in shown
    assert done_acts() == [("stop_call", "user-")]


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        ("private", {"person": "20001", "span": "60"}),
        ("group", {"person": "everybody", "span": "60"}),
        ("group", {"person": "20001", "span": "9"}),
    ],
)
def test_nobody_is_chosen_where_it_makes_no_sense(browser: Client, kind: str, form: dict[str, str]):
    assert "error" in told(browser, chat("700", kind=kind), "only", **form)
    assert not Manners.objects.exists()


@pytest.mark.parametrize("name", ["resend", "cancel"])
def test_messages_of_other_chats_are_not_acted_on(browser: Client, name: str):
    foreign = said(chat("701"), state="waiting", reason="private")
    assert do(browser, chat("700"), name, foreign).status_code == 404
    assert do(browser, foreign.session, name).status_code == 404
    assert done_acts() == []


def test_an_act_that_is_none_does_not_exist(browser: Client):
    assert do(browser, chat(), "fly").status_code == 404


def test_taking_over_settles_what_waits_and_counts_in_every_process(browser: Client):
    session = chat()
    waiting = said(session, state="waiting", reason="mention", claimed_by="p")
    command = said(session, state="waiting", reason="command")
    text = told(browser, session, "take-over", hours="4")
    assert "Taken over by" in text
    assert "It ends by itself at" in text
    assert "Hand back to the bot" in text
    waiting.refresh_from_db()
    command.refresh_from_db()
    assert (waiting.state, waiting.reason, waiting.in_history) == ("silent", "taken_over", True)
    assert command.state == "waiting"
    assert [kind for kind, _ in done_acts()] == ["take_over"]
    assert "taken over by" in page(browser, "/admin/agent/chatsession/?silence=taken_over")
    assert "Taken over by" not in told(browser, session, "hand-back")
    assert "nobody has taken over" in told(browser, session, "hand-back")
    assert [kind for kind, _ in done_acts()] == ["take_over", "hand_back"]


@pytest.mark.parametrize("hours", ["", "-1", "999", "x"])
def test_a_time_that_is_not_offered_is_refused_and_changes_nothing(browser: Client, hours: str):
    session = chat()
    assert "Choose how long" in told(browser, session, "take-over", hours=hours)
    session.refresh_from_db()
    assert (session.taken_over_by, done_acts()) == (None, [])


def test_what_is_written_is_on_record_to_be_sent_once(browser: Client, serving: FakeServing):
    session = chat()
    quoted = said(session, "a question", message_id="m1")
    form: dict[str, Any] = {
        "text": " <b>hi</b> ",
        "token": TOKEN,
        "quote": quoted.pk,
        "mention": "20001",
    }
    do(browser, session, "answer", **form)
    assert "This was sent already" in told(browser, session, "answer", **form)
    (row,) = Message.objects.filter(direction="out")
    assert (row.state, row.text, row.in_history) == ("pending", "<b>hi</b>", False)
    assert [part["type"] for part in row.segments] == ["quote", "mention_user", "plain"]
    assert [kind for kind, _ in done_acts()] == ["answer"]
    assert serving.steering.sends >= 1
    text = page(browser, f"/admin/agent/chatsession/{session.pk}/change/")
    assert "&lt;b&gt;hi&lt;/b&gt;" in text
    assert "<b>hi</b>" not in text


def test_long_words_are_several_messages_and_pictures_are_in_the_last(browser: Client):
    session = chat()
    do(browser, session, "answer", text="word " * 900, token=TOKEN, pictures=[a_picture()])
    rows = list(Message.objects.filter(direction="out").order_by("pk"))
    assert len(rows) > 1
    assert [part["type"] for part in rows[-1].segments] == ["plain", "image"]
    assert rows[-1].media.get().kept is not None
    assert OperatorAct.objects.count() == 1


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"text": "  "}, "There is nothing to send"),
        ({"text": "x" * 10_001}, "at most 10,000"),
        ({"text": "x", "token": "short"}, "The form was not complete"),
        ({"text": "x", "quote": "999999"}, "cannot be quoted"),
        ({"text": "x", "quote": "' OR 1"}, "cannot be quoted"),
        ({"text": "x", "quote": "9" * 5000}, "cannot be quoted"),
        ({"text": "x", "mention": "all"}, "cannot be mentioned"),
        ({"text": "x", "mention": "0"}, "cannot be mentioned"),
        ({"pictures": SimpleUploadedFile("a.png", b"<svg onload=alert(1)>")}, "is no picture"),
    ],
)
def test_what_cannot_be_sent_is_refused_in_words(browser: Client, form: dict[str, Any], words: str):
    session = chat()
    assert words in told(browser, session, "answer", **{"token": TOKEN} | form)
    assert (done_acts(), Message.objects.count()) == ([], 0)


def test_a_paused_chat_refuses_in_words(browser: Client):
    session = chat()
    ChatSession.objects.update(pause_reason="muted", paused_at=timezone.now())
    text = told(browser, session, "answer", text="hi", token=TOKEN)
    assert "The account cannot speak here: muted" in text
    assert Message.objects.count() == 0


def test_a_failed_message_is_sent_again_once_and_marked(browser: Client):
    session = chat()
    failed = answered(said(session), "lost", state="failed", run=None)
    segments = [{"type": "text", "data": {"text": "lost"}}]
    Message.objects.filter(pk=failed.pk).update(segments=segments)
    assert "Send again" in page(browser, f"/admin/agent/chatsession/{session.pk}/change/")
    told(browser, session, "resend", failed)
    assert "sent again already" in told(browser, session, "resend", failed)
    copy = Message.objects.get(resent_from=failed)
    assert (copy.state, copy.segments, copy.text) == ("pending", segments, "lost")
    assert [kind for kind, _ in done_acts()] == ["resend"]


def test_what_may_have_arrived_is_sent_again_only_with_a_word_on_it(browser: Client):
    session = chat()
    lost = answered(said(session), "perhaps", state="unknown")
    assert "may arrive twice" in told(browser, session, "resend", lost)
    assert not Message.objects.filter(resent_from=lost).exists()
    do(browser, session, "resend", lost, twice="yes")
    assert Message.objects.filter(resent_from=lost).exists()


def test_what_arrived_and_files_that_are_gone_are_not_sent_again(browser: Client):
    session = chat()
    fine = answered(said(session))
    assert "nothing to send again" in told(browser, session, "resend", fine)
    gone = answered(said(session), state="failed")
    data = {"type": "image", "data": {"file": "file:///nowhere/cat.png"}}
    Message.objects.filter(pk=gone.pk).update(segments=[data])
    assert "cat.png is not there any more" in told(browser, session, "resend", gone)
    assert done_acts() == []


def test_a_waiting_message_is_cancelled_and_a_settled_one_is_not(browser: Client):
    session = chat()
    waiting, settled = said(session, state="waiting", reason="mention"), said(session)
    told(browser, session, "cancel", waiting)
    assert "nothing to cancel" in told(browser, session, "cancel", settled)
    waiting.refresh_from_db()
    assert (waiting.state, waiting.reason) == ("silent", "stopped")
    act = OperatorAct.objects.get()
    assert (act.kind, act.message_id) == ("cancel", waiting.pk)


def test_the_context_begins_anew_behind_the_newest_message(browser: Client):
    session = chat()
    newest = said(session)
    told(browser, session, "reset")
    session.refresh_from_db()
    assert session.context_after == newest.pk
    assert [kind for kind, _ in done_acts()] == ["reset"]


def test_a_persona_is_chosen_for_the_chat_and_taken_back(browser: Client):
    session, other = chat(), Persona.objects.create(name="Calm", prompt="x", is_default=False)
    assert "Calm answers here" in told(browser, session, "persona", persona=other.pk)
    assert PersonaChoice.objects.get().peer_id == session.peer_id
    told(browser, session, "persona", persona="")
    assert not PersonaChoice.objects.exists()
    assert "not there any more" in told(browser, session, "persona", persona="999")
    assert [kind for kind, _ in done_acts()] == ["persona", "persona"]


def test_the_reader_goes_back_to_a_page_of_this_site_alone(browser: Client):
    session = chat()
    said(session)
    assert do(browser, session, "reset", next="/admin/")["Location"] == "/admin/"
    assert "evil" not in do(browser, session, "reset", next="https://evil.example/")["Location"]


def test_acts_need_the_token_of_the_form():
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.create_superuser("s"))
    assert do(strict, chat(), "take-over", hours="1").status_code == 403
    assert done_acts() == []


def test_a_take_over_whose_time_is_over_is_shown_nowhere(browser: Client):
    session = chat()
    told(browser, session, "take-over", hours="4")
    ChatSession.objects.update(taken_over_until=timezone.now())
    text = page(browser, f"/admin/agent/chatsession/{session.pk}/change/")
    assert "Taken over by" not in text
    assert "The bot goes on answering here as well" in text
    assert "taken over by" not in page(browser, "/admin/agent/chatsession/?silence=taken_over")
    assert "taken over" not in page(browser, "/admin/")
