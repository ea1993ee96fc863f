"""The bot looks at its group and acts lightly in it: a real server, a client that knows some of the
actions, one walk."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.chat import client, outgoing, tell
from tests.e2e.cockpit import Cockpit
from tests.e2e.seeing import text
from tests.fake_onebot import FakeOneBot, Frame, at, failed, ok, spoken
from tests.file_server import FileServer, sends
from tests.live_server import LiveServer
from tests.scripted_model import ScriptedModel, call

NAMES = "list_members get_member list_files get_file poke like react send_face send_music"
TOOLS = [*NAMES.split(), "send_forward"]
END = "the end"


@pytest.fixture(scope="module")
def live(model_server: ScriptedModel) -> Iterator[LiveServer]:
    """A server with the tools switched on, which are off at first."""
    with LiveServer(scripted_env(model_server) | {"FETCH_ALLOW": "127.0.0.1"}) as server:
        cockpit = Cockpit(server)
        for tool in TOOLS:
            assert cockpit.configure(tool, enabled=True) == {"enabled": 0}
        yield server


class Group:
    """A group in which the model makes one call for each message, and the client that is in it."""

    def __init__(self, bot: FakeOneBot, model: ScriptedModel) -> None:
        self.bot, self.model = bot, model
        self.id, self.user = fresh_id(), fresh_id()
        self.known: dict[str, Any] = {}
        """The data of the answers to the actions that the client knows, beside sending."""
        bot.answer_with(self.answer)

    def answer(self, action: Frame) -> Frame:
        name = action["action"]
        if name in self.known:
            return ok() | {"data": self.known[name]}
        return ok() if name.startswith("send_") and name != "send_poke" else failed(1404)

    async def told(self, tool: str, **arguments: Any) -> str:
        """What the model is told of one call."""
        self.model.script([call(tool, **arguments), END])
        before = len(self.model.requests)
        self.said = await tell(
            self.bot, [at(self.bot.self_id), text(" hi")], user=self.user, group=self.id
        )
        while END not in str((action := await self.bot.next_action(20))["params"].get("message")):
            self.last = action
        return str(self.model.requests[before + 1].messages[-1]["content"])

    def asked(self, action: str) -> list[Any]:
        return [one["params"] for one in self.bot.actions if one["action"] == action]


async def test_a_walk_through_the_tools_of_a_group(live, model, file_server: FileServer):
    url = f"{file_server.serve('/f', sends(b'words in the file'))}?rkey=SECRET"
    async with client(live) as bot:
        group = Group(bot, model)
        where = {"group_id": group.id}

        ann = {"user_id": 20002, "nickname": "⟦Ann", "card": "[CQ:at,qq=all]", "role": "admin"}
        bot.names["get_group_member_info"] = group.known["get_group_member_info"] = ann
        group.known |= {"get_group_member_list": [ann], "get_group_file_url": {"url": url}}
        assert '"user_id": "20002"' in await group.told("list_members", search="ann")
        assert group.asked("get_group_member_list") == [where]
        assert '"role": "admin"' in await group.told("get_member", user_id="20002")
        assert "不支持" in await group.told("list_files")
        assert "不支持" in await group.told("list_files")
        assert len(group.asked("get_group_root_files")) == 1
        read = await group.told("get_file", file_id="/a-1")
        assert "words in the file" in read
        assert "SECRET" not in read
        assert group.asked("get_group_file_url") == [where | {"file_id": "/a-1"}]

        group.known |= {"send_poke": None, "set_msg_emoji_like": None}
        for _ in range(2):
            assert "已戳" in await group.told("poke", user_id="20002")
        assert group.asked("group_poke") == [where | {"user_id": 20002}]
        assert group.asked("send_poke") == [where | {"user_id": 20002}] * 2
        assert "点赞 3 次" in await group.told("like", user_id="20002", times=3)
        assert group.asked("send_like") == [{"user_id": 20002, "times": 3}]
        message_id = group.said["message_id"]
        assert "已回应" in await group.told("react", message_id=str(message_id), emoji="76")
        (reaction,) = group.asked("set_msg_emoji_like")
        assert reaction == {"message_id": message_id, "emoji_id": "76", "set": True}
        assert "没有这条消息" in await group.told("react", message_id="1", emoji="76")

        assert "已发送" in await group.told("send_face", face_id="14")
        assert group.last["params"]["message"] == [{"type": "face", "data": {"id": "14"}}]
        assert "已发送" in await group.told("send_music", type="163", id="28949129")
        song = {"type": "163", "id": "28949129"}
        assert group.last["params"]["message"] == [{"type": "music", "data": song}]
        assert "已发送" in await group.told("send_forward", messages=["一", "二"])
        assert group.last["action"] == "send_group_forward_msg"
        nodes = group.last["params"]["messages"]
        assert [node["data"]["content"] for node in nodes] == [[text("一")], [text("二")]]
        row = await outgoing(live, group.id, "m.text LIKE '[聊天记录]%'")
        assert row["state"] == "delivered"

        own = {"user_id": bot.self_id, "target_id": bot.self_id, "group_id": group.id}
        await bot.tell("notice", notice_type="notify", sub_type="poke", **own)
        await bot.no_action(group=group.id)


async def test_private_chat_knows_no_group(live, model):
    async with client(live) as bot:
        user = fresh_id()
        group = Group(bot, model)
        group.known["friend_poke"] = None
        model.script([call("list_members"), END, call("poke", user_id=str(user)), END])
        for _ in range(2):
            await tell(bot, [text("hi")], user=user)
            while (action := await bot.next_action(20))["action"] != "send_private_msg":
                assert (action["action"], action["params"]) == ("friend_poke", {"user_id": user})
            assert spoken(action) == END
        assert group.asked("get_group_member_list") == []
        assert "群聊" in str(model.requests[1].messages[-1]["content"])
