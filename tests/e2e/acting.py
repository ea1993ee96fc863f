"""A group whose client knows everybody's rank, and a model that does whatever anybody says."""

import json
import re
from typing import Any

from tests.fake_onebot import FakeOneBot, Frame, failed, ok, spoken
from tests.live_server import LiveServer
from tests.scripted_model import Answer, Call, Request, calls

ORDER = re.compile(r"do (\w+) (\{.*\})", re.DOTALL)


def obey(request: Request) -> Answer | str:
    """Make every call that the newest message asks for, whoever says so."""
    if request.messages[-1]["role"] == "tool":
        return f"told: {request.messages[-1]['content']}"
    found = ORDER.search(request.last_text)
    return calls(Call(found[1], found[2])) if found else "nothing to do"


def members(bot: FakeOneBot, ranks: dict[int, str], *, deaf: bool = False) -> None:
    """Have the client of ``bot`` say the ranks of people, in every group, and carry out acts;
    where it is ``deaf``, it says nothing of these."""

    def answer(action: Frame) -> Frame | None:
        if action["action"] != "get_group_member_info":
            if deaf:
                return None
            return ok({"message_id": action["echo"]})
        user = action["params"]["user_id"]
        if user not in ranks:
            return failed(wording="no such member")
        return ok({"user_id": user, "role": ranks[user], "nickname": f"n{user}", "card": ""})

    bot.answer_with(answer)


def acts(bot: FakeOneBot) -> list[tuple[str, Frame]]:
    """What the account did so far beside talking and asking."""
    return [
        (one["action"], one["params"])
        for one in bot.actions
        if not one["action"].startswith(("get_", "send_"))
    ]


def switch_on(server: LiveServer, cockpit: Any, *tools: str, **changes: Any) -> None:
    for tool in tools:
        cockpit.configure(tool, enabled=True, visibility="visible", **changes)


async def until_said(bot: FakeOneBot, words: str) -> str:
    """What is said next that holds ``words``."""
    while True:
        action = await bot.next_action()
        if "message" in action["params"] and words in (said := spoken(action)):
            return said


def order(tool: str, **arguments: Any) -> str:
    return f"do {tool} {json.dumps(arguments)}"
