"""Which persona answers where, by the rows."""

import pytest

from agent.domain.persona import PersonaSettings, environment_persona
from agent.models import Persona as PersonaRow, PersonaChoice
from agent.record.ground.versions import read_versions
from agent.record.settings.live import LiveSettings
from agent.record.settings.personas import load_longest_contexts, load_persona_table
from tests.agent.talk import GROUP, PRIVATE

pytestmark = pytest.mark.django_db


def made(name: str, *places: dict[str, str], **fields: object) -> PersonaRow:
    row: PersonaRow = PersonaRow.objects.create(name=name, **fields)
    for place in places:
        PersonaChoice.objects.create(persona=row, **place)
    return row


def who(chat: object = GROUP, sender: str = "20001") -> str:
    return load_persona_table().find(chat, sender).name  # type: ignore[arg-type]


def test_the_most_particular_place_counts():
    made("all groups", {"chat_kind": "group"})
    made("this group", {"chat_kind": "group", "peer_id": GROUP.peer_id})
    made("Ann's", {"user_id": "20001", "account": GROUP.account})
    assert (who(), who(sender="20002"), who(PRIVATE, "20002")) == ("Ann's", "this group", "default")


def test_a_place_that_names_a_disabled_persona_falls_to_the_next():
    row = made("this group", {"chat_kind": "group", "peer_id": GROUP.peer_id})
    made("all groups", {"chat_kind": "group"})
    assert who() == "this group"
    PersonaRow.objects.filter(pk=row.pk).update(enabled=False)
    assert who() == "all groups"


def test_what_is_empty_is_as_in_the_environment(settings):
    made("brief", {"chat_kind": "group"}, prompt="Be brief.", context_messages=99)
    settings.MAX_ITERATIONS = 7
    found = load_persona_table().find(GROUP, "1")
    assert (found.prompt, found.model_calls) == ("Be brief.", 7)
    assert load_persona_table().find(None, "") == environment_persona()


def test_a_deleted_persona_answers_no_more_and_its_snapshot_stays():
    row = made("brief", {"chat_kind": "group"})
    live = LiveSettings()
    live.see(read_versions())
    kept: PersonaSettings = live.seen.personas.find(GROUP, "1")
    row.delete()
    live.see(read_versions())
    assert (kept.name, live.seen.personas.find(GROUP, "1").name) == ("brief", "default")


def test_the_longest_context_counts_for_what_is_kept_even_when_switched_off():
    assert load_longest_contexts([None]) == [0]
    made("long", context_messages=500, enabled=False)
    assert load_longest_contexts([None]) == [500]
