"""Requests to be let in, and the rules over them, in the admin."""

from typing import Any

import pytest
from django.test import Client

from agent.models import JoinRequest, OperatorAct, RequestRule
from tests.admin.record import chat, logged_in, page
from tests.security.two_chats import owner_of

LIST, RULES = "/admin/agent/joinrequest/", "/admin/agent/requestrule/"
ACCOUNT = "10001"


def asked(user: str = "20002", **fields: Any) -> JoinRequest:
    usual = {"account": ACCOUNT, "kind": "join", "group_id": "30003", "flag": user, "key": user}
    return JoinRequest.objects.create(user_id=user, **usual | fields)


def decision(row: JoinRequest) -> str:
    row.refresh_from_db()
    return row.decision or row.state


def test_one_click_and_many_at_once_decide_with_words_and_their_author(browser: Client):
    session, row = chat("30003"), asked(comment="let me <b>in</b>")
    shown = page(browser, LIST)
    assert "let me &lt;b&gt;in" in shown
    assert f"{LIST}{row.pk}/act/approve/" in shown
    assert f"{LIST}{row.pk}/act/refuse/" in page(browser, f"{LIST}{row.pk}/change/")
    browser.post(f"{LIST}{row.pk}/act/approve/", {"reason": "is for refusals"})
    assert (decision(row), row.reason, row.decided_by) == ("approve", "", "user-")
    act = OperatorAct.objects.get(kind="let_in", session=session)
    assert act.detail == f"#{row.pk}"
    many = [asked("3"), asked("4", flag=None)]
    sent = {"action": "refuse", "reason": " full ", "_selected_action": [one.pk for one in many]}
    browser.post(LIST, sent)
    assert [decision(one) for one in many] == ["refuse", "refused"]
    assert {one.reason for one in many} == {"full"}
    assert OperatorAct.objects.filter(kind="keep_out", detail__endswith="full").count() == 2


def test_enter_in_the_field_for_words_never_lets_anybody_in(browser: Client):
    shown = page(browser, f"{LIST}{asked().pk}/change/")
    form = shown[shown.index('name="reason"') :]
    assert form.index("/act/refuse/") < form.index("/act/approve/")
    assert "/act/approve/" not in page(browser, f"{LIST}{asked('3', flag=None).pk}/change/")


def test_a_second_decision_changes_nothing_and_says_so(browser: Client):
    row = asked()
    browser.post(f"{LIST}{row.pk}/act/refuse/")
    answer = browser.post(f"{LIST}{row.pk}/act/approve/", follow=True)
    assert "decided before" in answer.content.decode()
    assert decision(row) == "refuse"
    assert "act/approve" not in page(browser, f"{LIST}{row.pk}/change/")


def test_what_cannot_be_answered_is_not_approved_and_no_act_is_on_record(browser: Client):
    row = asked(flag=None, reason="no flag \u202e")
    answer = browser.post(f"{LIST}{row.pk}/act/approve/", follow=True)
    assert "Waiting: no flag" in answer.content.decode()
    assert "\u202e" not in answer.content.decode()
    assert (decision(row), OperatorAct.objects.count()) == ("waiting", 0)


def test_what_is_odd_is_refused(browser: Client):
    row = asked()
    odd = asked("5")
    browser.post(f"{LIST}{odd.pk}/act/refuse/", {"reason": "a\0b"})
    assert (decision(odd), odd.reason) == ("refuse", "a\ufffdb")
    browser.post(f"{LIST}{row.pk}/act/refuse/", {"reason": "x" * 201})
    assert browser.get(f"{LIST}{row.pk}/act/refuse/").status_code == 405
    assert browser.post(f"{LIST}{row.pk}/act/kick/").status_code == 400
    assert browser.post(f"{LIST}999999/act/approve/").status_code == 404
    assert decision(row) == "waiting"


@pytest.mark.parametrize(
    ("group", "status", "state"),
    [("viewer", 403, "waiting"), ("operator", 302, "approve")],
)
def test_who_may_only_look_decides_nothing(db: None, group, status, state):
    row, client = asked(), logged_in(group)
    assert ("act/approve" in page(client, LIST)) is (status == 302)
    assert client.post(f"{LIST}{row.pk}/act/approve/").status_code == status
    assert decision(row) == state


def test_an_owner_of_a_group_decides_who_joins_it_and_nothing_else(db: None):
    client = owner_of((ACCOUNT, "group:30003"))
    mine, others = asked(), [asked("5", group_id="4"), asked("6", kind="invite"), asked("7")]
    JoinRequest.objects.filter(pk=others[2].pk).update(account="10002")
    assert client.post(f"{LIST}{mine.pk}/act/approve/").status_code == 302
    assert [client.post(f"{LIST}{one.pk}/act/approve/").status_code for one in others] == [404] * 3
    assert [decision(one) for one in (mine, *others)] == ["approve", *["waiting"] * 3]
    assert client.get(RULES).status_code == 403


def test_a_rule_is_saved_with_its_history_and_warns_where_it_lets_everybody_in(browser: Client):
    form = {"name": "word", "words": "frost", "action": "approve", "enabled": "on"}
    answer = browser.post(f"{RULES}add/", form, follow=True)
    row = RequestRule.objects.get()
    assert (row.words, row.action, row.position) == ("frost", "approve", 100)
    assert "Take care" not in answer.content.decode()
    answer = browser.post(f"{RULES}{row.pk}/change/", form | {"words": ""}, follow=True)
    assert "lets everybody in" in answer.content.decode()
    shown = page(browser, f"{RULES}{row.pk}/change/")
    assert "lets everybody in" in shown
    assert "frost" in shown  # its history
    assert "lets everybody in" in page(browser, RULES)


def test_the_list_says_also_that_a_rule_decides_over_nobody(browser: Client):
    RequestRule.objects.create(words="a\nb", per_day=0)
    shown = page(browser, RULES)
    assert "Decisions a day: 0" in shown
    assert "a, b" in shown


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("chats", "room:1"),
        ("people", "x y!"),
        ("groups", "{}"),
        ("account", "a b!"),
        ("words", "x" * 65),
        ("least_level", "0"),
        ("per_day", "-1"),
        ("action", "ban"),
        ("kind", "guild"),
        ("reason", "x" * 201),
    ],
)
def test_what_a_rule_cannot_say_is_said_beside_its_field(browser: Client, field, value):
    answer = browser.post(f"{RULES}add/", {"action": "approve", field: value})
    assert field in answer.context["adminform"].form.errors
    assert not RequestRule.objects.exists()


def test_lists_find_by_ids_words_and_state(browser: Client):
    row, other = asked(comment="hello frost"), asked("9", state="refused", kind="friend")
    for query in ("q=20002", "q=frost", f"q=%23{row.pk}", "state__exact=waiting", "kind=join"):
        shown = page(browser, f"{LIST}?{query.replace('kind=', 'kind__exact=')}")
        assert f"{LIST}{row.pk}/" in shown, query
        assert f"{LIST}{other.pk}/" not in shown, query


def test_the_overview_says_that_somebody_waits(browser: Client):
    assert "wait to be let in" not in page(browser, "/admin/")
    asked()
    asked("3")
    assert "2 requests wait to be let in" in page(browser, "/admin/")
