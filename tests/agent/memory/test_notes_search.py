"""Notes written and found, on both databases."""

from collections.abc import Iterator
from datetime import timedelta
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone
from hypothesis import given, strategies as st

from agent.domain.notes import NoteViewer
from agent.memory import notes_store
from agent.memory.note_visibility import search_notes
from agent.memory.notes_store import (
    OWNER_LIMIT,
    NoteResult,
    delete_notes,
    erase_person,
    restore_note,
)
from agent.models import Note, ToolCall
from tests.admin.record import call_of, run_for, step_of
from tests.agent.databases import inside, postgres
from tests.agent.notes import (
    ANN_AT_HOME,
    ANN_IN_GROUP,
    BOB_IN_GROUP,
    OTHER_ACCOUNT,
    OTHER_GROUP,
    noted,
    noted_many,
    texts,
    told_everyone,
)

__all__ = ["postgres"]  # a fixture


@pytest.fixture(params=["sqlite", "postgresql"], autouse=True)
def database(request: pytest.FixtureRequest, db: None) -> Iterator[str]:
    """Every test here runs on both."""
    if request.param == "sqlite":
        yield "sqlite"
        return
    with inside(request.getfixturevalue("postgres")):
        yield "postgresql"


def test_the_test_runs_where_it_says(database: str):
    assert connection.vendor == database


@pytest.mark.parametrize("words", ["她对花生过敏吗", "过敏", "ALLERGY", "花生酱能吃吗", "peanut"])
def test_a_note_is_found_by_what_it_speaks_of(words: str):
    noted(ANN_IN_GROUP, "Ann 对花生过敏 (peanut allergy)")
    noted(ANN_IN_GROUP, "周末一起去爬山")
    assert texts(ANN_IN_GROUP, words) == ["Ann 对花生过敏 (peanut allergy)"]


@pytest.mark.parametrize(
    "words", ["天气怎么样", "'; DROP TABLE agent_note; --", '" OR "*', "NEAR(a b)", "\0", "的"]
)
def test_what_no_note_speaks_of_finds_nothing(words: str):
    noted(ANN_IN_GROUP, "对花生过敏")
    assert texts(ANN_IN_GROUP, f" {words} ") == []


def test_a_tag_finds_what_the_text_does_not_say():
    noted(ANN_IN_GROUP, "叫我船长", tags=("称呼",))
    assert texts(ANN_IN_GROUP, "我的称呼") == ["叫我船长"]


def test_the_better_note_comes_first_and_of_equal_ones_the_newer():
    for text in ("猫喜欢鱼", "猫喜欢鱼和牛奶", "狗喜欢鱼"):
        noted(ANN_IN_GROUP, text)
    assert texts(ANN_IN_GROUP, "猫喜欢什么鱼和牛奶")[0] == "猫喜欢鱼和牛奶"
    assert texts(ANN_IN_GROUP)[0] == "狗喜欢鱼"


def test_a_common_word_still_finds_this_chats_note_among_many_of_others():
    noted_many(OTHER_GROUP, (f"猫粮 {number}" for number in range(450)))
    noted(OTHER_GROUP, "吃多少")
    noted(ANN_IN_GROUP, "猫粮要买皇家的")
    assert texts(ANN_IN_GROUP, "猫粮 吃多少") == ["猫粮要买皇家的"]


def test_a_changed_note_is_found_by_its_new_words_and_a_deleted_one_by_none():
    note = Note.objects.get(pk=noted(ANN_IN_GROUP, "喜欢苹果").pk)
    note.text = "喜欢香蕉"
    note.save(update_fields=["text"])
    assert texts(ANN_IN_GROUP, "香蕉") == ["喜欢香蕉"]
    assert texts(ANN_IN_GROUP, "苹果") == []
    Note.objects.all().delete()
    assert search_notes([], ["香蕉"], 10) == []


def test_time_and_person_narrow_a_search():
    old = noted(ANN_IN_GROUP, "喜欢苹果").pk
    Note.objects.filter(pk=old).update(created_at=timezone.now() - timedelta(days=10))
    noted(BOB_IN_GROUP, "不喜欢苹果")
    week = timezone.now() - timedelta(days=7)
    assert (
        texts(ANN_IN_GROUP, "苹果", until=week) == texts(ANN_IN_GROUP, until=week) == ["喜欢苹果"]
    )
    assert (
        texts(ANN_IN_GROUP, "苹果", since=week)
        == texts(ANN_IN_GROUP, "苹果", people=("20002",))
        == ["不喜欢苹果"]
    )
    assert texts(ANN_IN_GROUP, people=("20001",)) == ["喜欢苹果"]


