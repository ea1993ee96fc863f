"""The limits that chats had of their own, in rows of manners after an upgrade."""

from importlib import import_module

import pytest
from django.apps import apps as now
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from agent.models import Manners
from agent.record.settings.manners import load_manners_table
from tests.agent.talk import GROUP, PRIVATE

COPY = import_module("agent.migrations.0017_answer_rules").copy_limits
LIMITS = ("person_per_minute", "person_per_day", "chat_per_minute", "chat_per_day")


class Before:
    """The apps with a chat session that has limits, as before the migration."""

    def __init__(self) -> None:
        state = MigrationExecutor(connection).loader.project_state(
            [("agent", "0016_one_sum_of_tokens")]
        )
        self.sessions = state.apps.get_model("agent.ChatSession")

    def get_model(self, name: str):
        return self.sessions if name == "agent.ChatSession" else now.get_model(name)


@pytest.mark.django_db
def test_the_limits_of_a_chat_go_into_its_row_of_manners_or_a_new_one(settings):
    settings.PERSON_ANSWERS_PER_DAY = 300
    before = Before()
    for chat, limits in ((GROUP, (3, 0, None, 7)), (PRIVATE, (None, None, 9, None))):
        before.sessions.objects.create(
            platform="onebot",
            account=chat.account,
            kind=chat.kind,
            peer_id=chat.peer_id,
            last_message_at="2026-11-23T00:00Z",
            **dict(zip(LIMITS, limits, strict=True)),
        )
    place = {"account": GROUP.account, "chats": GROUP.key}
    mine = Manners.objects.create(name="mine", denied_people="7", **place)
    Manners.objects.create(name=f"{PRIVATE.key} ({PRIVATE.account})", enabled=False)
    COPY(before, None)
    row = Manners.objects.get(pk=mine.pk)
    assert (row.denied_people, row.updated_at) == ("7", mine.updated_at)
    found = [load_manners_table().find(chat) for chat in (GROUP, PRIVATE)]
    assert [tuple(getattr(one, name) for name in LIMITS) for one in found] == [
        (3, 0, 0, 7),
        (0, 300, 9, 0),
    ]
    assert found[0].said_by["person_per_minute"] == "mine"
    assert found[1].said_by["chat_per_minute"] == f"{PRIVATE.key} ({PRIVATE.account}) 2"
