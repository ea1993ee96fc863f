"""Approvals in the admin: what waits can be decided there, once, by those who may."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agent.models import Approval, Message, ToolCall
from agent.record.waiting.approvals import ApprovalOutcome, settle_approval
from tests.admin.record import CHINESE, call_of, chat, logged_in, page, run_for, said, step_of
from tools.models import ToolConfig

LIST = "/admin/agent/approval/"
SCHEMA = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}


@pytest.fixture
def approval(db: None) -> Approval:
    session = chat()
    ToolConfig.objects.update_or_create(
        name="transfer", defaults={"declaration": {"parameters_schema": SCHEMA}}
    )
    call = call_of(
        step_of(run_for(said(session))),
        "transfer",
        state="pending",
        requested_by="20001",
        arguments={"amount": 5},
    )
    now = timezone.now()
    return Approval.objects.create(
        call=call,
        session=session,
        code="482913",
        arguments={"amount": 5},
        created_at=now,
        expires_at=now + timedelta(hours=1),
    )


def decide(browser: Client, approval: Approval, **form: Any) -> str:
    """The page that a decision leads to."""
    return browser.post(
        f"{LIST}{approval.pk}/change/", {"changed_arguments": "", **form}, follow=True
    ).content.decode()


def test_what_waits_is_listed_and_can_be_approved(browser: Client, approval: Approval):
    assert "transfer" in page(browser, LIST)
    assert "The call is made in its turn" in decide(browser, approval, decision="approve")
    approval.refresh_from_db()
    assert (approval.state, approval.decided_by) == ("approved", "user-")
    assert Message.objects.filter(reason="later_result", tool_call=approval.call).count() == 1


def test_a_refused_call_has_failed(browser: Client, approval: Approval):
    decide(browser, approval, decision="refuse", changed_arguments='{"amount": 1}')
    approval.refresh_from_db()
    assert (approval.state, approval.changed_arguments) == ("refused", None)
    assert ToolCall.objects.get().state == "failed"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ('{"amount": "x"}', "amount"),
        ("[1]", "The arguments are a JSON object."),
        ("{", "Enter a valid JSON"),
        ("{}", "amount"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_the_reason(
    browser: Client, approval: Approval, arguments: str, problem: str
):
    text = decide(browser, approval, decision="approve", changed_arguments=arguments)
    assert "errornote" in text
    assert problem in text
    approval.refresh_from_db()
    assert approval.state == "waiting"


def test_changed_arguments_go_with_the_approval(browser: Client, approval: Approval):
    decide(browser, approval, decision="approve", changed_arguments='{"amount": 1}')
    assert ToolCall.objects.get().arguments == {"amount": 1}


def test_a_decision_is_not_made_without_a_word(browser: Client, approval: Approval):
    text = decide(browser, approval)
    assert "errornote" in text
    assert "Press one of the two buttons." in text


def test_what_is_decided_or_has_expired_is_only_shown(browser: Client, approval: Approval):
    decide(browser, approval, decision="approve")
    assert 'name="decision"' not in page(browser, f"{LIST}{approval.pk}/change/")
    Approval.objects.update(state="waiting", expires_at=timezone.now())
    assert 'name="decision"' not in page(browser, f"{LIST}{approval.pk}/change/")


@pytest.mark.parametrize(("first", "word"), [("approve", "approved"), ("refuse", "refused")])
def test_whoever_decides_a_moment_too_late_is_told_who_was_faster_and_when(
    browser: Client, approval: Approval, first: str, word: str
):
    decide(logged_in("operator"), approval, decision=first)
    told = decide(browser, approval, decision="approve")
    assert f"This call was already {word} by user-operator" in told
    approval.refresh_from_db()
    assert f"{timezone.localtime(approval.decided_at):%Y-%m-%d %H:%M:%S}" in told
    assert approval.decided_by == "user-operator"


@pytest.mark.parametrize("state", ["waiting", "expired"])
def test_whoever_decides_after_the_time_is_told_that_it_is_over(
    browser: Client, approval: Approval, state: str
):
    Approval.objects.update(state=state, expires_at=timezone.now())
    assert "This call expired at" in decide(browser, approval, decision="approve")
    assert ToolCall.objects.get().state == "pending"


def test_two_who_decide_at_the_same_moment_decide_once(
    browser: Client, approval: Approval, monkeypatch: pytest.MonkeyPatch
):
    def beaten(pk: int, **_: Any) -> ApprovalOutcome:
        monkeypatch.undo()
        settle_approval(pk, is_approval=False, by="777")
        return settle_approval(pk, is_approval=True, by="user-")

    monkeypatch.setattr("agent.admin.approvals.settle_approval", beaten)
    assert "already refused by 777" in decide(browser, approval, decision="approve")


def test_a_viewer_sees_and_an_operator_decides(approval: Approval):
    viewer, operator = logged_in("viewer"), logged_in("operator")
    assert 'name="decision"' not in page(viewer, f"{LIST}{approval.pk}/change/")
    assert viewer.post(f"{LIST}{approval.pk}/change/", {"decision": "approve"}).status_code == 403
    decide(operator, approval, decision="refuse")
    approval.refresh_from_db()
    assert approval.decided_by == "user-operator"


def test_the_list_says_until_when_a_question_waits_and_who_decided_it(
    browser: Client, approval: Approval
):
    assert "until " in page(browser, LIST)
    decide(browser, approval, decision="refuse")
    text = page(browser, LIST)
    assert "until " not in text
    assert '<div class="quiet">user-</div>' in text


def test_a_question_has_two_buttons_and_none_to_save(browser: Client, approval: Approval):
    text = page(browser, f"{LIST}{approval.pk}/change/")
    assert re.findall(r'name="decision" value="(\w+)"', text) == ["approve", "refuse"]
    assert 'name="_save"' not in text


def test_the_buttons_are_called_what_they_do(browser: Client, approval: Approval):
    text = browser.get(f"{LIST}{approval.pk}/change/", headers=CHINESE).content.decode()
    assert "回复判定" not in text