def test_what_is_expired_is_not_found():
    pk = noted(ANN_IN_GROUP, "喜欢苹果", days=1).pk
    assert texts(ANN_IN_GROUP, "苹果") == ["喜欢苹果"]
    Note.objects.filter(pk=pk).update(expires_at=timezone.now())
    assert texts(ANN_IN_GROUP, "苹果") == texts(ANN_IN_GROUP) == []


def test_what_is_found_counts_as_used():
    pk = noted(ANN_IN_GROUP, "喜欢苹果").pk
    texts(ANN_IN_GROUP, "苹果")
    note = Note.objects.get(pk=pk)
    assert note.use_count == 1
    assert note.last_used_at is not None


def test_the_same_words_are_kept_once_for_each_audience():
    first = noted(ANN_IN_GROUP, "喜欢苹果")
    assert noted(ANN_IN_GROUP, " 喜欢苹果 ") == type(first)(NoteResult.KNOWN, first.pk)
    assert (
        noted(OTHER_GROUP, "喜欢苹果").fate
        == noted(BOB_IN_GROUP, "喜欢苹果").fate
        == NoteResult.DONE
    )


def test_an_owner_has_a_limited_number_of_notes():
    noted_many(ANN_IN_GROUP, (f"第{number}件" for number in range(OWNER_LIMIT - 2)))
    assert noted(ANN_IN_GROUP, "最后一件").fate == NoteResult.DONE
    assert noted(ANN_IN_GROUP, "再多一件").fate == NoteResult.FULL
    assert noted(BOB_IN_GROUP, "再多一件").fate == NoteResult.DONE


# --- Who sees what ----------------------------------------------------------------


def test_a_note_of_one_chat_is_seen_in_no_other():
    noted(ANN_IN_GROUP, "喜欢苹果")
    assert texts(BOB_IN_GROUP, "苹果") == ["喜欢苹果"]
    for viewer in (OTHER_GROUP, OTHER_ACCOUNT, ANN_AT_HOME):
        assert texts(viewer, "苹果") == texts(viewer) == []


def test_a_note_for_a_person_is_seen_in_private_alone():
    noted(ANN_IN_GROUP, "喜欢苹果", visibility=Note.Visibility.PERSON)
    assert texts(ANN_AT_HOME, "苹果") == ["喜欢苹果"]
    bob_at_home = NoteViewer("onebot", "10001", "private:20002", "20001")
    for viewer in (ANN_IN_GROUP, OTHER_GROUP, OTHER_ACCOUNT, bob_at_home):
        assert texts(viewer, "苹果") == texts(viewer) == []


def test_a_note_for_everyone_is_seen_in_every_chat_it_is_meant_for():
    told_everyone("苹果很好吃")
    told_everyone("苹果很贵", account="10002")
    assert texts(ANN_IN_GROUP, "苹果") == texts(ANN_AT_HOME, "苹果") == ["苹果很好吃"]
    assert set(texts(OTHER_ACCOUNT, "苹果")) == {"苹果很贵", "苹果很好吃"}


ids = st.text(st.sampled_from('1:",[]\\é'), min_size=1, max_size=3)
viewers = st.builds(
    lambda platform, account, kind, peer, person: NoteViewer(
        platform, account, f"{kind}:{peer}", peer if kind == "private" else person
    ),
    st.sampled_from(["onebot", "o"]),
    ids,
    st.sampled_from(["group", "private"]),
    ids,
    ids,
)


@given(viewers, viewers, st.sampled_from([Note.Visibility.CHAT, Note.Visibility.PERSON]))
def test_no_note_leaves_the_chat_or_the_person_it_is_for(
    writer: NoteViewer, reader: NoteViewer, visibility: Note.Visibility
):
    with transaction.atomic():
        noted(writer, "喜欢苹果", visibility=visibility)
        seen = bool(texts(reader, "苹果"))
        assert seen == bool(texts(reader))
        transaction.set_rollback(True)
    same_account = (writer.platform, writer.account) == (reader.platform, reader.account)
    if visibility == Note.Visibility.CHAT:
        assert seen == (same_account and writer.chat == reader.chat)
    else:
        assert seen == (same_account and reader.chat == f"private:{writer.person}")


