"""What a process reads when another one has changed a row."""

from typing import Any

import pytest

from agent.domain.states import Pause, PauseReason
from agent.models import (
    Budget,
    EndpointChoice,
    EventRule,
    Installation,
    Manners,
    ModelEndpoint,
    Persona,
    PersonaChoice,
)
from agent.record.settings.endpoints import LearntRefusal, save_learnt
from agent.record.waiting.pauses import pause_chat
from agent.runtime.runtime import Runtime
from onebot.connections.client import OneBotClient
from onebot.gateway.delivery import OneBotDelivery
from onebot.models import Bot
from tests.agent.talk import GROUP
from tools.live_rows import ConfigVersion, LiveKind
from tools.models import HttpTool, McpServer, Plugin, Secret, ToolConfig

pytestmark = pytest.mark.django_db

#: The number of changes is read, and then what is new.
MOST_QUERIES = 3


def make_rows() -> dict[str, Any]:
    """A row of each kind, to be saved again."""
    persona = Persona.objects.create(name="p")
    endpoint = ModelEndpoint.objects.create(name="e", model="m")
    rows = [
        persona,
        endpoint,
        EndpointChoice.objects.create(persona=persona, endpoint=endpoint, role="chat"),
        PersonaChoice.objects.create(persona=persona, chat_kind="group"),
        Manners.objects.create(name="m"),
        EventRule.objects.create(name="e", kind="poke"),
        Budget.objects.create(name="b", kind="total", period="day", limit=1, unit="tokens"),
        Installation.objects.get_or_create(pk=Installation.ONLY)[0],
        Bot.objects.get_or_create(self_id="1")[0],
        ToolConfig.objects.create(name="f"),
        Secret.objects.create(name="S"),
        McpServer.objects.create(name="s", enabled=False),
        HttpTool.objects.create(name="h", enabled=False),
        Plugin.objects.create(folder="x"),
    ]
    return {type(row).__name__: row for row in rows}


@pytest.fixture
def look(django_capture_on_commit_callbacks):
    """Has a process that follows the rows see what is new."""
    runtime = Runtime(OneBotDelivery(OneBotClient.__new__(OneBotClient)))

    def look() -> None:
        with django_capture_on_commit_callbacks(execute=True):
            runtime.record.run_starter.reload_settings()

    return look


def test_one_changed_row_costs_another_process_three_queries(look, django_assert_max_num_queries):
    rows = make_rows()
    look()
    for row in rows.values():
        row.save()
        with django_assert_max_num_queries(MOST_QUERIES, info=type(row).__name__):
            look()
        with django_assert_max_num_queries(1):
            look()


def test_what_nobody_set_makes_no_setting_be_read(look, django_assert_num_queries):
    rows = make_rows()
    look()
    version = ConfigVersion.current()
    pause_chat(GROUP, Pause(PauseReason.MUTED))
    with django_assert_num_queries(2):
        look()
    save_learnt(LearntRefusal(rows["ModelEndpoint"].pk, "no_tools", "I cannot"))
    with django_assert_num_queries(2):
        look()
    ConfigVersion.bump(LiveKind.STICKERS)
    with django_assert_num_queries(2):
        look()
    assert ConfigVersion.current() == version


def test_a_change_that_does_not_say_of_what_has_everything_read_again(
    look, django_assert_num_queries
):
    look()
    ConfigVersion.bump()
    with django_assert_num_queries(1 + 14):
        look()
