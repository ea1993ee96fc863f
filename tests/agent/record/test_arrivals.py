"""Messages on record: once each, in order, with the decision and its reason."""

from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from agent.domain.types import ChatAddress
from agent.models import ChatSession, Manners, Message, Run
from agent.record.arrivals.arrivals import ArrivalStore, refuse_messages
from agent.record.ground import statements
from agent.record.ground.commit import GroupCommit
from tests.agent.talk import (
    GROUP,
    PLAN,
    PRIVATE,
    PROCESS,
    accept,
    arrival,
    arrivals,
    message,
    reasons,
)

pytestmark = pytest.mark.django_db


def sent(
    text: str, message_id: str = "", *, chat: ChatAddress = GROUP, state: str = "delivered"
) -> Message:
    """An outgoing message of the bot on record."""
    session, _ = ChatSession.objects.get_or_create(
        account=chat.account,
        kind=chat.kind,
        peer_id=chat.peer_id,
        defaults={"last_message_at": timezone.now()},
    )
    return Message.objects.create(
        session=session,
        direction="out",
        state=state,
        text=text,
        message_id=message_id,
        created_at=timezone.now(),
    )


def texts(**where) -> list[str]:
    return list(Message.objects.filter(**where).order_by("pk").values_list("text", flat=True))


# --- What is stored -----------------------------------------------------------------


def test_a_message_is_stored_with_everything_that_was_said_of_it():
    at = timezone.now()
    said = message(
        "hi",
        GROUP,
        message_id="-7",
        sender_role="admin",
        segments=[{"type": "text"}],
        raw={"a": 1},
        mentions_bot=True,
    )
    (accepted,) = arrivals().accept_messages([arrival(said, received_at=at)])
    row = Message.objects.get(pk=accepted.pk)
    assert (row.text, row.sender_id, row.sender_name, row.sender_role, row.message_id) == (
        "hi",
        "20001",
        "Ann",
        "admin",
        "-7",
    )
    assert (row.segments, row.raw, row.created_at, row.happened_at) == (
        [{"type": "text"}],
        {"a": 1},
        at,
        said.happened_at,
    )
    assert (row.state, row.reason, row.claimed_by, row.settled_at) == (
        "waiting",
        "mention",
        PROCESS,
        None,
    )


def test_what_is_not_answered_is_settled_at_once_and_claimed_by_nobody():
    (accepted,) = accept(message("hi", GROUP))
    row = Message.objects.get(pk=accepted.pk)
    assert (row.state, row.reason, row.claimed_by) == ("recorded", "not_addressed", "")
    assert row.settled_at is not None


def test_keys_are_given_in_the_order_of_arrival():
    accepted = accept(*(message(f"m{number}", message_id=str(number)) for number in range(20)))
    assert [one.pk for one in accepted] == sorted(one.pk for one in accepted)
    assert texts() == [f"m{number}" for number in range(20)]


def test_a_name_that_is_longer_than_its_column_is_cut():
    (accepted,) = accept(message(sender_name="名" * 500, chat_title="群" * 500))
    assert len(Message.objects.get(pk=accepted.pk).sender_name) == 200
    assert len(ChatSession.objects.get().title) == 200


# --- Sessions -----------------------------------------------------------------------


def test_each_chat_of_each_account_has_a_session_of_its_own():
    other = ChatAddress("10002", "group", GROUP.peer_id)
    private = ChatAddress(GROUP.account, "private", GROUP.peer_id)
    accepted = accept(
        message(chat=GROUP), message(chat=other), message(chat=private), message(chat=GROUP)
    )
    first, second, third, again = (one.session_pk for one in accepted)
    assert len({first, second, third}) == 3
    assert first == again


def test_a_session_takes_over_a_new_title_and_keeps_it_when_none_is_given():
    store = arrivals()
    for title in ("old", "new", ""):
        store.accept_messages([arrival(message(chat_title=title))])
        assert ChatSession.objects.get().title == (title or "new")


def test_a_session_knows_when_it_was_spoken_in_last():
    at = timezone.now() + timedelta(seconds=5)
    arrivals().accept_messages([arrival(message("one")), arrival(message("two"), received_at=at)])
    assert ChatSession.objects.get().last_message_at == at


def test_a_session_that_is_remembered_is_not_looked_up_again(
    django_assert_num_queries, django_capture_on_commit_callbacks
):
    store = arrivals()
    with django_capture_on_commit_callbacks(execute=True):
        store.accept_messages([arrival(message())])
    with django_assert_num_queries(3):  # the session with the settings, message, sums
        store.accept_messages([arrival(message())])


