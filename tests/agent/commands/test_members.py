"""Commands against members of a group."""

import pytest

from agent.commands.members import WantedCall, read_wanted
from agent.domain.commands import parse_command
from agent.domain.manners import ChatManners, MemberCommands
from agent.models import Manners, ToolCall
from tests.agent.acting import ScriptedClient, act_registry
from tests.agent.talk import GROUP, PRIVATE
from tools.models import ToolConfig

ADMIN = {"sender_id": "20005", "sender_role": "admin"}
BAN = {"group_id": GROUP.peer_id, "user_id": "20002"}


@pytest.mark.parametrize(
    ("text", "tool", "minutes"),
    [
        ("/mute [@20002] 10m", "mute_member", 10),
        ("/mute [@20002]10m", "mute_member", 10),
        ("/禁言 20002 30 分钟", "mute_member", 30),
        ("/禁言 [@20002] 2h", "mute_member", 120),
        ("/mute 10m [@20002]", "mute_member", 10),
        ("／mute [@20002] １d", "mute_member", 1440),
        ("/mute [@20002] 5", "mute_member", 5),
        ("/unmute [@20002]", "unmute_member", None),
        ("/解禁 20002", "unmute_member", None),
        ("/kick [@20002]", "kick_member", None),
        ("/踢 20002", "kick_member", None),
    ],
)
def test_commands_are_read(text, tool, minutes):
    command = parse_command(text, "/", on_members=True)
    wanted = {"user_id": "20002"} | ({} if minutes is None else {"minutes": minutes})
    assert command is not None
    assert read_wanted(command) == WantedCall(tool, wanted)


@pytest.mark.parametrize(
    "text",
    [
        "/mute",
        "/mute 10m",
        "/mute [@20002]",
        "/mute [@20002] [@20003] 10m",
        "/mute [@20002] ten minutes",
        "/mute [@20002] 10m please",
        "/mute 20002 20003 10m",
        "/mute [@20002] -5m",
        "/kick",
        "/kick [@20002] [@20003]",
        "/kick [@20002] now",
        "/unmute 20002 10m",
    ],
)
def test_what_is_not_written_like_one_orders_nothing(text):
    command = parse_command(text, "/", on_members=True)
    assert command is not None
    assert read_wanted(command) is None


@pytest.mark.parametrize("text", ["/mute [@20002] 10m", "/禁言 20002 10m", "/踢 20002"])
def test_they_are_no_commands_unless_manners_say_so(text):
    assert parse_command(text, "/") is None
    assert ChatManners().member_commands == MemberCommands.OFF


@pytest.fixture
async def group(room):
    """The room of commands in a group whose administrators may give these."""
    client = ScriptedClient()
    desk = room.conversations.commands
    object.__setattr__(desk.services, "actions", client)
    object.__setattr__(desk.services, "registry", act_registry(room.record, {}))
    room.client = client
    await Manners.objects.acreate(name="members", member_commands="admins")
    return room


async def test_an_administrator_mutes_and_unmutes_and_the_calls_are_on_record(group):
    assert "20002 is muted for 10 minutes." in await group.say("/mute [@20002] 10m", **ADMIN)
    assert "已解除 20002 的禁言。" in await group.say("/解禁 20002", **ADMIN)
    assert group.client.acts == [
        ("set_group_ban", {**BAN, "duration": 600}),
        ("set_group_ban", {**BAN, "duration": 0}),
    ]
    calls = [call async for call in ToolCall.objects.order_by("pk")]
    assert [(one.tool_name, one.state, one.verdict) for one in calls] == [
        ("mute_member", "succeeded", "approved"),
        ("unmute_member", "succeeded", "approved"),
    ]
    assert {one.decided_by for one in calls} == {"20005"}


@pytest.mark.parametrize(
    ("words", "fields", "answer"),
    [
        ("/mute [@20002] 10m", {}, "Only my owners"),
        ("/kick [@20002]", {"sender_role": "member"}, "Only my owners"),
        ("/mute [@all] 10m", ADMIN, "not the number of one person"),
        ("/mute 0 10m", ADMIN, "not the number of one person"),
        ("/mute everybody 10m", ADMIN, "not the number of one person"),
        ("/kick [@10001]", ADMIN, "bot itself"),
        ("/kick [@20009]", ADMIN, "bot's owners"),
        ("/mute [@20006] 10m", ADMIN, "does not rank above"),
        ("/kick [@20004]", ADMIN, "the owner of the group here"),
        ("/kick [@20008]", ADMIN, "no member"),
        ("/mute [@20002] 31d", ADMIN, "30 days"),
        ("/mute [@20002] 0m", ADMIN, "30 days"),
        ("/mute [@20002] 3650d", ADMIN, "30 days"),
        ("/kick", ADMIN, "It is written like this"),
    ],
)
async def test_what_may_not_be_done_is_refused_in_one_sentence(group, words, fields, answer):
    assert answer in await group.say(words, mentions_bot=True, **fields)
    assert group.client.acts == []


async def test_a_private_chat_has_no_members(group):
    assert await group.order("/kick 20002", PRIVATE) != ""
    assert group.client.acts == []


async def test_a_member_whose_name_is_a_command_does_nothing(group):
    name = "/kick [@20003]"
    answer = await group.say(f"[@{name}] /mute 20002 10m", sender_name=name, **ADMIN)
    assert answer == ""
    assert group.client.acts == []


async def test_the_day_of_a_chat_has_so_many_kicks(group):
    await ToolConfig.objects.acreate(name="kick_member", enabled=False, calls_per_day_chat=2)
    for number in range(3):
        said = await group.order(f"/kick 2{number:04}")
    assert "2 次" in said
    assert len(group.client.acts) == 2


async def test_the_first_ceiling_of_a_day_holds_without_a_row(group):
    for number in range(6):
        said = await group.order(f"/kick 21{number:03}")
    assert "5 次" in said
    assert len(group.client.acts) == 5
