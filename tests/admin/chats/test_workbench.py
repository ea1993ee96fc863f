"""The workbench of chats, as the server draws it: parts of pages, marks, and what a panel shows."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from agent.models import Approval, ChatGrant, ChatSession, Message, Persona
from tests.admin.record import answered, call_of, chat, logged_in, page, run_for, said, step_of

pytestmark = pytest.mark.django_db
CHATS = "/admin/agent/chatsession/"


def address(session: ChatSession, query: str = "") -> str:
    return f"{CHATS}{session.pk}/change/{query}"


def part(client: Client, url: str, name: str) -> str:
    """What a script is given of the page."""
    answer = client.get(url, headers={"x-part": name})
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_part_holds_no_more_than_it_is_asked_for(browser: Client):
    message = said(chat(title="hills"), "rain")
    rows = part(browser, CHATS, "rows")
    assert rows.strip().startswith("<li ")
    assert "hills" in rows
    head = part(browser, address(message.session), "head")
    assert "chat-head" in head
    assert "rain" not in head
    shown = part(browser, address(message.session), "chat")
    assert f'id="m{message.pk}"' in shown
    assert "result_list" not in shown
    panel = part(browser, address(message.session, "?panel=chat"), "panel")
    assert panel.strip().startswith("<aside")
    assert "<html" not in rows + head + shown + panel
    assert "<html" in part(browser, CHATS, "../base_site")


def test_the_list_marks_what_is_under_way_and_what_asks_an_owner(browser: Client):
    said(chat("700"), state="running", reason="mention")
    question = said(chat("701"))
    call = call_of(step_of(run_for(question)), state="pending")
    now = timezone.now()
    times = {"created_at": now, "expires_at": now + timedelta(hours=1)}
    Approval.objects.create(call=call, session=question.session, code="123456", **times)
    rows = part(browser, CHATS, "rows").split("</li>")
    marks = {
        one: words for one in rows for words in ("asks for approval", "waiting<") if words in one
    }
    assert sorted(marks.values()) == ["asks for approval", "waiting<"]


def test_the_list_beside_a_chat_holds_the_chats_in_reach_alone():
    own, other = said(chat(title="mine")), said(chat("701", title="foreign"), state="waiting")
    client = logged_in("chat_owner")
    ChatGrant.objects.create(user=User.objects.get(), account="10001", chat=own.session.key)
    text = page(client, address(own.session))
    assert "mine" in text
    assert "foreign" not in text
    assert "foreign" not in part(client, CHATS, "rows")
    assert client.get(address(other.session), headers={"x-part": "panel"}).status_code == 302
    shown = part(client, address(own.session, f"?panel=m{other.pk}"), "panel")
    assert "hello" not in shown


def test_who_may_not_read_messages_sees_none_in_the_list_or_the_panel():
    message = said(chat(), "secret words")
    user = User.objects.create_user("plain", is_staff=True)
    seen = Permission.objects.filter(codename__in=["view_every_chat", "view_chatsession"])
    user.user_permissions.set(seen)
    client = Client()
    client.force_login(user)
    for text in (
        page(client, CHATS),
        page(client, address(message.session, f"?panel=m{message.pk}")),
    ):
        assert "secret words" not in text


@pytest.mark.parametrize("panel", ["m0", "m99999", "m-1", "mx", "../x", "m" + "9" * 30, "run"])
def test_a_panel_that_is_none_is_left_out(browser: Client, panel: str):
    assert "panel-close" not in page(browser, address(said(chat()).session, f"?panel={panel}"))


def test_messages_of_one_sender_are_joined(browser: Client):
    session = chat()
    one, two, other = said(session), said(session), said(session, sender_id="20002")
    text = page(browser, address(session))
    joined = [f'id="m{row.pk}"' in text and is_joined(text, row) for row in (one, two, other)]
    assert joined == [False, True, False]


def is_joined(text: str, message: Message) -> bool:
    tag = text[text.index(f'id="m{message.pk}"') :]
    return " joined" in tag[: tag.index(">")]


@pytest.mark.parametrize(
    ("act", "form", "undo"),
    [
        ("take-over", {"hours": "4"}, "hand-back"),
        ("silence", {}, "speak"),
        ("speak", {}, "silence"),
    ],
)
def test_an_act_offers_the_one_that_takes_it_back(browser: Client, act: str, form: dict, undo: str):
    session = chat()
    url = f"{CHATS}{session.pk}/act/"
    if act == "speak":
        browser.post(f"{url}silence/")
        page(browser, address(session))  # which tells what came of it
    browser.post(f"{url}{act}/", form)
    told = part(browser, address(session), "head")
    assert f'formaction="{url}{undo}/">Undo</button>' in told


def test_a_chosen_persona_is_exchanged_for_the_one_before(browser: Client):
    session, calm = chat(), Persona.objects.create(name="Calm", prompt="x", is_default=False)
    keen = Persona.objects.create(name="Keen", prompt="x", is_default=False)
    url = f"{CHATS}{session.pk}/act/persona/"
    for chosen in (calm, keen):
        browser.post(url, {"persona": chosen.pk})
    told = part(browser, address(session), "head")
    assert f'name="persona" value="{calm.pk}" formaction="{url}">Undo</button>' in told


def test_a_refusal_offers_nothing_to_take_back(browser: Client):
    session = chat()
    browser.post(f"{CHATS}{session.pk}/act/take-over/", {"hours": "99"})
    told = part(browser, address(session), "head")
    assert '<li class="error">' in told
    assert "Undo" not in told


def test_the_panel_of_a_message_shows_its_run_and_calls(browser: Client):
    question = said(chat(), state="answered", reason="mention")
    run = answered(question).run
    assert run is not None
    call = call_of(step_of(run), "get_weather", result="sunny", duration_ms=12)
    shown = part(browser, address(question.session, f"?panel=m{question.pk}"), "panel")
    for words in ("the bot was mentioned", "get_weather", "sunny", f"toolcall/{call.pk}/"):
        assert words in shown
