"""What the installation's row says in place of the environment counts from the next message on, in
every process, and is the environment's again once it is emptied."""

import pytest
from django.conf import settings as django_settings
from django.db import transaction
from django.utils import translation

from agent.memory.service import MemoryService
from agent.models import Installation
from agent.record.settings.installation import environment_value, load_installation, obey
from agent.runtime import wiring
from agent.runtime.record_retention import retention_rules
from tests.agent.talk import arrival, arrivals, message

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _environment(settings):
    settings.RECORD_KEEP_DAYS, settings.MCP_ALLOWED_COMMANDS = 7, ["npx"]
    yield
    obey({})


def say(**fields: object) -> None:
    Installation(**fields).save()


def test_a_row_counts_from_the_next_message_on_and_no_longer_once_it_is_emptied():
    store, (rule, *_others) = arrivals(), retention_rules()
    store.accept_messages([arrival(message("one"))])
    say(record_keep_days=30, media_keep_gib=0.5)
    assert rule.find_days() == 7
    store.accept_messages([arrival(message("two"))])
    assert (rule.find_days(), environment_value("RECORD_KEEP_DAYS")) == (30, 7)
    assert django_settings.MEDIA_KEEP_BYTES == 2**29
    say(record_keep_days=0)
    store.accept_messages([arrival(message("three"))])
    assert rule.find_days() == 0
    say()
    store.accept_messages([arrival(message("four"))])
    assert rule.find_days() == 7
    assert django_settings.MEDIA_KEEP_BYTES == 5 * 2**30


def test_another_process_obeys_the_row_as_well():
    say(record_keep_days=30)
    stores = [arrivals() for _process in range(2)]
    say(record_keep_days=31)
    for store in stores:
        store.accept_messages([arrival(message("one"))])
        assert store._run_starter.live.seen.said["RECORD_KEEP_DAYS"] == 31


def test_what_was_rolled_back_never_counts():
    store = arrivals()
    with transaction.atomic():
        say(record_keep_days=30)
        store.accept_messages([arrival(message("one"))])
        transaction.set_rollback(True)
    store._run_starter.live.forget()
    assert django_settings.RECORD_KEEP_DAYS == 7


@pytest.mark.parametrize(
    ("text", "allowed"),
    [("", ["npx"]), ("-", []), ("/opt/a\n\n uvx ", ["/opt/a", "uvx"])],
)
def test_programs_are_the_rows_alone_where_it_names_any(text: str, allowed: list[str]):
    say(mcp_allowed_commands=text)
    obey(load_installation()[1])
    assert allowed == django_settings.MCP_ALLOWED_COMMANDS


def test_the_language_of_what_nobody_asked_for_is_the_rows():
    for code, words in (("en", "Monday"), ("zh-hans", "星期一")):
        say(language_code=code)
        obey(load_installation()[1])
        translation.deactivate()
        assert str(translation.gettext("Monday")) == words


async def test_memory_that_was_off_is_kept_once_it_is_on(record, settings):
    settings.SUMMARY_AFTER_MESSAGES = settings.MEMORY_EXTRACT_TURNS = 0
    memory = MemoryService(record, wiring.memory_settings())
    assert not memory.has_upkeep
    settings.SUMMARY_AFTER_MESSAGES = 10
    memory.obey(wiring.memory_settings())
    assert memory.has_upkeep
