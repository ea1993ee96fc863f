"""What keeps an account from speaking: only what certainly says so."""

from typing import Any

import pytest

from onebot.protocol.actions import ActionResponse, parse_response
from onebot.protocol.events import (
    OtherEvent,
    find_pause,
    is_about_quote,
    parse_event,
)
from onebot.protocol.notices import find_speech_change, read_notice

ME, GROUP = "10001", "30003"


def refusal(retcode: int, wording: str = "") -> ActionResponse:
    return parse_response({"status": "failed", "retcode": retcode, "wording": wording})


@pytest.mark.parametrize(
    ("retcode", "wording", "pause"),
    [
        (1200, 'EventChecker Failed: NTEvent EventRet:\n{"result": 120, "errMsg": ""}', "muted"),
        (120, "", "muted"),
        (1200, "result: 110", "left"),
        (1200, "发送失败：你已被禁言", "muted"),
        (100, "群已开启全员禁言", "all_muted"),
        (1200, "机器人不在该群", "left"),
        (-1, "The bot is not in this group", "left"),
        (100, "发送失败，可能被禁言或被风控", None),
        (1200, "the account may be risk-controlled", None),
        (1200, "rich media transfer failed", None),
        (1200, 'Timeout: NTEvent EventRet:\n{"result": 0}', None),
        (100, "SEND_MSG_API_ERROR", None),
    ],
)
def test_a_bot_that_cannot_speak_is_told_from_one_whose_message_was_refused(
    retcode, wording, pause
):
    """Checklist 94."""
    assert find_pause(refusal(retcode, wording)) == pause


def test_a_success_says_nothing():
    assert find_pause(parse_response({"status": "ok", "retcode": 0, "wording": "被禁言"})) is None


@pytest.mark.parametrize(
    ("retcode", "wording", "client", "is_about"),
    [
        (1200, "回复的消息不存在", "OneBot/11", True),
        (1200, "reply message not found", "OneBot/11", True),
        (100, "MSG_NOT_FOUND", "CQHttp/4.15.0", True),
        (200, "", "Lagrange.OneBot/1", True),
        (9000, "", "Lagrange.OneBot/1", True),
        (200, "", "OneBot/11", False),
        (9057, "", "Lagrange.OneBot/1", False),
        (1200, "rich media transfer failed", "OneBot/11", False),
    ],
)
def test_a_refusal_because_of_the_quote_is_known(retcode, wording, client, is_about):
    """Checklist 95."""
    assert is_about_quote(refusal(retcode, wording), client) is is_about


def said_by(**fields: Any) -> tuple[str, int | None] | None:
    usual = {"post_type": "notice", "self_id": 10001, "group_id": 30003, "user_id": 10001}
    event = parse_event({**usual, **fields})
    assert isinstance(event, OtherEvent)
    notice = read_notice(event, ME)
    if notice is None or notice.chat is None:
        return None
    change = find_speech_change(notice, notice.chat)
    return change and (change, notice.seconds)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"notice_type": "group_ban", "sub_type": "ban", "duration": 60}, ("muted", 60)),
        ({"notice_type": "group_ban", "sub_type": "ban", "duration": "60"}, ("muted", 60)),
        ({"notice_type": "group_ban", "sub_type": "ban"}, ("muted", None)),
        ({"notice_type": "group_ban", "sub_type": "lift_ban", "duration": 0}, ("unmuted", None)),
        (
            {"notice_type": "group_ban", "sub_type": "ban", "user_id": 0, "duration": -1},
            ("all_muted", None),
        ),
        (
            {"notice_type": "group_ban", "sub_type": "ban", "user_id": 0, "duration": 0},
            ("all_muted", None),
        ),
        (
            {"notice_type": "group_ban", "sub_type": "lift_ban", "user_id": 0, "duration": 0},
            ("all_unmuted", None),
        ),
        ({"notice_type": "group_decrease", "sub_type": "kick_me"}, ("left", None)),
        ({"notice_type": "group_decrease", "sub_type": "leave"}, ("left", None)),
        ({"notice_type": "group_decrease", "sub_type": "disband", "user_id": 5}, ("left", None)),
        ({"notice_type": "group_dismiss", "user_id": 5}, ("left", None)),
        ({"notice_type": "group_increase", "sub_type": "invite"}, ("joined", None)),
        ({"notice_type": "group_admin", "sub_type": "set"}, ("promoted", None)),
    ],
)
def test_notices_of_the_accounts_own_speech_are_read(fields, said):
    assert said_by(**fields) == said


@pytest.mark.parametrize(
    "fields",
    [
        {"notice_type": "group_ban", "sub_type": "ban", "user_id": 20002, "duration": 60},
        {"notice_type": "group_decrease", "sub_type": "leave", "user_id": 20002},
        {"notice_type": "group_increase", "sub_type": "approve", "user_id": 20002},
        {"notice_type": "group_ban", "sub_type": "ban", "group_id": 0, "duration": 60},
        {"notice_type": "notify", "sub_type": "poke"},
    ],
)
def test_notices_of_others_say_nothing(fields):
    assert said_by(**fields) is None
