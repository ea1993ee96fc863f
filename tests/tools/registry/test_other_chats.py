"""The other chats that a tool's row lists, and who may reach them."""

import pytest

from tools.contract import ToolExecutionContext
from tools.models.tool_config import check_other_chats, parse_other_chats
from tools.registry.policy import reachable_chats
from tools.registry.settings import ToolSettings

LISTED = (
    "group:1 owners\nonebot:private:2 everyone\n\ngroup:3 30003，onebot:30004\ngroup:4\nrubbish"
)


@pytest.mark.parametrize(
    ("person", "owner", "reached"),
    [
        ("9", False, {"private:2"}),
        ("30004", False, {"private:2", "group:3"}),
        ("9", True, {"group:1", "private:2", "group:3"}),
        ("", False, {"private:2"}),
    ],
)
def test_a_row_says_who_reaches_which_chat(person, owner, reached):
    settings = ToolSettings("send_message", other_chats=parse_other_chats(LISTED))
    context = ToolExecutionContext(user_id=person, owners={person} if owner else ())
    assert reachable_chats(settings, context) == reached


def test_lines_that_cannot_be_meant_are_named():
    problems = check_other_chats(f"{LISTED}\ngroup:5 <b>")
    assert len(problems) == 3
    assert not check_other_chats("group:1 owners")
