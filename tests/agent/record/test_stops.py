"""Merged and stopped messages on record, in both databases."""

from collections.abc import Iterator

import pytest
from django.db import connection

from agent.domain.states import MessageReason
from agent.models import Message, Run
from agent.record.chats.chat_record import MessageRecall, find_quoted, record_recall
from agent.record.ground.commit import find_lost_claims
from agent.record.runs.merged import HeldMessage, merge_messages
from agent.record.runs.runs import StartRun
from agent.record.waiting.recovery import claim_messages
from agent.record.waiting.stops import StopOutcome, stop_answer, stop_chat
from tests.agent.databases import inside, postgres
from tests.agent.talk import PLAN, PRIVATE, accept, begin, message, reply

__all__ = ["postgres"]


@pytest.fixture(params=["sqlite", "postgres"], autouse=True)
def database(request: pytest.FixtureRequest, db: None) -> Iterator[None]:
    if request.param == "sqlite":
        yield
        return
    with inside(request.getfixturevalue("postgres")):
        assert connection.vendor == "postgresql"
        yield


def states() -> dict[str, tuple[str, str]]:
    rows = Message.objects.order_by("pk").values_list("text", "state", "reason")
    return {text: (state, reason) for text, state, reason in rows}


def merged(*texts: str) -> tuple[StartRun, list[int]]:
    """Messages that are merged into the last; what begins its run, and all keys."""
    accepted = accept(*(message(text, message_id=text) for text in texts))
    kept = merge_messages(tuple(HeldMessage(one.pk, 1) for one in accepted))
    return StartRun(PLAN, kept[-1], accepted[0].session_pk), kept


def test_whoever_works_on_a_stopped_answer_holds_nothing_any_more():
    wish, _ = merged("a", "b")
    [run] = begin([wish])
    reply(wish, run.run_pk, "on the wire")
    reply(wish, run.run_pk, "waits", "pending")
    assert [stop_chat(PRIVATE, MessageReason.STOPPED) for _ in range(2)] == [True, False]
    assert find_lost_claims({run.claim}) == {run.claim}
    assert states() == {
        "a": ("answered", "merged"),
        "b": ("answered", "stopped"),
        "on the wire": ("unknown", ""),
        "waits": ("failed", ""),
    }
    assert Run.objects.get().finished_at is not None


def test_answers_to_others_are_not_stopped_for_one_person():
    wish, _ = merged("a", "b")
    begin([wish])
    asker = message("a").sender_id
    stopped = [stop_chat(PRIVATE, MessageReason.STOPPED, one) for one in ("66666", asker)]
    assert stopped == [False, True]


def test_a_stopped_message_is_taken_up_by_nobody():
    wish, keys = merged("a", "b")
    begin([wish])
    assert [stop_answer(keys[-1], MessageReason.STOPPED) for _ in range(2)] == [
        StopOutcome(is_stopped=True),
        StopOutcome(False),
    ]
    assert claim_messages(PRIVATE.account, "p2") == []


@pytest.mark.parametrize(("recalled", "left"), [("a", ["b", "c"]), ("c", ["a", "b"])])
def test_what_is_left_of_a_recalled_group_can_be_claimed_together(recalled, left):
    wish, keys = merged("a", "b", "c")
    [run] = begin([wish])
    record_recall(MessageRecall(PRIVATE.account, recalled, PRIVATE))
    outcome = stop_answer(keys[-1], MessageReason.RECALLED)
    assert outcome == StopOutcome(is_stopped=True, leaves_more=True)
    [pending] = claim_messages(PRIVATE.account, "p2")
    assert [*(one.message.text for one in pending.earlier), pending.message.text] == left
    assert states()[recalled] == ("silent", "recalled")
    assert find_lost_claims({run.claim}) == {run.claim}
    assert not pending.is_later_result


def test_a_message_that_another_process_took_over_is_merged_into_nothing():
    accepted = accept(message("a"), message("b"))
    claim_messages(PRIVATE.account, "p2")
    assert merge_messages(tuple(HeldMessage(one.pk, 1) for one in accepted)) == []
    assert set(states().values()) == {("waiting", "private")}


@pytest.mark.parametrize("reason", [MessageReason.STOPPED, MessageReason.PAUSED])
def test_the_later_result_of_a_call_never_becomes_words_of_the_chat(reason):
    """Nor is it lost where the account cannot speak for now."""
    (asked,) = accept(message("secret plan", message_id="7"))
    result = Message.objects.get(pk=asked.pk)
    result.pk, result.text, result.reason, result.event_key = None, "[x]", "later_result", "later:1"
    result.save()
    begin([StartRun(PLAN, result.pk, asked.session_pk)])
    outcome = stop_answer(result.pk, reason)
    assert outcome.leaves_more == (reason == MessageReason.PAUSED)
    assert states()["[x]"] == ("waiting" if outcome.leaves_more else "silent", "later_result")
    found = find_quoted(asked.session_pk, "7")
    assert found is not None
    assert found.said.text == "secret plan"
