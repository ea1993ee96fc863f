"""Reminders in the admin: added, changed, and steered one by one or many at once."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agent.models import ChatSession, Message, Reminder
from tests.admin.record import chat, page
from tests.security.two_chats import owner_of
from tools.models import ToolConfigChange

REMINDERS = "/admin/agent/reminder/"


def in_an_hour() -> str:
    return f"{timezone.localtime() + timedelta(hours=1):%Y-%m-%dT%H:%M}"


def form(session: ChatSession, **changes: Any) -> dict[str, Any]:
    usual = {"session": session.pk, "text": "关火", "kind": "text", "due_at": in_an_hour()}
    return usual | {"repeat": "", "mention": "", "set_by": "20001", "late": "tell"} | changes


def remind(session: ChatSession, **fields: Any) -> Reminder:
    due = timezone.now() + timedelta(hours=1)
    usual = {"text": "关火", "set_by": "20001", "due_at": due}
    row: Reminder = Reminder.objects.create(session=session, **usual | fields)
    return row


def state(row: Reminder) -> str:
    row.refresh_from_db()
    return str(row.state)


def test_one_is_added_and_waits(browser: Client):
    answer = browser.post(
        f"{REMINDERS}add/", form(chat(), repeat="freq=daily", mention="20002 all")
    )
    assert answer.status_code == 302, answer.content.decode()
    row = Reminder.objects.get()
    assert (row.state, row.repeat, row.mention) == ("waiting", "FREQ=DAILY", "20002\nall")
    assert row.next_at == row.due_at


def test_the_two_fields_of_djangos_own_are_read_too(browser: Client):
    day, time = in_an_hour().split("T")
    sent = form(chat(), due_at_0=day, due_at_1=time)
    del sent["due_at"]
    assert browser.post(f"{REMINDERS}add/", sent).status_code == 302


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("due_at", "2020-01-01T08:00", "over"),
        ("repeat", "FREQ=SECONDLY", "often"),
        ("repeat", "every day", "rule"),
        ("mention", "x y!", "not an id"),
        ("text", "x" * 5_001, "5000"),
        ("session", "999999", "valid choice"),
    ],
)
def test_what_cannot_be_is_said_beside_its_field(browser: Client, field, value, words):
    answer = browser.post(f"{REMINDERS}add/", form(chat()) | {field: value})
    problems = answer.context["adminform"].form.errors
    assert words in str(problems[field])
    assert not Reminder.objects.exists()


def test_a_past_one_can_be_worded_otherwise_without_another_time(browser: Client):
    row = remind(session := chat(), due_at=timezone.now() - timedelta(hours=1), state="paused")
    due = f"{timezone.localtime(row.due_at):%Y-%m-%dT%H:%M:%S}"
    answer = browser.post(f"{REMINDERS}{row.pk}/change/", form(session, text="关灯", due_at=due))
    assert answer.status_code == 302, answer.context["adminform"].form.errors
    row.refresh_from_db()
    assert (row.text, row.state) == ("关灯", "paused")


def test_what_is_over_waits_again_when_it_is_given_another_time(browser: Client):
    earlier = timezone.now() - timedelta(hours=1)
    row = remind(session := chat(), state="done", due_at=earlier)
    browser.post(f"{REMINDERS}{row.pk}/change/", form(session))
    assert state(row) == "waiting"
    assert row.next_at == row.due_at


def test_buttons_pause_resume_run_and_cancel(browser: Client):
    row = remind(chat())
    for act, after in [("pause", "paused"), ("resume", "waiting"), ("run", "waiting")]:
        assert f"/act/{act}/" in page(browser, f"{REMINDERS}{row.pk}/change/")
        browser.post(f"{REMINDERS}{row.pk}/act/{act}/")
        assert state(row) == after
    assert row.next_at is not None
    assert row.next_at <= timezone.now()
    browser.post(f"{REMINDERS}{row.pk}/act/cancel/")
    assert Reminder.objects.filter(pk=row.pk, state="cancelled", next_at=None).exists()
    assert ToolConfigChange.objects.count() >= 3


def test_a_repeat_that_is_run_keeps_its_rule(browser: Client):
    row = remind(chat(), repeat="FREQ=DAILY")
    due = row.due_at
    browser.post(f"{REMINDERS}{row.pk}/act/run/")
    row.refresh_from_db()
    assert (row.due_at, row.is_extra) == (due, True)
    assert row.next_at is not None
    assert row.next_at < due


def test_many_are_cancelled_at_once(browser: Client):
    rows = [remind(session := chat()), remind(session)]
    chosen = [str(row.pk) for row in rows]
    sent = {"action": "cancel", "_selected_action": chosen, "index": "0"}
    assert browser.post(REMINDERS, sent).status_code == 302
    assert [state(row) for row in rows] == ["cancelled", "cancelled"]


def test_lists_are_searched_and_filtered(browser: Client):
    remind(session := chat(), text="关火")
    remind(session, text="tea", state="paused", set_by="20009")
    for query in ("q=tea", "state__exact=paused", "q=20009"):
        found = browser.get(f"{REMINDERS}?{query}").context["cl"].result_list
        assert [row.text for row in found] == ["tea"]


def test_the_panel_of_a_chat_shows_what_is_still_to_be_said(browser: Client):
    remind(session := chat(), text="关火")
    remind(session, text="done-one", state="done")
    shown = page(browser, f"/admin/agent/chatsession/{session.pk}/change/?panel=reminders")
    assert "关火" in shown
    assert "done-one" not in shown


@pytest.mark.parametrize(
    ("typed", "chosen"),
    [
        ("onebot:10001:group:700", "10001 group"),
        ("10002:group:700", "10002 group"),
        ("private:700", "10001 private"),
        (" group：701 ", "10001 701"),
        ("701", "10001 701"),
        ("group:700", ""),
        ("700", ""),
        ("onebot:10002:private:700", ""),
        ("group:" + "7" * 100_000, ""),
        ("group:700\0", ""),
        ("%", ""),
        ("9" * 30, ""),
    ],
)
def test_a_chat_is_named_as_people_know_it(browser: Client, typed, chosen):
    chats = {
        "10001 group": chat("700"),
        "10002 group": chat("700", account="10002"),
        "10001 private": chat("700", kind="private"),
        "10001 701": chat("701"),
    }
    answer = browser.post(f"{REMINDERS}add/", form(chats["10001 701"]) | {"session": typed})
    found = list(Reminder.objects.values_list("session", flat=True))
    assert found == ([chats[chosen].pk] if chosen else [])
    assert chosen or "session" in answer.context["adminform"].form.errors


def test_a_link_fills_in_its_chat_and_a_row_shows_its_own(browser: Client):
    row = remind(session := chat("700", title="Garden"))
    for address in (f"{REMINDERS}add/?session={session.pk}", f"{REMINDERS}{row.pk}/change/"):
        assert 'value="onebot:10001:group:700"' in page(browser, address)
    due = f"{timezone.localtime(row.due_at):%Y-%m-%dT%H:%M:%S}"
    browser.post(f"{REMINDERS}{row.pk}/change/", form(session, text="关灯", due_at=due))
    row.refresh_from_db()
    assert (row.text, row.session) == ("关灯", session)


def test_an_edit_of_one_on_its_way_does_not_say_it_twice(browser: Client):
    row = remind(session := chat())
    said = Message.objects.create(
        session=session, direction="in", state="waiting", created_at=timezone.now()
    )
    Reminder.objects.filter(pk=row.pk).update(fired=said.pk, next_at=None)
    due = f"{timezone.localtime(row.due_at):%Y-%m-%dT%H:%M:%S}"
    browser.post(f"{REMINDERS}{row.pk}/change/", form(session, text="x", due_at=due))
    row.refresh_from_db()
    assert (row.text, row.next_at, row.fired) == ("x", None, said.pk)


def test_a_chat_owner_adds_and_steers_those_of_his_chats_alone(browser: Client):
    own, other = chat("700"), chat("701")
    mine, foreign = remind(own, text="MINE"), remind(other, text="ANOTHERS")
    client = owner_of((own.account, own.key))
    assert "ANOTHERS" not in page(client, REMINDERS)
    assert client.post(f"{REMINDERS}add/", form(own)).status_code == 302
    refused = client.post(f"{REMINDERS}add/", form(other))
    assert "session" in refused.context["adminform"].form.errors
    client.post(f"{REMINDERS}{mine.pk}/act/cancel/")
    assert state(mine) == "cancelled"
    assert client.post(f"{REMINDERS}{foreign.pk}/act/cancel/").status_code == 404
    assert state(foreign) == "waiting"


def test_who_may_not_change_tools_has_no_task_done_in_the_name_of_others(browser: Client):
    own, private = chat("700"), chat("20001", kind="private")
    theirs = remind(own, text="weather", kind="task")
    client = owner_of((own.account, own.key), (private.account, private.key))

    def refused(address: str, sent: dict[str, Any]) -> bool:
        answer = client.post(f"{REMINDERS}{address}/", sent)
        return answer.status_code == 200 and "set_by" in answer.context["adminform"].form.errors

    assert refused("add", form(own, kind="task"))
    assert refused(f"{theirs.pk}/change", form(own, kind="task", text="kick everybody"))
    assert refused(f"{remind(own).pk}/change", form(own, kind="task"))
    assert client.post(f"{REMINDERS}add/", form(own, kind="task", set_by="")).status_code == 302
    sent = form(private, kind="task", set_by="")
    assert client.post(f"{REMINDERS}add/", sent).status_code == 302
    assert [row.set_by for row in Reminder.objects.order_by("-pk")[:2]] == ["", ""]
    later = form(own, kind="task", text="weather", due_at="2027-01-01T08:00")
    assert client.post(f"{REMINDERS}{theirs.pk}/change/", later).status_code == 302
    assert browser.post(f"{REMINDERS}add/", form(own, kind="task")).status_code == 302


def test_limits_hold_for_who_owns_chats_alone(browser: Client):
    own = chat("700")
    client = owner_of((own.account, own.key))

    def refused(field: str, **changes: Any) -> bool:
        sent = form(own, **changes)
        answer = client.post(f"{REMINDERS}add/", sent)
        assert browser.post(f"{REMINDERS}add/", sent).status_code == 302
        Reminder.objects.latest("pk").delete()
        return answer.status_code == 200 and field in answer.context["adminform"].form.errors

    assert refused("mention", mention="20002 all")
    assert refused("repeat", repeat="FREQ=SECONDLY;INTERVAL=30")
    assert refused("repeat", repeat="FREQ=MINUTELY;INTERVAL=5", kind="task", set_by="")
    due = timezone.now() + timedelta(hours=1)
    full = [Reminder(session=own, text="x", due_at=due, set_by="20009") for _ in range(100)]
    Reminder.objects.bulk_create(full[:20])
    assert refused("session", set_by="20009")
    Reminder.objects.bulk_create(full[20:])
    assert refused("session", set_by="")


def test_an_edit_mentions_everybody_for_owners_alone(browser: Client):
    row = remind(own := chat("700"), mention="all")
    client = owner_of((own.account, own.key))
    answer = client.post(f"{REMINDERS}{row.pk}/change/", form(own, text="spam", mention="all"))
    assert "mention" in answer.context["adminform"].form.errors
    assert client.post(f"{REMINDERS}{row.pk}/change/", form(own)).status_code == 302
