"""Where an account cannot speak: what is put on record, and what is looked up again."""

import asyncio
from typing import Any, cast

import pytest
from asgiref.sync import sync_to_async

from agent.domain.events import ChatNotice, EventKind
from agent.domain.states import Pause, PauseReason
from agent.domain.types import ChatAddress
from agent.record.waiting.pauses import load_pauses, pause_chat
from onebot.gateway.pauses import PauseWatch

pytestmark = pytest.mark.django_db(transaction=True)
ACCOUNT = "10001"


class Client:
    """Is connected for three looks, and fails at the first question; ``asked`` are the groups."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.looks = 0

    def is_connected(self, account: str) -> bool:
        self.looks += 1
        return self.looks <= 3

    async def call_optional(self, account: str, action: str, params: Any, seconds: float) -> None:
        self.asked.append(params["group_id"])
        if len(self.asked) == 1:
            raise RuntimeError("once")


async def stop_nothing(chat: ChatAddress) -> None:
    """No answer is under way."""


async def test_a_mute_that_is_lifted_at_once_is_lifted_whatever_else_is_written(record):
    watch = PauseWatch(cast("Any", Client()), record, stop_nothing)
    for group, change in (("1", "lift"), ("2", "ban"), ("2", "lift")):
        chat = ChatAddress(ACCOUNT, "group", group)
        notice = ChatNotice(EventKind.MUTE, chat, change, user_id=ACCOUNT, seconds=60)
        watch.follow(notice, chat)
    await asyncio.wait(watch._written)
    assert await sync_to_async(load_pauses)(ACCOUNT) == {}
    await watch.close()


async def test_paused_chats_are_looked_up_again_also_after_an_error(record, monkeypatch):
    monkeypatch.setattr("onebot.gateway.pauses.LOOK_AGAIN_SECONDS", 0)
    chat = ChatAddress(ACCOUNT, "group", "3")
    await record.submit(pause_chat, chat, Pause(PauseReason.LEFT))
    client = Client()
    watch = PauseWatch(cast("Any", client), record, stop_nothing)
    watch.connected(ACCOUNT)
    await watch._tasks[ACCOUNT]
    assert client.asked == [3, 3, 3]
