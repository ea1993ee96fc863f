"""What clients tell of messages that are asked for."""

import pytest

from agent.domain.types import ChatAddress
from onebot.protocol.media_refs import belongs_to_chat, is_of_another_chat, parse_told_message
from onebot.protocol.segments import MOST_TOLD

GROUP = ChatAddress("10001", "group", "30001")
PRIVATE = ChatAddress("10001", "private", "20002")


@pytest.mark.parametrize(
    ("chat", "answer", "is_other"),
    [
        (GROUP, {"message_type": "group", "group_id": 30001}, False),
        (GROUP, {"message_type": "group"}, False),  # the standard says nothing of groups
        (GROUP, {}, False),
        (GROUP, {"message_type": "group", "group_id": 30002}, True),
        (GROUP, {"message_type": "private", "sender": {"user_id": 20002}}, True),
        (PRIVATE, {"message_type": "private", "sender": {"user_id": 20002}}, False),
        (PRIVATE, {"message_type": "private", "sender": {"user_id": 10001}}, False),
        (PRIVATE, {}, False),
        (PRIVATE, {"message_type": "private", "sender": {"user_id": 10001}, "target_id": 5}, True),
        (PRIVATE, {"user_id": 10001, "target_id": 20002}, False),
        (PRIVATE, {"message_type": "private", "sender": {"user_id": 20003}}, True),
        (PRIVATE, {"user_id": 10001, "sender": {"user_id": 20003}}, True),
        (PRIVATE, {"group_id": 30001, "sender": {"user_id": 20002}}, True),
        (PRIVATE, {"message_type": "group", "group_id": 30001, "user_id": 20002}, True),
    ],
)
def test_a_message_of_another_chat_is_told_from_one_of_which_little_is_said(chat, answer, is_other):
    assert is_of_another_chat(chat, answer) is is_other


@pytest.mark.parametrize(
    ("chat", "answer", "is_here"),
    [
        (GROUP, {"message_type": "group", "group_id": 30001}, True),
        (GROUP, {"message_type": "group"}, False),
        (GROUP, {"group_id": 30001}, False),
        (GROUP, {}, False),
        (PRIVATE, {"message_type": "private", "sender": {"user_id": 20002}}, True),
        (PRIVATE, {"message_type": "private", "user_id": 10001, "target_id": 20002}, True),
        (PRIVATE, {"message_type": "private", "user_id": 10001}, False),
        (PRIVATE, {"message_type": "private", "user_id": 20003, "target_id": 20002}, False),
    ],
)
def test_a_message_of_this_chat_is_one_that_the_client_says_is_of_it(chat, answer, is_here):
    assert belongs_to_chat(chat, answer) is is_here


@pytest.mark.parametrize("content", [[{"type": "image"}] * 50_000, "[CQ:image]" * 9_000])
def test_of_a_message_of_very_many_segments_the_beginning_is_read(content):
    assert len(parse_told_message({"message": content}, "10001").segments) == MOST_TOLD
