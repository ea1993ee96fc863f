"""People: found by name, one page each, and erased by those who may."""

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from agent.models import ChatGrant, ErasureReceipt, Message, Persona, PersonaChoice, SpendSum
from agent.record.chats.subject_names import name_subjects
from tests.admin.record import chat, logged_in, page, said
from tools.local_time import current_day

ONE, EVIL = "71000001", "<b>x</b>"


def test_people_are_found_by_name_and_by_number(browser: Client):
    said(chat("900"), sender_id=ONE, sender_name="木木")
    said(chat("901"), sender_id="72000002", sender_name=EVIL)
    assert ONE in page(browser, "/admin/people/?q=木")
    assert "72000002" not in page(browser, "/admin/people/?q=木")
    assert "木木" in page(browser, f"/admin/people/?q={ONE}")
    everybody = page(browser, "/admin/people/")
    assert ONE in everybody
    assert "&lt;b&gt;x" in everybody
    assert "Nobody is called that" in page(browser, "/admin/people/?q=nobody")


def test_people_have_their_newest_name_that_is_not_empty(browser: Client):
    session = chat("900")
    for name in ("木木", "阿雪", "", ""):
        said(session, sender_id=ONE, sender_name=name)
    for kind, subject in (("person", f"onebot:10001/{ONE}"), ("total", "")):
        SpendSum.objects.create(day=current_day(), kind=kind, subject=subject, input_tokens=9)
    row = page(browser, "/admin/people/").split(ONE)
    assert "阿雪" in "".join(row)
    for place in ("/admin/spending/", "/admin/agent/chatsession/", "/admin/agent/message/"):
        text = page(browser, place)
        assert "阿雪" in text, place
        assert f">{ONE}<" not in text, place
    bubbles = page(browser, f"/admin/agent/chatsession/{session.pk}/change/")
    assert bubbles.count("<bdi>阿雪</bdi>") == 3 + 1  # and in the list beside them


def test_same_name_twice_is_told_apart_by_the_account(db: None):
    chats = [chat("900", account=account, title="Garden") for account in ("10001", "10002")]
    places = [f"onebot:{one.account}:{one.key}" for one in chats]
    assert set(name_subjects("chat", places).values()) == {"Garden · 10001", "Garden · 10002"}
    people = [f"onebot:{one.account}/{ONE}" for one in chats]
    said(chats[0], sender_id=ONE, sender_name="木木")
    names = name_subjects("person", people)
    assert names[people[0]] == f"木木 ({ONE}) · 10001"
    assert name_subjects("chat", places[:1])[places[0]] == "Garden"


def test_a_persons_page_leads_to_the_chats_and_notes(browser: Client):
    session = chat("900", title="Garden")
    said(session, sender_id=ONE, sender_name="木木")
    said(session, sender_id=ONE, sender_name="木头")
    text = page(browser, f"/admin/people/{ONE}/")
    assert "木头 · 木木" in text
    assert f"/admin/agent/chatsession/{session.pk}/change/" in text


def test_a_persons_page_leads_to_the_persona_for_the_person(browser: Client):
    said(chat("900"), sender_id=ONE, sender_name="木木")
    adding = f"/admin/agent/personachoice/add/?user_id={ONE}"
    assert f'href="{adding}"' in page(browser, f"/admin/people/{ONE}/")
    assert f'name="user_id" value="{ONE}"' in page(browser, adding)
    persona = Persona.objects.create(name="Tutor")
    PersonaChoice.objects.create(persona=persona, user_id=ONE, account="10001")
    chosen = PersonaChoice.objects.create(persona=persona, user_id=ONE)
    text = page(browser, f"/admin/people/{ONE}/")
    assert text.count("Tutor") == 2
    assert f"/admin/agent/personachoice/{chosen.pk}/change/" in text
    shown = page(logged_in("viewer"), f"/admin/people/{ONE}/")
    assert "Tutor" in shown
    assert "personachoice" not in shown.partition('id="content-main"')[2]


def test_an_owner_of_one_chat_meets_its_people_alone(db: None):
    client = logged_in("chat_owner")
    mine, other = chat("900"), chat("901", title="Elsewhere")
    said(mine, sender_id=ONE, sender_name="木木")
    said(other, sender_id=ONE, sender_name="Secret name")
    said(other, sender_id="72000002", sender_name="Bob")
    ChatGrant.objects.create(
        user_id=client.session["_auth_user_id"], account="10001", chat="group:900"
    )
    text = page(client, "/admin/people/") + page(client, f"/admin/people/{ONE}/")
    assert "木木" in text
    for hidden in ("Secret name", "Elsewhere", "Bob", "Erase this person"):
        assert hidden not in text
    assert client.get("/admin/people/72000002/").status_code == 404
    assert client.post(f"/admin/people/{ONE}/erase/", {"typed": ONE}).status_code == 403


def test_erasing_takes_the_number_once_more_and_ends_with_a_receipt(browser: Client):
    said(chat("900"), "words", sender_id=ONE, sender_name="木木")
    browser.post(f"/admin/people/{ONE}/erase/", {"typed": "7"})
    assert Message.objects.exists()
    answer = browser.post(f"/admin/people/{ONE}/erase/", {"typed": ONE})
    assert not Message.objects.exists()
    receipt = ErasureReceipt.objects.get()
    text = page(browser, answer["Location"])
    assert "messages, with the answers to them: 1" in text
    assert ONE not in text
    assert f"/admin/people/receipts/{receipt.pk}/" in page(browser, f"/admin/people/{ONE}/")


@pytest.mark.parametrize("group", ["viewer", "chat_owner"])
def test_who_may_not_erase_sees_no_button_and_no_receipt(db: None, group: str):
    said(chat("900"), sender_id=ONE)
    client = logged_in(group)
    assert client.post(f"/admin/people/{ONE}/erase/", {"typed": ONE}).status_code == 403
    assert client.get("/admin/people/receipts/1/").status_code == 403
    assert Message.objects.exists()


def test_without_a_permission_there_are_no_people(db: None):
    client = logged_in("viewer")
    Group.objects.get(name="viewer").permissions.clear()
    assert client.get("/admin/people/").status_code == 403
    assert client.get(f"/admin/people/{ONE}/").status_code == 403
