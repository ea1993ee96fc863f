"""Requests to be let in, as clients report them, and what they are told."""

from typing import Any

import pytest

from agent.domain.requests import RequestKind, answer_action, read_answer
from onebot.protocol.events import OtherEvent
from onebot.protocol.frames import decode_frame, shrink_frame
from onebot.protocol.requests import read_request
from onebot.protocol.segments import json_text

FRIEND = {"post_type": "request", "request_type": "friend", "user_id": 20002, "self_id": 10001}
ADD = FRIEND | {"request_type": "group", "sub_type": "add", "group_id": 30003}
INVITE = ADD | {"sub_type": "invite"}


def decoded(frame: dict[str, Any]) -> OtherEvent:
    event = decode_frame(json_text(frame))
    assert isinstance(event, OtherEvent)
    return event


def read(frame: dict[str, Any]) -> Any:
    return read_request(decoded(frame))


@pytest.mark.parametrize("flag", [1795228533, "1795228533", "90212|30003|2|false", "u_a-b-c", 1.5])
@pytest.mark.parametrize("comment", ["hello", None, "问题：why\n答案：because"])
def test_79_friend_and_group_requests_go_back_with_the_flag_as_it_came(flag, comment):
    for frame, kind, sub_type in ((FRIEND, "friend", ""), (ADD, "join", "add")):
        found = read(frame | {"flag": flag, "comment": comment})
        assert (found.kind, found.user_id, found.comment) == (kind, "20002", comment or "")
        action, params = answer_action(found.kind, found.flag, "approve", "")
        assert (type(params["flag"]), params["flag"]) == (type(flag), flag)
        assert params.get("sub_type", "") == params.get("type", "") == sub_type
        assert params["approve"] is True, action


@pytest.mark.parametrize("flag", [None, "", {}, {"a": 1}, [1], True, "x" * 70_000, "x" * 2**20])
def test_a_flag_that_cannot_go_back_is_none(flag):
    assert read(ADD | {"flag": flag}).flag is None


@pytest.mark.parametrize(
    ("size", "is_kept"), [(2**16 - 300, True), (2**16, True), (2**16 + 1, False)]
)
def test_a_flag_may_be_as_long_as_is_said(size, is_kept):
    flag = "x" * size
    assert read(ADD | {"flag": flag}).flag == (flag if is_kept else None)
    assert len(json_text(decoded(ADD | {"flag": flag}).raw)) < 2**16


def test_a_flag_that_was_cut_with_its_frame_is_none():
    frame = json_text(ADD | {"comment": "x" * 2**20, "flag": "y" * 300})
    small = shrink_frame(frame, lambda _pieces: "")
    assert isinstance(small, bytes)
    event = decode_frame(small, len(frame))
    assert isinstance(event, OtherEvent)
    found = read_request(event)
    assert found
    assert found.flag is None


def test_who_invited_and_the_level_are_read_where_the_client_tells_them():
    found = read(ADD | {"flag": "1", "invitor_id": 4, "level": "16"})
    assert (found.inviter_id, found.level) == ("4", 16)
    found = read(ADD | {"flag": "1", "inviter_id": "0", "qq_level": 0})
    assert (found.inviter_id, found.level) == ("", None)
    found = read(INVITE | {"flag": "1", "user_id": "wx_id-1", "group_id": "g-1"})
    assert (found.kind, found.user_id, found.group_id) == (RequestKind.INVITE, "wx_id-1", "g-1")


@pytest.mark.parametrize(
    "frame",
    [
        ADD | {"group_id": 0},
        ADD | {"sub_type": ""},
        FRIEND | {"user_id": None},
        FRIEND | {"request_type": "guild"},
        FRIEND | {"post_type": "notice", "notice_type": "friend"},
    ],
)
def test_what_does_not_say_who_and_where_is_no_request(frame):
    assert read(frame | {"flag": "1"}) is None


def test_the_answer_to_the_question_of_a_group_is_what_the_person_says():
    said = {"flag": "1", "comment": "问题：frost 是什么？\n答案：不知道"}
    assert read_answer(read(ADD | said).comment) == "不知道"
    assert read_answer("frost") == "frost"
