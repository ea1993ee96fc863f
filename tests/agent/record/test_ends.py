"""Ends of silences and take-overs: where they stand, in every process, and after an upgrade."""

import importlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Event

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import connections, transaction
from django.db.backends.postgresql.base import DatabaseWrapper
from django.utils import timezone

from agent.domain.states import Pause, PauseReason
from agent.models import ChatSession, Manners, Message, OperatorAct
from agent.record.arrivals.arrivals import ArrivalStore
from agent.record.runs.runs import RunStarter
from agent.record.settings.live import LiveSettings
from agent.record.settings.manners import load_manners_table
from agent.record.settings.timed_silences import CLOCK, end_silences
from agent.record.waiting.pauses import load_pauses, pause_chat
from agent.record.waiting.take_overs import end_take_overs, hand_back, take_over
from tests.admin.record import chat
from tests.agent.databases import in_place, inside, postgres  # noqa: F401 - a fixture
from tests.agent.record.test_activity_processes import moving_in
from tests.agent.talk import GROUP, PRIVATE, PROCESS, arrival, arrivals, message
from tools.live_rows import LiveKind
from tools.models import ToolConfigChange

END = datetime(2026, 11, 23, 12, 30, tzinfo=UTC)


# --- Judged with the message ----------------------------------------------------------


@pytest.mark.django_db
def test_of_several_silences_that_counts_which_lasts_longest():
    now = timezone.now()
    for minutes in (1, 3, 2):
        end = now + timedelta(minutes=minutes)
        Manners.objects.create(name=f"{minutes}", silenced=True, silenced_until=end)
    manners = load_manners_table().find(GROUP)
    found = [manners.find_silence(now + timedelta(seconds=one)) for one in (0, 179, 180)]
    assert found == ["3", "3", ""]
    Manners.objects.create(name="for good", silenced=True)
    assert load_manners_table().find(GROUP).find_silence(now + timedelta(days=9)) == "for good"


@pytest.mark.django_db
def test_a_mute_makes_another_process_read_the_pauses_and_nothing_else(
    django_capture_on_commit_callbacks, django_assert_num_queries
):
    pauses = list[int]()
    live = LiveSettings()
    live.read_by(lambda known: replace(known, pauses=load_pauses()), LiveKind.PAUSES)
    live.subscribe(lambda _, new: pauses.append(len(new.pauses)), "pauses")
    starter = RunStarter(PROCESS, live)

    def obey() -> None:
        with django_capture_on_commit_callbacks(execute=True):
            starter.reload_settings()

    obey()
    pause_chat(GROUP, Pause(PauseReason.MUTED))
    with django_assert_num_queries(2):  # the numbers, and the pauses
        obey()
    with django_assert_num_queries(1):
        obey()
    assert pauses == [0, 1]


# --- Two processes --------------------------------------------------------------------


@pytest.fixture
def processes(postgres: DatabaseWrapper) -> Iterator[list[ThreadPoolExecutor]]:  # noqa: F811
    """Two, each with a connection of its own to a database that is emptied afterwards."""
    with in_place(postgres):
        both = [ThreadPoolExecutor(1, initializer=moving_in(postgres)) for _ in range(2)]
        yield both
        for one in both:
            one.submit(lambda: connections["default"].close()).result(60)
            one.shutdown()
        for model in (OperatorAct, Message, ChatSession, User):
            model.objects.all().delete()


def hear(store: ArrivalStore) -> str:
    with transaction.atomic():
        [accepted] = store.accept_messages([arrival(message("hi", PRIVATE))])
    return str(accepted.decision and accepted.decision.reason)


@pytest.mark.django_db(transaction=True)
def test_what_one_process_takes_over_another_leaves_to_the_operator_at_once(processes):
    one, other = processes
    store, author = arrivals(), other.submit(User.objects.create, username="ann").result(60)
    heard = [one.submit(hear, store).result(60)]
    pk = ChatSession.objects.get().pk
    other.submit(take_over, pk, author, None).result(60)
    heard.append(one.submit(hear, store).result(60))
    other.submit(hand_back, pk, author).result(60)
    heard.append(one.submit(hear, store).result(60))
    assert heard == ["private", "taken_over", "private"]


