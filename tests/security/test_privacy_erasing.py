"""Erasing a person leaves nothing of the person where nobody looks, and takes nothing of others
along."""

import json

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core import serializers
from django.test import Client
from django.utils import timezone

from agent.models import (
    ErasureReceipt,
    Message,
    Note,
    SpendSum,
    Step,
)
from agent.privacy.person import Person
from onebot.models import ClientEvent
from tests.admin.record import call_of, chat, logged_in, run_for, said, step_of
from tools.models import ToolConfigChange
from tools.models.change import ChangeKind
from tools.models.row_history import record_event

GOING, NAME, SECRET = "71000001", "木木", "我住在长安街1号"
OTHER = "72000002"

pytestmark = pytest.mark.django_db


def erase(client: Client, person: str = GOING) -> None:
    answer = client.post(f"/admin/people/{person}/erase/", {"typed": person}, follow=True)
    assert answer.status_code == 200, answer.content[-500:]


def everything() -> str:
    rows = [
        row
        for kind in apps.get_models()
        if kind._meta.managed and kind._meta.app_label not in ("sessions", "auth")
        for row in kind._default_manager.all()
    ]
    return json.dumps(json.loads(serializers.serialize("json", rows)), ensure_ascii=False)


def test_nothing_is_left_of_a_private_chat():
    client = logged_in()
    private = chat(GOING, kind="private", title=NAME)
    said(private, SECRET, sender_id=GOING, sender_name=NAME, state="answered")
    alone = run_for(session=private, final_text=SECRET, error=SECRET, notes=[SECRET])
    step_of(alone, request=[{"content": SECRET}], error=SECRET, attempts=[{"error": SECRET}])
    for kind, subject in (("chat", f":{private.key}"), ("person", f"/{GOING}")):
        SpendSum.objects.create(day="2026-11-22", kind=kind, subject=f"onebot:10001{subject}")
    ToolConfigChange.objects.create(
        subject=f"agent.chatsession:{private.pk}", name=NAME, after={"state": {"topic": SECRET}}
    )
    record_event(User.objects.get(), private, ChangeKind.DONE, "x")
    erase(client)
    left = everything()
    assert [mark for mark in (SECRET, NAME, GOING) if mark in left] == []


def test_nothing_is_left_of_a_note_in_what_was_done_with_it():
    client = logged_in()
    note = Note.objects.create(owner_kind="person", owner_id=GOING, text=SECRET, said_by=GOING)
    record_event(User.objects.get(), note, ChangeKind.DONE, "x")
    erase(client)
    assert SECRET not in everything()


def test_what_tools_and_models_reported_goes_with_what_they_were_given():
    client = logged_in()
    group = chat("900")
    said(group, SECRET, sender_id=GOING, sender_name=NAME, state="answered")
    other = said(group, "hi", sender_id=OTHER, state="answered")
    run = run_for(other, final_text="hello")
    step = step_of(run, request=[{"content": GOING}], error=SECRET, attempts=[{"error": SECRET}])
    call_of(step, arguments={"who": GOING}, progress=SECRET)
    trial = run_for(trial_of=other)
    inner = call_of(step_of(trial, request=[]), arguments={})
    step_of(run_for(parent=inner), request=[{"content": GOING + SECRET}])
    erase(client)
    assert SECRET not in everything()


def test_events_that_hold_the_number_as_a_part_of_another_stay():
    client = logged_in()
    raw = [{"user_id": int(GOING + "9")}, {"user_id": 71000, "time": int("9" + GOING)}]
    for one in raw:
        ClientEvent.objects.create(self_id="10001", created_at=timezone.now(), raw=one)
    erase(client)
    erase(client, "1")
    erase(client, "user_id")
    assert ClientEvent.objects.count() == 2


def test_steps_that_hold_the_number_as_a_part_of_another_stay():
    client = logged_in()
    group = chat("900")
    said(group, "x", sender_id="1", state="answered")
    step = step_of(run_for(said(group, "hi", sender_id=OTHER)), request=[{"content": "21"}])
    erase(client, "1")
    assert Step.objects.get(pk=step.pk).request


def test_two_erasures_of_one_person_do_not_end_in_an_error():
    client = logged_in()
    for _ in range(2):
        ErasureReceipt.objects.create(
            at=timezone.now(),
            person_hash=Person(GOING).hash,
            progress={"person": GOING, "platform": "onebot", "chats": [], "phase": 0, "after": 0},
        )
    erase(client)


@pytest.mark.parametrize(
    "person", ["%", "_", "0", "..", "١٢٣", "a%00b", "%2e%2e", "%5c", "'", "x" * 900]
)
def test_no_id_breaks_the_pages_of_people_or_takes_others_along(person: str):
    client = logged_in()
    said(chat("900"), "hi", sender_id=OTHER, state="answered")
    before = serializers.serialize("json", Message.objects.all())
    assert client.get(f"/admin/people/{person}/").status_code in (200, 404)
    client.post(f"/admin/people/{person}/erase/", {"typed": person})
    assert serializers.serialize("json", Message.objects.all()) == before


@pytest.mark.parametrize("sender", ["a/b", "/", "..", "%", " "])
def test_people_are_listed_whatever_clients_call_them(sender: str):
    client = logged_in()
    said(chat("900"), "hi", sender_id=sender)
    assert client.get("/admin/people/").status_code == 200