# --- Forgetting -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("viewer", "manager", "fate"),
    [
        (ANN_IN_GROUP, False, NoteResult.DONE),
        (BOB_IN_GROUP, False, NoteResult.NOT_ALLOWED),
        (BOB_IN_GROUP, True, NoteResult.DONE),
        (OTHER_GROUP, True, NoteResult.UNKNOWN),
        (ANN_AT_HOME, True, NoteResult.UNKNOWN),
    ],
)
def test_a_note_is_forgotten_by_whom_it_concerns_or_who_is_in_charge(
    viewer: NoteViewer, manager: bool, fate: NoteResult
):
    pk = noted(ANN_IN_GROUP, "喜欢苹果").pk
    assert delete_notes(viewer, pk, manager).fate == fate
    assert Note.objects.filter(pk=pk).exists() == (fate != NoteResult.DONE)


def test_what_the_operator_wrote_is_forgotten_in_the_admin_alone():
    assert (
        delete_notes(ANN_IN_GROUP, told_everyone("苹果很好吃").pk, is_manager=True).fate
        == NoteResult.NOT_ALLOWED
    )


def forgotten(pk: int) -> ToolCall:
    """The call that has removed the note ``pk``."""
    noted = {"kept": delete_notes(ANN_IN_GROUP, pk).kept}
    return call_of(step_of(run_for()), "forget", structured_content=noted)


def every_note() -> list[Any]:
    return list(Note.objects.order_by("pk").values())


def test_a_forgotten_note_comes_back_as_it_was_once():
    pk = noted(ANN_IN_GROUP, "喜欢苹果", tags=("水果",), days=7, said_by_name="Ann").pk
    before = every_note()
    call = forgotten(pk)
    assert not Note.objects.exists()
    assert restore_note(call.pk) is NoteResult.DONE
    assert every_note() == before
    assert texts(BOB_IN_GROUP, "苹果") == ["喜欢苹果"]
    Note.objects.update(text="now something else")
    assert restore_note(call.pk) is NoteResult.KNOWN
    assert texts(BOB_IN_GROUP) == ["now something else"]


@pytest.mark.parametrize("person", ["20001", "20003"])
def test_what_was_erased_does_not_come_back(person):
    call = forgotten(noted(ANN_IN_GROUP, "喜欢苹果", person="20003").pk)
    erase_person("other", person)
    erase_person("onebot", "20002")
    call.refresh_from_db()
    assert call.structured_content
    erase_person("onebot", person)
    assert restore_note(call.pk) is NoteResult.UNKNOWN
    call.refresh_from_db()
    assert call.structured_content is None
    assert not Note.objects.exists()


def test_it_comes_back_within_the_limits_alone(monkeypatch):
    call = forgotten(noted(ANN_IN_GROUP, "喜欢苹果").pk)
    again = noted(ANN_IN_GROUP, "喜欢苹果").pk
    assert restore_note(call.pk) is NoteResult.KNOWN
    Note.objects.filter(pk=again).update(fingerprint="other")
    monkeypatch.setattr(notes_store, "OWNER_LIMIT", 1)
    assert restore_note(call.pk) is NoteResult.FULL
    ToolCall.objects.update(structured_content=None)
    assert restore_note(call.pk) is NoteResult.UNKNOWN
    assert Note.objects.get().pk == again


# --- The index --------------------------------------------------------------------


def test_the_index_is_taken_away_and_made_again_over_the_notes_that_are_there():
    migration = import_module("agent.migrations.0003_note_search")
    noted(ANN_IN_GROUP, "喜欢苹果")
    editor = SimpleNamespace(connection=connection)
    connection.check_constraints()  # PostgreSQL makes no index while some wait to be checked
    migration.drop(None, editor)
    noted(ANN_IN_GROUP, "喜欢香蕉")
    connection.check_constraints()
    migration.create(None, editor)
    assert (texts(ANN_IN_GROUP, "苹果"), texts(ANN_IN_GROUP, "香蕉")) == (
        ["喜欢苹果"],
        ["喜欢香蕉"],
    )
