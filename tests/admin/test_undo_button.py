"""The button that takes a run back: who has it, what is on record of it, what the pages show."""

from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from django.contrib.auth.models import User

from agent.admin.runs import undoing
from agent.models import ChatGrant, ChatSession, Message, OperatorAct, Run, UndoStep
from tests.admin.record import answered, chat, logged_in, page, said

pytestmark = pytest.mark.django_db


class FakeServing:
    """A running server that can take no call back."""

    def __init__(self) -> None:
        self.steering, self.orders, self.is_there = self, 0, True

    def is_connected(self, _chat: object) -> bool:
        return self.is_there

    def run(self, _work: Callable[..., Coroutine[Any, Any, Any]]) -> frozenset[str]:
        return frozenset()

    def steer(self, _work: Any) -> None:
        self.orders += 1


@pytest.fixture
def serving(monkeypatch: pytest.MonkeyPatch) -> FakeServing:
    found = FakeServing()
    monkeypatch.setattr(undoing, "get_serving", lambda: found)
    monkeypatch.setattr(undoing, "steer", found.steer)
    return found


def run_in(session: ChatSession) -> Run:
    out = answered(said(session, state="answered"), message_id="a1")
    return Run.objects.get(pk=out.run_id or 0)


def address(run: Run, act: str = "change") -> str:
    return f"/admin/agent/run/{run.pk}/{act}/"


def test_it_is_put_down_with_its_author_and_the_server_is_asked(serving: FakeServing):
    run, browser = run_in(chat()), logged_in()
    assert 'action="/admin/agent/run/' in page(browser, address(run))
    assert browser.post(address(run, "undo")).status_code == 302
    step = UndoStep.objects.get()
    assert (step.author, step.state, serving.orders) == ("user-", "waiting", 1)
    assert OperatorAct.objects.get().kind == "undo"
    shown = page(browser, address(run))
    assert "Taken back by user-" in shown
    assert address(run, "undo") not in shown
    UndoStep.objects.update(state="done")
    assert "undone" in page(browser, f"/admin/agent/chatsession/{run.session_id}/change/")


def test_pressed_twice_it_says_that_nothing_is_left(serving: FakeServing):
    run, browser = run_in(chat()), logged_in()
    for _ in range(2):
        browser.post(address(run, "undo"))
    assert "nothing left to undo" in page(browser, address(run))
    assert (UndoStep.objects.count(), OperatorAct.objects.count(), serving.orders) == (1, 1, 1)


@pytest.mark.parametrize(("group", "status"), [("viewer", 403), ("operator", 302)])
def test_it_is_for_those_who_may_speak_in_chats(serving: FakeServing, group: str, status: int):
    run, browser = run_in(chat()), logged_in(group)
    assert (address(run, "undo") in page(browser, address(run))) is (status == 302)
    assert browser.post(address(run, "undo")).status_code == status
    assert UndoStep.objects.exists() is (status == 302)


def test_owners_of_chats_undo_what_was_said_there_and_reach_no_other(serving: FakeServing):
    here, elsewhere = run_in(chat("700")), run_in(chat("800"))
    browser = logged_in("chat_owner")
    user = User.objects.get(username="user-chat_owner")
    ChatGrant.objects.create(user=user, account="10001", chat="group:700")
    answered(said(chat("900")), message_id="b1")
    Message.objects.filter(message_id="b1").update(run=here)  # said in another chat
    assert browser.post(address(elsewhere, "undo")).status_code == 404
    assert browser.post(address(here, "undo")).status_code == 302
    assert [one.message_id for one in Message.objects.filter(undo_steps__isnull=False)] == ["a1"]


def test_without_a_server_nothing_is_put_down():
    run, browser = run_in(chat()), logged_in()
    browser.post(address(run, "undo"))
    assert "sends no messages" in page(browser, address(run))
    assert not UndoStep.objects.exists()


def test_while_the_account_is_away_nothing_is_put_down(serving: FakeServing):
    serving.is_there = False
    run, browser = run_in(chat()), logged_in()
    browser.post(address(run, "undo"))
    assert "account is not connected" in page(browser, address(run))
    assert not UndoStep.objects.exists()
