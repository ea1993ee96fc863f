"""What operators write as the bot, from the record to its outcome."""

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from agent.domain.errors import ClaimLost, build_refusal_apology
from agent.domain.states import MessageState
from agent.domain.types import Delivery
from agent.models import ChatSession, Message, OperatorAct, Run, ServerProcess
from agent.record.chats.chat_record import find_address
from agent.record.runs.replies import SendResult
from agent.record.waiting.hand_messages import (
    MOST_AGE,
    HandMessage,
    claim_hand_messages,
    mark_hand_message_sent,
    put_down,
    resend,
    settle_hand_message,
)
from agent.record.waiting.recovery import record_heartbeat
from agent.record.waiting.stops import stop_answer
from tests.admin.record import answered, chat, run_for, said

pytestmark = pytest.mark.django_db
HI = HandMessage([{"type": "text", "data": {"text": "hi"}}], "hi")


@pytest.fixture
def author() -> User:
    return User.objects.create(username="ann")


def written(session: ChatSession, author: User, *texts: str) -> list[Message]:
    return put_down(session, author, [HI._replace(text=one) for one in texts], "t")


def settle(pk: int, process: str, state: MessageState) -> None:
    settle_hand_message(SendResult(pk, Delivery(state, message_id="9")), process)


def test_of_two_processes_one_takes_a_message_and_the_other_cannot_write_it(author: User):
    (row,) = written(chat(), author, "hi")
    ServerProcess.objects.create(pk="a", pid=1, last_seen_at=timezone.now())
    (batch,) = claim_hand_messages("a")
    assert [one.pk for one in batch.messages] == [row.pk]
    assert claim_hand_messages("b") == []
    assert isinstance(mark_hand_message_sent(row.pk, "b", "e"), ClaimLost)
    assert mark_hand_message_sent(row.pk, "a", "e") == row.pk
    settle(row.pk, "b", MessageState.FAILED)
    settle(row.pk, "a", MessageState.DELIVERED)
    row.refresh_from_db()
    assert (row.state, row.message_id, row.in_history) == ("delivered", "9", True)


def test_what_a_dead_process_left_pending_is_taken_and_what_it_sent_is_not(author: User):
    first, second = written(chat(), author, "one", "two")
    claim_hand_messages("dead")
    mark_hand_message_sent(first.pk, "dead", "e")
    record_heartbeat("next", alone=True, is_first=True)
    (batch,) = claim_hand_messages("next")
    assert [one.pk for one in batch.messages] == [second.pk]
    first.refresh_from_db()
    assert (first.state, first.in_history) == ("unknown", True)


def test_what_is_too_old_or_stands_in_another_chat_is_not_sent(author: User):
    session = chat()
    old, foreign = written(session, author, "old", "foreign")
    Message.objects.filter(pk=old.pk).update(created_at=timezone.now() - 2 * MOST_AGE)
    Message.objects.filter(pk=foreign.pk).update(place="onebot:1:group:2")
    assert claim_hand_messages("a") == []
    assert set(Message.objects.values_list("state", flat=True)) == {"failed"}


def test_messages_of_one_act_go_together_and_in_order(author: User):
    session = chat()
    rows = written(session, author, "one", "two")
    (other,) = put_down(session, author, [HI], "u")
    batches = claim_hand_messages("a")
    found = [[one.pk for one in batch.messages] for batch in batches]
    assert found == [[row.pk for row in rows], [other.pk]]
    assert batches[0].chat == find_address(session)


def test_nothing_is_on_record_of_an_act_that_is_rolled_back(author: User):
    session = chat()
    with transaction.atomic():
        written(session, author, "hi")
        transaction.set_rollback(True)
    assert (Message.objects.count(), OperatorAct.objects.count()) == (0, 0)


def test_a_resent_answer_makes_the_question_answered_and_is_said_once(author: User):
    question = said(chat(), state="failed", reason="mention")
    lost = answered(question, "yes", state="unknown", in_history=True)
    copy = resend(lost, author)
    assert copy is not None
    assert resend(lost, author) is None
    claim_hand_messages("a")
    settle(copy.pk, "a", MessageState.DELIVERED)
    question.refresh_from_db()
    lost.refresh_from_db()
    assert (question.state, question.in_history) == ("answered", True)
    said_now = Message.objects.filter(direction="out", in_history=True)
    assert list(said_now) == [copy]


def test_a_resent_apology_is_no_answer(author: User):
    question = said(chat(), state="failed", reason="mention")
    sorry = answered(question, build_refusal_apology("", "en"), state="failed")
    copy = resend(sorry, author)
    assert copy is not None
    claim_hand_messages("a")
    settle(copy.pk, "a", MessageState.DELIVERED)
    question.refresh_from_db()
    copy.refresh_from_db()
    assert (question.state, copy.state, copy.in_history) == ("failed", "delivered", False)


def test_stopping_a_run_leaves_what_operators_wrote_beside_it(author: User):
    question = said(chat(), state="running", reason="mention")
    run_for(question, state="running")
    (row,) = written(question.session, author, "hi")
    assert row.run_id is not None
    stop_answer(question.pk, Message.Reason.STOPPED)
    row.refresh_from_db()
    question.refresh_from_db()
    assert (row.state, question.state) == ("pending", "silent")
    assert Run.objects.get().state == "stopped"
