"""Chats that operators take over: what is said there, and how it ends."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agent.domain.types import ChatAddress
from agent.models import ChatSession, Message, OperatorAct
from agent.record.chat_history import load_history
from agent.record.hand_messages import HandMessage, put_down
from agent.record.sessions import load_session_state
from agent.record.take_overs import TakeOverClock, hand_back, take_over
from tests.admin.record import answered, chat, said

pytestmark = pytest.mark.django_db


@pytest.fixture
def author() -> User:
    return User.objects.create(username="ann")


def taken(session: ChatSession) -> str | None:
    session.refresh_from_db()
    return session.taken_over_by


def test_a_take_over_ends_by_itself_when_its_time_is_over(
    author: User, django_capture_on_commit_callbacks
):
    soon, later = chat("700"), chat("701")
    take_over(soon.pk, author, timezone.now() - timedelta(seconds=1))
    take_over(later.pk, author, timezone.now() + timedelta(hours=1))
    clock = TakeOverClock()
    with django_capture_on_commit_callbacks(execute=True):
        assert clock.end_take_overs([None]) == [1]
    assert (taken(soon), taken(later)) == (None, "ann")
    end = OperatorAct.objects.get(kind="hand_back")
    assert (end.author, end.author_name, end.session) == (None, "", soon)


def test_the_clock_reads_the_chats_only_after_a_change(
    author: User, django_capture_on_commit_callbacks, django_assert_num_queries
):
    take_over(chat().pk, author, timezone.now() + timedelta(hours=1))
    clock = TakeOverClock()
    with django_capture_on_commit_callbacks(execute=True):
        clock.end_take_overs([None])
    with django_assert_num_queries(1):  # the number of the settings
        clock.end_take_overs([None])


def test_the_newest_take_over_says_when_it_ends(author: User, django_capture_on_commit_callbacks):
    session = chat()
    take_over(session.pk, author, timezone.now() - timedelta(seconds=1))
    take_over(session.pk, author, None)
    assert TakeOverClock().end_take_overs([None]) == [0]
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
