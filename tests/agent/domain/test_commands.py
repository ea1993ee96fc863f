"""Commands as they are written in a chat."""

import pytest

from agent.domain.commands import Command, CommandName, parse_command


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/help", Command(CommandName.HELP)),
        ("／帮助", Command(CommandName.HELP)),
        (" /STOP ", Command(CommandName.STOP)),
        ("[回复:-33][@20002] /why", Command(CommandName.WHY)),
        ("/deny[@20002] 20003", Command(CommandName.DENY, "[@20002] 20003")),
        ("/预算１２３４５", Command(CommandName.BUDGET, "12345")),
        ("/off30m", Command(CommandName.OFF, "30m")),
        ("/人设　小霜", Command(CommandName.PERSONA, "小霜")),
    ],
)
def test_a_command_is_found_behind_its_prefix(text, expected):
    assert parse_command(text, "/") == expected


@pytest.mark.parametrize(
    "text",
    [
        *("help", "/", "/ help", "/helpme", "/为什么天是蓝的", "/why are you slow?", "/dance"),
        *("say /help", "[@20002] /help", "[图片]/help", "[聊天记录] /off", ""),
    ],
)
def test_everything_else_is_left_alone(text):
    assert parse_command(text, "/") is None


@pytest.mark.parametrize(
    ("prefix", "text", "found"),
    [
        ("", "/help", False),
        ("#!", "#！help", True),
        ("小霜，", "小霜，帮助", True),
        ("。", "/help", False),
    ],
)
def test_the_prefix_is_the_owners_choice(prefix, text, found):
    assert (parse_command(text, prefix) is not None) is found
