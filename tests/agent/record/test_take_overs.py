"""Chats that operators take over: what is said there, and how it ends."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agent.domain.types import ChatAddress
from agent.models import ChatSession, Message, OperatorAct
from agent.record.chats.chat_history import load_history
from agent.record.chats.sessions import load_session_state
from agent.record.waiting.hand_messages import HandMessage, put_down
from agent.record.waiting.take_overs import end_take_overs, hand_back, take_over
from tests.admin.record import answered, chat, said
from tests.agent.talk import PRIVATE, arrival, arrivals, message
from tools.models import ConfigVersion

pytestmark = pytest.mark.django_db


@pytest.fixture
def author() -> User:
    return User.objects.create(username="ann")


def taken(session: ChatSession) -> str | None:
    session.refresh_from_db()
    return session.taken_over_by


def reasons() -> list[str]:
    return list(Message.objects.order_by("pk").values_list("reason", flat=True))


def test_a_message_that_comes_a_second_after_the_end_is_answered(author: User):
    store, said, now = arrivals(), message("hi", PRIVATE), timezone.now()
    store.accept_messages([arrival(said)])
    take_over(ChatSession.objects.get().pk, author, now + timedelta(minutes=5))
    OperatorAct.objects.all().delete()
    for seconds in (299, 301):
        later = now + timedelta(seconds=seconds)
        store.accept_messages([arrival(replace(said, happened_at=later), received_at=later)])
    assert reasons() == ["taken_over", "taken_over", "private"]


def test_a_take_over_counts_for_the_next_message_without_any_change_of_settings(author: User):
    store, version = arrivals(), ConfigVersion.current()
    store.accept_messages([arrival(message("hi", PRIVATE))])
    pk = ChatSession.objects.get().pk
    take_over(pk, author, None)
    store.accept_messages([arrival(message("hi", PRIVATE))])
    hand_back(pk, author)
    store.accept_messages([arrival(message("hi", PRIVATE))])
    assert reasons()[1:] == ["taken_over", "private"]
    assert ConfigVersion.current() == version


def test_a_take_over_whose_time_is_over_is_tidied_up_on_record(
    author: User, django_assert_num_queries
):
    soon, later = chat("700"), chat("701")
    take_over(soon.pk, author, timezone.now() - timedelta(seconds=1))
    take_over(later.pk, author, timezone.now() + timedelta(hours=1))
    assert load_session_state(soon.pk).taken_over_by == ""
    assert end_take_overs() == 1
    assert (taken(soon), taken(later)) == (None, "ann")
    end = OperatorAct.objects.get(kind="hand_back")
    assert (end.author, end.author_name, end.session) == (None, "", soon)
    with django_assert_num_queries(1):
        assert end_take_overs() == 0


def test_the_newest_take_over_says_when_it_ends(author: User):
    session = chat()
    take_over(session.pk, author, timezone.now() - timedelta(seconds=1))
    take_over(session.pk, author, None)
    assert end_take_overs() == 0
    assert taken(session) == "ann"


def test_a_run_that_begins_all_the_same_knows_that_the_chat_is_taken_over(author: User):
    session = chat()
    take_over(session.pk, author, None)
    assert load_session_state(session.pk).taken_over_by == "ann"
    assert hand_back(session.pk, author)
    assert not hand_back(session.pk, author)
    assert load_session_state(session.pk).taken_over_by == ""


def test_what_was_said_and_written_meanwhile_is_history_in_its_order(author: User):
    session = chat(kind="private")
    before = said(session, "one", state="answered", in_history=True)
    answer = answered(before, "two", in_history=True)
    Message.objects.filter(pk=before.pk).update(run=answer.run)
    waiting = said(session, "three", state="waiting", reason="private")
    take_over(session.pk, author, None)
    put_down(session, author, [HandMessage([], "four")], "t")
    Message.objects.filter(text="four").update(state="delivered", in_history=True)
    waiting.refresh_from_db()
    assert (waiting.state, waiting.detail) == ("silent", "ann")
    history = load_history(session.pk, ChatAddress("10001", "private", "700"), 10)
    told = [(one["role"], str(one["content"]).rpartition("\n")[2]) for one in history]
    assert told == [("user", "one"), ("assistant", "two"), ("user", "three"), ("assistant", "four")]
