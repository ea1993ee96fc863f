"""A message has one form in every request, whatever happens to the names and messages around it."""

import itertools
from typing import Any

from tests.cast import fresh_id
from tests.e2e.chat import client
from tests.fake_onebot import failed, ok, text


async def test_a_message_keeps_its_form_when_group_and_members_are_renamed(live, model):
    group, user, other, quoted = (fresh_id() for _ in range(4))
    node: dict[str, Any] = {
        "sender": {"user_id": other, "nickname": "Ann"},
        "content": [text("转发的话")],
    }

    def given(action):
        if action["action"] == "get_forward_msg":
            return ok({"messages": [node]})
        return failed(1404) if action["action"].startswith("get_") else ok()

    turns = [
        [{"type": "reply", "data": {"id": str(quoted)}}, text(" 对吗？")],
        [{"type": "at", "data": {"qq": str(other)}}, text(" 是谁？")],
        [{"type": "forward", "data": {"id": "74"}}],
        [text(" 好")],
    ]
    model.script(["ok"] * len(turns))
    async with client(live) as bot:
        bot.answer_with(given)
        said = [text("原来的话")]
        await bot.say_group(group, other, said, mention=False, message_id=quoted)
        for number, turn in enumerate(turns):
            names = {"nickname": f"n{number}", "card": f"c{number}", "role": "member"}
            node["sender"]["nickname"] = f"Ann {number}"
            await bot.say_group(
                group, user, turn, group_name=f"g{number}", sender={"user_id": user, **names}
            )
            await bot.next_action()
    requests = [one.messages for one in model.requests]
    for earlier, later in itertools.pairwise(requests):
        assert later[: len(earlier)] == earlier
    assert "原来的话" in str(requests[-1])
    assert "转发的话" in str(requests[-1])
