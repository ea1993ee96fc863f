"""The page that asks a message again and sets the answers side by side: who may, what it shows."""

from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client

from agent.admin.runs import run_page
from agent.models import ChatGrant, Message, Run
from agent.record.waiting.trials import BUSY, TrialRefusal, TrialWish
from tests.admin.record import answered, call_of, chat, logged_in, page, run_for, said, step_of


def address(run: Run | None) -> str:
    assert run is not None
    return f"/admin/agent/run/{run.pk}/again/"


def answer_of(message: Message | None = None) -> Run:
    run = answered(message or said(chat(), "天气？"), "sunny").run
    assert run is not None
    step_of(run, request=[{"role": "system", "content": "s"}, {"role": "user", "content": "u"}])
    return run


def trial_of(run: Run, **fields: Any) -> Run:
    assert run.message is not None
    usual: dict[str, Any] = {
        "origin": "test",
        "trial_of": run.message,
        "author": "ann",
        "final_text": "rainy",
    }
    return run_for(**usual | fields)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[TrialWish]:
    """What the running server is asked for."""
    wishes: list[TrialWish] = []

    def ask_again(wish: TrialWish) -> int | TrialRefusal:
        wishes.append(wish)
        return TrialRefusal(BUSY) if len(wishes) > 1 else 1

    server = SimpleNamespace(ask_again=ask_again)
    monkeypatch.setattr(run_page, "serving", SimpleNamespace(get_serving=lambda: server))
    return wishes


def test_the_answer_and_what_would_have_been_one_stand_side_by_side(browser: Client):
    run = answer_of()
    trial = trial_of(run, persona="sage", input_tokens=1_234)
    call_of(step_of(trial), "send_message", arguments={"text": "psst"}, verdict="stood_in")
    text = page(browser, address(run))
    for expected in ("sunny", "rainy", "sage", "1234 in", "psst", "not carried out", "ann"):
        assert expected in text
    assert page(browser, address(trial)).count("rainy") == 1
    of_run = page(browser, f"/admin/agent/run/{trial.pk}/change/")
    assert "ann asked the message again: nothing of this was sent" in of_run
    assert "not carried out: asked again without sending" in of_run


def test_what_is_chosen_is_asked_of_the_running_server(browser: Client, asked: list[TrialWish]):
    run = answer_of()
    answer = browser.post(address(run), {"persona": "7", "endpoint": "x' OR 1"})
    assert (answer.status_code, answer.headers["Location"]) == (302, address(run))
    (wish,) = asked
    assert (wish.message_pk, wish.run_pk, wish.author) == (run.message_id, run.pk, "user-")
    assert (wish.persona_pk, wish.endpoint_pk) == (7, None)
    told = browser.post(address(run), follow=True).content.decode()
    assert "You are asking again already" in told


def test_without_a_running_server_the_page_says_why_it_cannot_ask(browser: Client):
    run = answer_of()
    assert "This process serves no client" in page(browser, address(run))
    told = browser.post(address(run), follow=True).content.decode()
    assert "This process serves no client" in told
    assert not Run.objects.filter(trial_of__isnull=False).exists()


def test_a_viewer_sees_the_answers_and_may_not_ask(db: None, asked: list[TrialWish]):
    viewer, run = logged_in("viewer"), answer_of()
    assert "again-form" not in page(viewer, address(run))
    assert viewer.post(address(run)).status_code == 403
    assert not asked


def test_the_page_of_a_chat_that_is_out_of_reach_does_not_exist(db: None, asked: list[TrialWish]):
    owner = logged_in("chat_owner")
    mine, other = answer_of(said(chat("700"))), answer_of(said(chat("701")))
    hidden = trial_of(other)
    ChatGrant.objects.create(
        user_id=owner.session["_auth_user_id"], account="10001", chat="group:700"
    )
    assert "again-form" in page(owner, address(mine))
    assert owner.post(address(mine)).status_code == 302
    for run in (other, hidden):
        assert owner.get(address(run)).status_code == 404
        assert owner.post(address(run)).status_code == 404
    assert [wish.run_pk for wish in asked] == [mine.pk]


@pytest.mark.parametrize("make", [lambda: run_for(origin="http"), lambda: Run(pk=10**15)])
def test_a_run_that_answers_no_message_has_no_such_page(browser: Client, make: Any):
    assert browser.get(address(make())).status_code == 404
