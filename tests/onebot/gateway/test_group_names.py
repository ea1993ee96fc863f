"""Asking clients what groups are called, without a flood."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from agent.domain.types import ChatAddress
from agent.record.record import Record
from onebot.connections.client import OneBotClient
from onebot.gateway import introductions
from onebot.gateway.introductions import GroupNames
from onebot.protocol.actions import ActionResponse
from tests.agent.talk import GROUP, arrival, message
from tests.environment import PATIENCE

pytestmark = pytest.mark.django_db(transaction=True)


class Client(OneBotClient):
    """A client that answers every question with the same."""

    def __init__(self, data: Any) -> None:
        self.data = data
        self.asked: list[str] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def call_optional(
        self, account: str, action: str, params: Mapping[str, object], timeout_seconds: float
    ) -> ActionResponse:
        self.asked.append(str(params["group_id"]))
        await self.may_answer.wait()
        return ActionResponse("ok", 0, self.data, None, "")


async def until_idle(names: GroupNames) -> None:
    async with asyncio.timeout(PATIENCE):
        await names._record.submit(int)  # after what was looked for on record
        while names._tasks:
            await asyncio.gather(*names._tasks.values())


def chat(number: int) -> ChatAddress:
    return ChatAddress("10001", "group", str(number))


async def test_a_thousand_groups_are_asked_about_one_after_the_other(record, monkeypatch):
    monkeypatch.setattr(introductions, "PAUSE_SECONDS", 0.0)
    client = Client({"group_name": "g"})
    client.may_answer.clear()
    names = GroupNames(client, record)
    for number in range(1, 1_001):
        names.ask(chat(number))
        names.ask(chat(number))
    await record.submit_batched(lambda items: items, None)
    assert len(client.asked) <= 1
    client.may_answer.set()
    await until_idle(names)
    assert client.asked == [str(number) for number in range(1, 1_001)]
    assert names.find(chat(7)) == "g"


@pytest.mark.parametrize("data", [None, {}, [], {"group_name": None}, {"group_name": " "}])
async def test_what_is_no_name_is_none(record: Record, monkeypatch: Any, data: Any):
    monkeypatch.setattr(introductions, "PAUSE_SECONDS", 0.0)
    names = GroupNames(Client(data), record)
    names.ask(GROUP)
    await until_idle(names)
    assert names.find(GROUP) == ""


async def test_a_new_connection_may_be_asked_what_the_one_before_did_not_say(record, monkeypatch):
    monkeypatch.setattr(introductions, "PAUSE_SECONDS", 0.0)
    client = Client(None)
    names = GroupNames(client, record)
    names.ask(GROUP)
    await until_idle(names)
    names.ask(GROUP)
    names.connected(GROUP.account)
    names.ask(GROUP)
    await until_idle(names)
    assert client.asked == [GROUP.peer_id] * 2


async def test_a_name_on_record_is_left_alone(record: Record):
    await record.submit_batched(
        record.arrivals.accept_messages, arrival(message("hi", GROUP, chat_title="老群"))
    )
    client = Client({"group_name": "新群"})
    names = GroupNames(client, record)
    names.ask(GROUP)
    await until_idle(names)
    assert client.asked == []