@pytest.mark.django_db(transaction=True)
def test_a_message_on_its_way_while_a_chat_is_taken_over_is_the_operators_too(processes):
    begun, go_on = Event(), Event()

    def hear_slowly() -> None:
        with transaction.atomic():
            hear(arrivals())
            begun.set()
            assert go_on.wait(60)

    one, other = processes
    author = other.submit(User.objects.create, username="ann").result(60)
    one.submit(hear, arrivals()).result(60)
    slow = one.submit(hear_slowly)
    assert begun.wait(60)
    taken = other.submit(take_over, ChatSession.objects.get().pk, author, None)
    assert somebody_waits()
    go_on.set()
    slow.result(60)
    assert len(taken.result(60)) == 2
    assert {*Message.objects.values_list("reason", flat=True)} == {"taken_over"}


def somebody_waits() -> bool:
    """Whether a transaction waits for the lock of another, within a while."""
    ends, found = time.monotonic() + 30, 0
    with connections["default"].cursor() as cursor:
        while not found and time.monotonic() < ends:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            [found] = cursor.fetchone()
    return bool(found)


# --- Tidying up -----------------------------------------------------------------------


def check_tidying() -> None:
    past, soon = timezone.now(), timezone.now() + timedelta(hours=1)
    for name, end in (("over", past), ("soon", soon), ("for good", None)):
        Manners.objects.create(name=name, silenced=True, silenced_until=end)
        ChatSession.objects.filter(pk=chat(name).pk).update(
            taken_over_by="ann", taken_over_at=past, taken_over_until=end
        )
    Manners.objects.create(name="one", only_person="1", only_until=past)
    Manners.objects.create(name="one still", only_person="1", only_until=soon)
    assert [end_silences([None]), end_take_overs()] == [[2], 1]
    assert Manners.objects.exclude(only_person="").get().name == "one still"
    assert not Manners.objects.get(name="over").silenced
    assert ChatSession.objects.get(taken_over_by=None).peer_id == "over"
    assert {change.made_by for change in ToolConfigChange.objects.all()} == {CLOCK}
    assert [end_silences([None]), end_take_overs()] == [[0], 0]


@pytest.mark.django_db
def test_what_is_over_is_tidied_up_once_on_record():
    check_tidying()


def test_it_is_on_postgresql(postgres: DatabaseWrapper, django_db_blocker):  # noqa: F811
    with django_db_blocker.unblock(), inside(postgres):
        check_tidying()


# --- An upgrade -----------------------------------------------------------------------


def move_ends() -> None:
    importlib.import_module("agent.migrations.0013_ends").move_ends(apps, None)


def silence_as_before(name: str, **after: str) -> Manners:
    row = Manners.objects.create(name=name, silenced=True, chats="group:1")
    for values in ({"silenced": True} | after, *({"quote": True} for _ in range(60))):
        ToolConfigChange.objects.create(subject=f"agent.manners:{row.pk}", after=values)
    return row


def check_upgrade() -> None:
    timed = silence_as_before("timed", **{"$until": END.isoformat()})
    others = [silence_as_before("good"), silence_as_before("odd", **{"$until": "2026-99-99T1"})]
    chats = {detail: chat(f"70{n}") for n, detail in enumerate((END.isoformat(), "", "soon"))}
    for detail, session in chats.items():
        ChatSession.objects.filter(pk=session.pk).update(taken_over_by="ann")
        for kind, words in (("take_over", "2020-01-01"), ("take_over", detail), ("answer", "x")):
            OperatorAct.objects.create(session=session, kind=kind, detail=words, at=END)
    move_ends()
    ends = Manners.objects.filter(pk__in=[timed.pk, *(one.pk for one in others)])
    assert [*ends.order_by("pk").values_list("silenced_until", flat=True)] == [END, None, None]
    taken = ChatSession.objects.order_by("peer_id").values_list("taken_over_until", flat=True)
    assert [*taken] == [END, None, None]


@pytest.mark.django_db
def test_silences_and_take_overs_under_way_at_an_upgrade_end_on_time():
    check_upgrade()


def test_they_do_on_postgresql(postgres: DatabaseWrapper, django_db_blocker):  # noqa: F811
    with django_db_blocker.unblock(), inside(postgres):
        check_upgrade()
