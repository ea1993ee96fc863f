"""The settings of a process: read with the message that meets a change, told once committed."""

from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields

import pytest
from django.db import DatabaseError, transaction

from agent.models import Manners
from agent.record.ground.versions import read_versions
from agent.record.settings import snapshot
from agent.record.settings.live import LiveSettings
from agent.record.settings.snapshot import Settings
from tests.agent.talk import GROUP
from tools.live_rows import ConfigVersion, LiveKind
from tools.models import ToolConfig

pytestmark = pytest.mark.django_db(transaction=True)

See = Callable[[], None]


@pytest.fixture
def live() -> LiveSettings:
    return LiveSettings()


@pytest.fixture
def see(live: LiveSettings) -> See:
    """Has a transaction of this process meet what is new, and commits it."""

    def see() -> None:
        with transaction.atomic():
            live.see(read_versions())

    see()
    return see


def silencer(settings: Settings) -> str:
    return settings.manners.find(GROUP).silenced_by


def test_subscribers_are_told_the_old_and_the_new_value_once(live, see):
    told: list[tuple[Settings, Settings]] = []
    live.subscribe(lambda *both: told.append(both), "manners", "budgets")
    before = live.current
    Manners.objects.create(name="house", silenced=True)
    see()
    see()
    assert told == [(before, live.current)]
    assert [silencer(one) for one in told[0]] == ["", "house"]
    with pytest.raises(FrozenInstanceError):
        live.current.budgets = ()


def test_who_follows_other_parts_is_told_nothing(live, see):
    told: list[str] = []
    live.subscribe(lambda *_: told.append("manners"), "manners")
    live.subscribe(lambda *_: told.append("budgets"), "budgets", "tools")
    Manners.objects.create(name="house")
    see()
    assert told == ["manners"]


def test_of_what_is_new_that_alone_is_read_and_every_other_part_stays_the_same_object(
    live, see, django_assert_num_queries
):
    before = live.current
    ToolConfig.objects.create(name="f")
    with django_assert_num_queries(2):  # the numbers, and the tools
        live.see(read_versions())
    assert list(live.current.tools) == ["f"]
    parts = {field.name for field in fields(Settings)}
    same = {part for part in parts if getattr(live.current, part) is getattr(before, part)}
    assert parts - same == {"tools", "versions"}


def test_the_transaction_that_meets_a_change_sees_it_and_nobody_else_before_the_commit(live, see):
    Manners.objects.create(name="house", silenced=True)
    with transaction.atomic():
        live.see(read_versions())
        assert (silencer(live.seen), silencer(live.current)) == ("house", "")
    assert live.current is live.seen


def test_a_rollback_leaves_what_was_committed(live, see):
    told: list[str] = []
    live.subscribe(lambda _, new: told.append(silencer(new)), "manners")
    before = live.current
    with transaction.atomic():
        Manners.objects.create(name="never", silenced=True)
        live.see(read_versions())
        assert silencer(live.seen) == "never"
        transaction.set_rollback(True)
    live.forget()
    assert live.seen is live.current is before
    Manners.objects.create(name="instead", silenced=True)  # with the number of the other
    see()
    assert told == ["instead"]


def test_a_subscriber_that_fails_is_told_again_from_where_it_stood(live, see):
    told: list[tuple[str, str]] = []

    def fail_once(old: Settings, new: Settings) -> None:
        told.append((silencer(old), silencer(new)))
        if len(told) == 1:
            raise OSError

    live.subscribe(fail_once, "manners")
    Manners.objects.create(name="house", silenced=True)
    see()
    assert silencer(live.current) == "house"
    see()
    see()
    assert told == [("", "house")] * 2


def test_rows_that_make_no_sense_leave_their_part_as_it_was_until_they_do(live, see, monkeypatch):
    def refuse() -> None:
        raise ValueError("no such kind")

    ToolConfig.objects.create(name="f")
    Manners.objects.create(name="house", silenced=True)
    with monkeypatch.context() as broken:
        broken.setattr(snapshot, "load_tool_settings", refuse)
        see()
    assert (silencer(live.current), dict(live.current.tools)) == ("house", {})
    see()
    assert list(live.current.tools) == ["f"]


def test_a_process_whose_first_reading_fails_raises_and_lets_nobody_in(live, monkeypatch):
    def refuse() -> None:
        raise ValueError("no such kind")

    Manners.objects.create(name="house", silenced=True)
    with monkeypatch.context() as broken:
        broken.setattr(snapshot, "load_manners_table", refuse)
        with pytest.raises(ValueError, match="no such kind"), transaction.atomic():
            live.see(read_versions())
    live.forget()
    with transaction.atomic():
        live.see(read_versions())
    assert silencer(live.current) == "house"


def test_what_the_database_refuses_fails_the_transaction(live, see, monkeypatch):
    def refuse() -> None:
        raise DatabaseError

    monkeypatch.setattr(snapshot, "load_manners_table", refuse)
    ConfigVersion.bump(LiveKind.MANNERS)
    with pytest.raises(DatabaseError):
        see()