def test_a_session_whose_creation_was_rolled_back_is_made_again(monkeypatch):
    store = arrivals()
    with monkeypatch.context() as broken:
        broken.setattr(ArrivalStore, "_row", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            store.accept_messages([arrival(message())])
    ChatSession.objects.all().delete()
    (accepted,) = store.accept_messages([arrival(message())])
    assert ChatSession.objects.get().pk == accepted.session_pk


# --- Once ---------------------------------------------------------------------------


def test_an_event_told_again_is_on_record_once():
    (first,) = accept(message(message_id="7"))
    (again,) = accept(message(message_id="7"))
    assert (again.pk, again.decision, again.session_pk) == (0, None, first.session_pk)
    assert len(texts()) == 1


def test_an_event_told_twice_in_one_commit_is_on_record_once():
    first, again, other = accept(
        message("a", message_id="7"), message("a", message_id="7"), message("b", message_id="8")
    )
    assert (again.pk, again.decision) == (0, None)
    assert texts() == ["a", "b"]
    assert Message.objects.get(pk=other.pk).text == "b"
    assert first.pk < other.pk


def test_one_id_in_different_chats_means_different_messages():
    accepted = accept(message(message_id="7", chat=GROUP), message(message_id="7", chat=PRIVATE))
    assert all(one.decision for one in accepted)


def test_messages_without_an_id_are_all_kept():
    assert all(one.decision for one in accept(message("same"), message("same")))


def test_an_id_that_a_client_uses_again_days_later_is_a_new_message_and_then_known_too():
    store, later = arrivals(), timezone.now() + timedelta(days=2)
    store.accept_messages([arrival(message("old", message_id="7"))])
    outcomes = [
        store.accept_messages([arrival(message("new", message_id="7"), received_at=later)])[0]
        for _ in range(2)
    ]
    assert [bool(one.decision) for one in outcomes] == [True, False]
    assert texts() == ["old", "new"]


# --- The bot's own words ------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message_id", "state"),
    [("other", "7", "delivered"), ("hello", "8", "sent"), ("hello", "8", "unknown")],
)
def test_what_was_sent_from_here_and_is_told_back_is_not_recorded_again(text, message_id, state):
    sent(text, "7", state=state)
    (accepted,) = accept(
        message(
            "hello",
            GROUP,
            message_id=message_id if message_id == "8" else "7",
            from_own_account=True,
        )
    )
    assert accepted.decision is None
    assert texts(direction="in") == []


def test_what_the_owner_says_with_the_bots_account_is_recorded():
    sent("hello", "7")
    (accepted,) = accept(message("by hand", GROUP, message_id="8", from_own_account=True))
    assert Message.objects.get(pk=accepted.pk).reason == "own_message"


def test_a_quote_of_the_bots_own_message_is_answered():
    sent("hello", "7")
    (accepted,) = accept(message("why?", GROUP, quoted_id="7"))
    assert reasons([accepted]) == ["quote"]


def test_a_quote_of_what_the_owner_said_with_the_bots_account_is_answered():
    own, quote = accept(
        message("by hand", GROUP, message_id="8", from_own_account=True),
        message("why?", GROUP, quoted_id="8"),
    )
    assert reasons([own, quote]) == ["own_message", "quote"]
    assert reasons(accept(message("why?", GROUP, quoted_id="8"))) == ["quote"]


def test_a_quote_of_somebody_else_or_of_another_chat_is_not():
    sent("hello", "7", chat=PRIVATE)
    accept(message("human", GROUP, message_id="9"))
    quotes = accept(message("why?", GROUP, quoted_id="7"), message("why?", GROUP, quoted_id="9"))
    assert reasons(quotes) == ["not_addressed", "not_addressed"]


# --- Runs that begin with the message -----------------------------------------------


def test_a_planned_run_begins_in_the_same_commit():
    (accepted,) = arrivals().accept_messages([arrival(message(), plan=PLAN)])
    run = Run.objects.get()
    assert accepted.begun is not None
    assert accepted.begun.run_pk == run.pk
    assert (run.message_id, run.session_id, run.state, run.claimed_by) == (
        accepted.pk,
        accepted.session_pk,
        "running",
        PROCESS,
    )
    assert Message.objects.get(pk=accepted.pk).state == "running"


def test_no_run_begins_for_what_is_not_answered():
    silent, again = message("hi", GROUP), message(message_id="7")
    accept(again)
    accepted = arrivals().accept_messages([arrival(silent, plan=PLAN), arrival(again, plan=PLAN)])
    assert [one.begun for one in accepted] == [None, None]
    assert not Run.objects.exists()


def test_a_row_of_manners_counts_from_the_next_message_on():
    store = arrivals()
    before = store.accept_messages([arrival(message("Frost?", GROUP))])
    Manners.objects.create(name="names", wake_names="Frost")
    after = store.accept_messages([arrival(message("Frost?", GROUP))])
    assert reasons([*before, *after]) == ["not_addressed", "wake_word"]


# --- No room ------------------------------------------------------------------------


def test_what_is_refused_stays_on_record_with_the_reason():
    first, second = accept(message("one"), message("two"))
    refuse_messages([second.pk])
    row = Message.objects.get(pk=second.pk)
    assert (row.state, row.reason, row.claimed_by) == ("failed", "queue_full", "")
    assert row.settled_at is not None
    assert Message.objects.get(pk=first.pk).state == "waiting"


@pytest.mark.django_db(transaction=True)
async def test_a_chat_that_another_process_stored_in_the_same_moment_costs_no_message(monkeypatch):
    await sync_to_async(sent)("hello")
    query, early = statements.find_session.rows, [True]
    monkeypatch.setattr(  # the first look comes too early to see the row
        statements.find_session,
        "rows",
        lambda **place: [] if early and early.pop() else query(**place),
    )
    commit, record = GroupCommit(), arrivals()
    accepted = await commit.submit_batched(record.accept_messages, arrival(message("hi", GROUP)))
    await commit.close()
    assert accepted.pk
    assert await ChatSession.objects.acount() == 1
