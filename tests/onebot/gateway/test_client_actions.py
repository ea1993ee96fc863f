"""Acts of an account, and the ranks that its client tells."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from agent.domain.events import ChatNotice, EventKind
from agent.domain.types import ChatAddress
from onebot.connections.client import OneBotClient
from onebot.gateway.client_actions import MOST_GROUPS, MOST_MEMBERS, OneBotActions
from onebot.protocol.actions import (
    ActionResponse,
    ActionTimeout,
    FrameTooLarge,
    NotConnected,
    parse_response,
)

GROUP = ChatAddress("10001", "group", "30003")
MEMBER = {"user_id": 20002, "role": "member", "nickname": "Ann", "card": " "}


class Client(OneBotClient):
    """A client that answers what it is told to, by action."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[tuple[str, dict[str, object]]] = []
        self.said: set[str] | None = set()

    def unsupported(self, account: str) -> set[str] | None:
        return self.said

    async def call(
        self, account: str, action: str, params: Mapping[str, object], *_: Any
    ) -> ActionResponse:
        self.asked.append((action, dict(params)))
        answer = self.answers.get(action, {"retcode": 1404, "status": "failed"})
        if isinstance(answer, BaseException):
            raise answer
        return parse_response(answer if "retcode" in answer else {"retcode": 0, "data": answer})


@pytest.mark.parametrize(
    ("answer", "success", "unknown"),
    [
        ({"retcode": 0, "status": "ok"}, True, False),
        ({"retcode": 1200, "status": "failed", "wording": "no"}, False, False),
        ({"retcode": 1200, "wording": "Timeout: NTEvent x EventRet: {}"}, False, True),
        (ActionTimeout("late"), False, True),
        (NotConnected("gone"), False, False),
        (FrameTooLarge("big"), False, False),
    ],
)
async def test_what_came_of_an_act_is_known_or_not(answer, success, unknown):
    actions = OneBotActions(Client(set_group_ban=answer))
    outcome = await actions.perform(GROUP, "set_group_ban", {"user_id": "20002"})
    assert (outcome.is_success, outcome.is_unknown) == (success, unknown)


async def test_an_unknown_action_is_not_called_again_on_the_connection_but_another_instead():
    client = Client(send_poke={})
    actions, params = OneBotActions(client), {"group_id": "30003", "user_id": "20002"}
    for _ in range(2):
        outcome = await actions.perform(
            GROUP, "group_poke", params, instead=("send_poke", {"user_id": "x-1"})
        )
        assert outcome.is_success
    assert [name for name, _ in client.asked] == ["group_poke", "send_poke", "send_poke"]
    assert client.asked[0][1] == {"group_id": 30003, "user_id": 20002}
    assert client.asked[1][1] == {"user_id": "x-1"}


@pytest.mark.parametrize("kind", [EventKind.ADMIN, EventKind.LEAVE, EventKind.JOIN])
async def test_a_rank_is_asked_once_until_a_notice_changes_it(kind):
    client = Client(get_group_member_info=MEMBER)
    actions = OneBotActions(client)
    for _ in range(2):
        member = await actions.find_member(GROUP, "20002")
        assert member is not None
        assert (member.role, member.name) == ("member", "Ann")
    assert len(client.asked) == 1
    actions.follow(ChatNotice(EventKind.MUTE, GROUP), GROUP)
    assert await actions.find_member(GROUP, "20002")
    assert len(client.asked) == 1
    actions.follow(ChatNotice(kind, GROUP), GROUP)
    assert await actions.find_member(GROUP, "20002")
    assert len(client.asked) == 2
    actions.connected("10001")
    assert await actions.find_member(GROUP, "20002")
    assert len(client.asked) == 3


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"role": "admin", "user_id": 7},
        {"role": "king", "user_id": 20002},
        {"role": None},
        {"retcode": 1200, "status": "failed"},
        ActionTimeout("late"),
    ],
)
async def test_a_client_that_does_not_tell_a_rank_leaves_it_unknown(answer):
    actions = OneBotActions(Client(get_group_member_info=answer))
    assert await actions.find_member(GROUP, "20002") is None


async def test_what_was_asked_before_a_notice_is_not_remembered():
    client = Client(get_group_member_info=MEMBER)
    actions = OneBotActions(client)

    async def call(*args: Any) -> ActionResponse:
        actions.follow(ChatNotice(EventKind.ADMIN, GROUP), GROUP)
        return await Client.call(client, *args)

    client.call = call  # type: ignore[method-assign, assignment]
    await actions.find_member(GROUP, "20002")
    del client.call
    await actions.find_member(GROUP, "20002")
    assert len(client.asked) == 2


async def test_the_memory_of_ranks_has_a_bound():
    actions = OneBotActions(Client(get_group_member_info={"role": "member"}))
    for number in range(MOST_MEMBERS + 2):
        await actions.find_member(GROUP, str(20_000 + number))
    assert len(actions._groups["10001", "30003"]) <= MOST_MEMBERS
    for number in range(MOST_GROUPS + 2):
        await actions.find_member(ChatAddress("10001", "group", str(40_000 + number)), "20002")
    assert len(actions._groups) <= MOST_GROUPS


async def test_an_act_that_was_cut_off_may_have_changed_what_is_known():
    client = Client(get_group_member_info=MEMBER, set_group_card=asyncio.CancelledError())
    actions = OneBotActions(client)
    await actions.find_member(GROUP, "20002")
    with pytest.raises(asyncio.CancelledError):
        await actions.perform(GROUP, "set_group_card", {"user_id": "20002", "card": "x"})
    await actions.find_member(GROUP, "20002")
    assert [name for name, _ in client.asked].count("get_group_member_info") == 2
