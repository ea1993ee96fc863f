"""Chats in which an account cannot speak, on record."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from agent.domain.states import Pause, PauseReason, RunOrigin
from agent.models import ChatSession, Message
from agent.record.arrivals.arrivals import ArrivalStore
from agent.record.runs.runs import RunPlan, StartRun
from agent.record.sums.quotas import AnswerQuotas
from agent.record.waiting.pauses import lift_pause, load_pauses, pause_chat
from agent.record.waiting.recovery import claim_messages
from tests.agent.talk import GROUP, accept, arrival, beginnings, message

pytestmark = pytest.mark.django_db
MUTED = PauseReason.MUTED


def pause(reason: PauseReason = MUTED, seconds: float | None = None) -> None:
    until = None if seconds is None else timezone.now() + timedelta(seconds=seconds)
    pause_chat(GROUP, Pause(reason, until))


def spoken_to(**fields: Any) -> Any:
    return message("hi", GROUP, mentions_bot=True, **fields)


def rows() -> list[tuple[str, str, str]]:
    return list(Message.objects.order_by("pk").values_list("state", "reason", "detail"))


def test_what_is_said_to_a_muted_bot_is_on_record_and_not_answered():
    """Checklist 94."""
    pause()
    accept(spoken_to())
    assert rows() == [("silent", "paused", "muted")]
    assert lift_pause(GROUP)
    accept(spoken_to())
    assert rows()[1:] == [("waiting", "mention", "")]


def test_a_timed_mute_ends_by_itself():
    pause(seconds=-1)
    accept(spoken_to())
    assert rows() == [("waiting", "mention", "")]
    assert load_pauses() == {}


def test_every_process_obeys_at_once():
    starter = beginnings()
    store = ArrivalStore("p", starter, AnswerQuotas(starter.live, 0))
    store.accept_messages([arrival(spoken_to())])
    pause()
    (accepted,) = store.accept_messages([arrival(spoken_to())])
    assert accepted.decision
    assert accepted.decision.reason == "paused"


def test_what_waits_when_the_pause_comes_is_settled_and_its_run_cannot_begin():
    (accepted,) = accept(spoken_to())
    pause()
    assert rows() == [("silent", "paused", "muted")]

    wish = StartRun(RunPlan(RunOrigin.CHAT, "m", GROUP), accepted.pk, accepted.session_pk)
    (lost,) = beginnings().begin_runs([wish])
    assert type(lost).__name__ == "ClaimLost"


def test_the_later_result_of_a_call_waits_until_the_bot_can_speak_again():
    accept(spoken_to())
    Message.objects.update(reason="later_result")
    pause()
    assert rows() == [("waiting", "later_result", "")]
    assert claim_messages(GROUP.account, "q") == []
    lift_pause(GROUP)
    assert len(claim_messages(GROUP.account, "q")) == 1


def test_a_client_that_only_says_muted_does_not_undo_the_known_end():
    pause(seconds=600)
    pause()
    session = ChatSession.objects.get()
    assert session.paused_until is not None
    pause(PauseReason.LEFT)
    assert load_pauses() == {GROUP: Pause(PauseReason.LEFT)}


def test_only_what_a_notice_speaks_of_is_lifted():
    pause(seconds=600)
    assert not lift_pause(GROUP, (PauseReason.ALL_MUTED,))
    assert not lift_pause(GROUP, (MUTED,), lifts_timed=False)
    assert list(load_pauses()) == [GROUP]
    assert lift_pause(GROUP, (MUTED,))
