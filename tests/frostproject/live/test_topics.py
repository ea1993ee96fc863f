"""What can be followed, and by whom."""

import pytest
from django.contrib.auth.models import User

from agent.models import ChatGrant, Message, OperatorAct, Run
from frostproject.live.feed import Topic, digest_topic, parse_topic, reach_topic
from tests.admin.record import answered, call_of, chat, logged_in, run_for, said, step_of


def viewer(client):
    return User.objects.get(pk=client.session["_auth_user_id"])


@pytest.mark.parametrize("text", ["session:12", "run:1", "overview", "chats"])
def test_a_topic_is_named_as_it_is_written(text):
    assert str(parse_topic(text)) == text


@pytest.mark.parametrize(
    "text", ["", "session:", "session:0", "session:1 ", "run:-1", "run:٣", "chat:1", 7, None, []]
)
def test_nothing_else_is_a_topic(text):
    assert parse_topic(text) is None


def test_a_chat_changes_with_its_messages_and_acts(db):
    session = chat()
    topic, seen = Topic("session", session.pk), []
    seen.append(digest_topic(topic))
    message = said(session)
    seen.append(digest_topic(topic))
    Message.objects.filter(pk=message.pk).update(state="running")
    seen.append(digest_topic(topic))
    OperatorAct.objects.create(session=session, kind="silence", at=message.created_at)
    seen.append(digest_topic(topic))
    said(chat("701"))
    assert len(set(seen)) == 4
    assert digest_topic(topic) == seen[-1]


def test_a_run_changes_with_its_steps_and_calls(db):
    run = run_for(said(chat()))
    topic = Topic("run", run.pk)
    first = digest_topic(topic)
    step = step_of(run)
    second = digest_topic(topic)
    call_of(step)
    assert len({first, second, digest_topic(topic)}) == 3


def test_what_stands_on_the_first_page_can_be_read(db):
    assert digest_topic(Topic("overview")) == digest_topic(Topic("overview"))


def test_who_has_single_chats_follows_those_alone(db):
    own, other = run_for(said(chat())), run_for(said(chat("701")))
    assert own.session is not None
    user = viewer(logged_in("chat_owner"))
    ChatGrant.objects.create(user=user, account=own.session.account, chat=own.session.key)
    assert reach_topic(user, Topic("session", own.session.pk))
    assert reach_topic(user, Topic("run", own.pk))
    assert not reach_topic(user, Topic("session", other.session_id or 0))
    assert not reach_topic(user, Topic("run", other.pk))


@pytest.mark.parametrize("kind", ["overview", "chats"])
def test_what_shows_single_chats_changes_with_those_alone(db, kind):
    own, other = chat(), chat("701")
    user = viewer(logged_in("chat_owner"))
    ChatGrant.objects.create(user=user, account=own.account, chat=own.key)
    topic = reach_topic(user, Topic(kind))
    assert topic is not None
    before = digest_topic(topic)
    said(other, state="waiting")
    answered(said(other))
    assert digest_topic(topic) == before
    said(own, state="waiting")
    assert digest_topic(topic) != before
    assert digest_topic(Topic("overview")) != before


def test_staff_without_rights_follow_no_overview(db):
    user = User.objects.create_user("nobody", is_staff=True)
    assert reach_topic(user, Topic("overview")) is None


def test_a_run_without_a_chat_is_followed_by_those_who_see_every_chat(db):
    run = run_for(said(chat()))
    Run.objects.filter(pk=run.pk).update(session=None)
    everybody = viewer(logged_in())
    assert reach_topic(everybody, Topic("run", run.pk))
    user = viewer(logged_in("chat_owner"))
    ChatGrant.objects.create(user=user, account="10001")
    assert not reach_topic(user, Topic("run", run.pk))
