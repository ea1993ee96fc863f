"""Notices of all clients in one form; numbers are those of the conformance checklist."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from agent.domain.events import WORDS_CHARS, ChatNotice, EventKind
from agent.domain.types import ChatAddress
from onebot.protocol.events import OtherEvent, parse_event
from onebot.protocol.notices import read_notice

SELF = "10001"
GROUP = ChatAddress(SELF, "group", "30003")
PRIVATE = ChatAddress(SELF, "private", "20002")
MOMENT = datetime(2026, 11, 21, 2, 35, 33, tzinfo=UTC)


def read(notice_type, **fields) -> ChatNotice | None:
    """The notice in group 30003, of user 20002, unless ``fields`` say otherwise."""
    frame = {
        "time": 1795228533,
        "self_id": 10001,
        "post_type": "notice",
        "notice_type": notice_type,
        "group_id": 30003,
        "user_id": 20002,
        **fields,
    }
    event = parse_event({key: value for key, value in frame.items() if value is not ...})
    assert isinstance(event, OtherEvent)
    return read_notice(event, SELF)


def says(kind, change="", user_id="20002", chat=GROUP, **fields) -> ChatNotice:
    return ChatNotice(kind, chat, change, user_id, happened_at=MOMENT, **fields)


K = EventKind


@pytest.mark.parametrize(
    ("frame", "notice"),
    [
        ({"user_id": 20002, "target_id": 10001}, says(K.POKE, target_id="10001")),  # group
        ({"user_id": 10001, "target_id": 20002}, says(K.POKE, "", "10001", target_id="20002")),
        ({"user_id": 20002, "target_id": 20003}, says(K.POKE, target_id="20003")),  # others
        (  # NapCat in private: the peer, and who poked
            {"group_id": ..., "user_id": 20002, "sender_id": 20002, "target_id": 10001},
            says(K.POKE, chat=PRIVATE, target_id="10001"),
        ),
        (
            {"group_id": ..., "user_id": 20002, "sender_id": 10001, "target_id": 20002},
            says(K.POKE, "", "10001", PRIVATE, target_id="20002"),
        ),
        (  # LLBot in private: the bot's own
            {"group_id": 0, "user_id": 10001, "target_id": 20002},
            says(K.POKE, "", "10001", PRIVATE, target_id="20002"),
        ),
    ],
)
def test_75_who_poked_whom_is_read_in_every_dialect(frame, notice):
    assert read("notify", sub_type="poke", raw_info=[], **frame) == notice


@pytest.mark.parametrize(
    ("notice_type", "frame", "notice"),
    [
        (
            "group_increase",
            {"sub_type": "invite", "operator_id": 0},
            says(K.JOIN, "invite"),
        ),
        ("group_increase", {"user_id": ...}, says(K.JOIN, "", SELF)),  # bridges of official bots
        ("group_increase", {"user_id": 0}, says(K.JOIN, "", "")),
        (
            "group_decrease",
            {"sub_type": "kick_me", "operator_id": 20009, "user_id": 10001},
            says(K.LEAVE, "kick", SELF, operator_id="20009"),
        ),
        (
            "group_decrease",
            {"sub_type": "leave", "operator_id": 20002},
            says(K.LEAVE, "leave", operator_id="20002"),
        ),
        (  # NapCat
            "group_decrease",
            {"sub_type": "disband", "operator_id": 20009, "user_id": 10001},
            says(K.LEAVE, "disband", SELF, operator_id="20009"),
        ),
        (  # LLBot
            "group_dismiss",
            {"user_id": 20009},
            says(K.LEAVE, "disband", SELF, operator_id="20009"),
        ),
        (  # Lagrange, LLBot
            "group_ban",
            {"sub_type": "ban", "operator_id": 20009, "user_id": 0, "duration": -1},
            says(K.MUTE, "ban", "", operator_id="20009"),
        ),
        (
            "group_ban",
            {"sub_type": "ban", "operator_id": 20009, "user_id": 0, "duration": 0},
            says(K.MUTE, "ban", "", operator_id="20009"),
        ),
        (  # SnowLuma
            "group_ban",
            {"sub_type": "ban", "operator_id": 20009, "user_id": 0, "duration": 2**31 - 1},
            says(K.MUTE, "ban", "", operator_id="20009"),
        ),
        ("group_ban", {"sub_type": "ban", "duration": "600"}, says(K.MUTE, "ban", seconds=600)),
        ("group_ban", {"sub_type": "ban", "duration": 0}, says(K.MUTE, "lift")),
        ("group_ban", {"sub_type": "lift_ban", "duration": 0}, says(K.MUTE, "lift")),
        (
            "group_ban",
            {"sub_type": "ban", "duration": 10**60},
            says(K.MUTE, "ban", seconds=2**31 - 1),
        ),
        (
            "group_recall",
            {"operator_id": 20009, "message_id": 1287653344},
            says(K.RECALL, operator_id="20009", message_id="1287653344"),
        ),
        (
            "friend_recall",
            {"group_id": ..., "message_id": -5},
            says(K.RECALL, "", "20002", PRIVATE, operator_id="20002", message_id="-5"),
        ),
        ("group_admin", {"sub_type": "unset"}, says(K.ADMIN, "unset")),
        ("notify", {"sub_type": "title", "title": "頭"}, says(K.TITLE, words="頭")),
        (
            "group_card",
            {"card_new": " New\u202e\n card ", "card_old": "Old"},
            says(K.CARD, words="New card"),
        ),
        ("group_card", {"card_new": None}, says(K.CARD)),
        (
            "group_upload",
            {"file": {"id": "/x", "name": "a.pdf", "size": 120345, "busid": 102}},
            says(K.UPLOAD, words="a.pdf"),
        ),
        (  # go-cqhttp in private
            "offline_file",
            {"group_id": ..., "file": {"name": "../a.pdf"}},
            says(K.UPLOAD, chat=PRIVATE, words="../a.pdf"),
        ),
        (
            "essence",
            {"sub_type": "delete", "sender_id": 20003, "operator_id": 20009, "message_id": 7},
            says(K.ESSENCE, "remove", "20003", operator_id="20009", message_id="7"),
        ),
        (
            "notify",
            {"sub_type": "honor", "honor_type": "talkative"},
            says(K.HONOR, "talkative"),
        ),
        (
            "notify",
            {"sub_type": "lucky_king", "target_id": 20003},
            says(K.HONOR, "lucky_king", "20003", operator_id="20002"),
        ),
        (  # NapCat, LLBot
            "group_msg_emoji_like",
            {"message_id": 12, "likes": [{"emoji_id": "76", "count": 1}], "is_add": True},
            says(K.REACTION, "add", message_id="12", words="76"),
        ),
        (
            "group_msg_emoji_like",
            {"message_id": 12, "likes": [{"emoji_id": 76}], "is_add": False},
            says(K.REACTION, "remove", message_id="12", words="76"),
        ),
        (  # SnowLuma
            "group_msg_emoji_like",
            {
                "sub_type": "remove",
                "operator_id": 20002,
                "message_id": 12,
                "likes": [{"emoji_id": "76", "count": 0}],
            },
            says(K.REACTION, "remove", message_id="12", words="76"),
        ),
        (  # Lagrange
            "reaction",
            {
                "user_id": ...,
                "sub_type": "remove",
                "operator_id": 20002,
                "message_id": -5,
                "code": "76",
                "count": 1,
            },
            says(K.REACTION, "remove", message_id="-5", words="76"),
        ),
        (
            "notify",
            {"sub_type": "group_name", "name_new": "Tea"},
            says(K.NAME, "", "", operator_id="20002", words="Tea"),
        ),
        ("group_name_change", {"user_id": ..., "name": "Tea"}, says(K.NAME, "", "", words="Tea")),
        ("friend_add", {"group_id": ...}, says(K.FRIEND, chat=PRIVATE)),
        (
            "bot_offline",
            {"group_id": ..., "user_id": 10001, "message": "kicked"},
            says(K.ACCOUNT, "offline", SELF, None, words="kicked"),
        ),
    ],
)
def test_76_every_clients_notice_is_the_same_event(notice_type, frame, notice):
    assert read(notice_type, **frame) == notice


@pytest.mark.parametrize(
    "frame",
    [
        {"notice_type": "notify", "sub_type": "input_status"},  # 78
        {"notice_type": "notify", "sub_type": "poke_recall"},
        {"notice_type": "never_seen"},
        {"notice_type": ["group_ban"]},
        {"notice_type": None},
        {"notice_type": "poke", "post_type": "request"},
    ],
)
def test_47_a_notice_that_there_are_no_words_for_is_none(frame):
    assert read(**frame) is None


HOSTILE: list[Any] = [
    *(None, True, -1, 0, "", "all", [], {}, [{}], {"a": []}, float("nan"), 10**400),
    *(Decimal("1.5"), "\x00\u202e\n", "x" * 2**20, ["x"] * 1_000, {"id": "x" * 2**20}),
]
FIELDS = (
    *("sub_type", "group_id", "user_id", "operator_id", "target_id", "sender_id", "message_id"),
    *("duration", "file", "likes", "is_add", "code", "title", "card_new", "name", "honor_type"),
    *("time", "message"),
)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: str(value)[:20])
def test_hostile_values_are_left_out_and_never_raise(field, value):
    for notice_type in ("notify", "group_ban", "group_upload", "group_msg_emoji_like", "reaction"):
        for sub_type in ("poke", "title", "honor", "lucky_king", "ban"):
            fields = {"sub_type": sub_type, field: value}
            if notice := read(notice_type, **fields):
                assert len(notice.words) <= WORDS_CHARS
                assert notice.words.isprintable()
                assert all(
                    len(one) <= 128
                    for one in (notice.user_id, notice.operator_id, notice.message_id)
                )
                assert notice.user_id not in ("0", "all")
                assert "None" not in notice.user_id
