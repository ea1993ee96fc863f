"""Frames of official bots' bridges, as they arrived: ids that nobody gave, times of 1970, and
fields that are not there."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from onebot.gateway.gateway import to_incoming
from onebot.protocol.actions import parse_response, send_action
from onebot.protocol.events import MessageEvent, OtherEvent
from onebot.protocol.frames import MalformedFrame, decode_frame
from onebot.protocol.notices import find_speech_change, read_notice
from onebot.protocol.segments import id_number

ACCOUNT, PERSON, GROUP = "84212723105", "27691963558", "14888533423"
OPENID = "A1B2C3D4E5F60718293A4B5C6D7E8F90"
IN_GROUP = (
    '{"time":1795406,"self_id":84212723105,"post_type":"message","message_type":"group",'
    '"sub_type":"normal","message_id":82927218270,"user_id":27691963558,"message":[{"type":"text",'
    '"data":{"text":"hello bot"}},{"type":"image","data":{"url":'
    '"https://multimedia.nt.qq.com.cn/x","name":"a.png"}}],"raw_message":"hello bot<image,…>",'
    '"font":0,"sender":{"user_id":27691963558,"nickname":""},"group_id":14888533423}'
)
IN_PRIVATE = (
    '{"time":1795406,"self_id":84212723105,"post_type":"message","message_type":"private",'
    '"sub_type":"friend","message_id":22957829862,"user_id":95858167565,"message":[{"type":"text",'
    '"data":{"text":"hi private"}}],"raw_message":"hi private","font":0,"sender":'
    '{"user_id":95858167565,"nickname":""}}'
)
JOINED = (
    '{"time":1700,"self_id":84212723105,"post_type":"notice","notice_type":"group_increase",'
    '"operator_id":27691963558,"group_id":14888533423}'
)
#: Of another bridge, which names the ids that QQ gave beside its own.
APP, QQ_GROUP = "102000001", "F00D5678F00D5678F00D5678F00D5678"
NAMED_TWICE = (
    '{"raw_message":"[CQ:at,qq=102000001] weather","message_id":417,"group_id":2750113641,'
    '"message_type":"group","post_type":"message","self_id":102000001,"sender":{"nickname":"",'
    '"tiny_id":"","user_id":1880923567,"role":"member"},"sub_type":"normal","time":1795937400,'
    '"avatar":"https://q.qlogo.cn/qqapp/x/640","message":"[CQ:at,qq=102000001] weather",'
    '"message_seq":0,"font":0,"user_id":1880923567,"real_message_type":"group",'
    f'"real_user_id":"{OPENID}","real_group_id":"{QQ_GROUP}"}}'
)


def decoded(text: str, **changes: object) -> Any:
    return decode_frame(json.dumps({**json.loads(text), **changes}))


def test_a_group_message_with_a_time_of_1970_is_of_now():
    event = decode_frame(IN_GROUP)
    assert isinstance(event, MessageEvent)
    said = to_incoming(event, ACCOUNT, from_other_bot=False)
    assert (said.sender_id, said.chat.peer_id, said.message_id) == (PERSON, GROUP, "82927218270")
    assert (said.happened_at, said.sender_role, said.sender_name) == (None, "", "")


def test_a_picture_without_a_file_is_loaded_from_its_address():
    (picture,) = to_incoming(decoded(IN_GROUP), ACCOUNT, from_other_bot=False).media
    assert (picture.url, picture.name, picture.file) == (
        "https://multimedia.nt.qq.com.cn/x",
        "a.png",
        "",
    )


def test_a_private_message_is_of_its_person():
    event = decode_frame(IN_PRIVATE)
    assert isinstance(event, MessageEvent)
    assert (event.peer_id, event.sender_name, event.time) == ("95858167565", "", None)


def test_the_bots_own_joining_names_nobody():
    event = decode_frame(JOINED)
    assert isinstance(event, OtherEvent)
    notice = read_notice(event, ACCOUNT)
    assert notice
    assert notice.chat
    assert notice.chat.peer_id == GROUP
    assert find_speech_change(notice, notice.chat) == "joined"


@pytest.mark.parametrize("days", [-40 * 365, 2])
def test_a_time_that_is_far_off_is_of_now(days):
    at = datetime.now(UTC) + timedelta(days=days)
    assert decoded(IN_GROUP, time=int(at.timestamp())).time is None


def test_a_clock_that_is_hours_ahead_is_believed():
    at = int((datetime.now(UTC) + timedelta(hours=23)).timestamp())
    assert decoded(IN_GROUP, time=at).time == datetime.fromtimestamp(at, UTC)


def test_people_and_groups_may_be_letters_and_digits():
    mention = [{"type": "at", "data": {"qq": OPENID}}, {"type": "reply", "data": {"id": "R-1_x"}}]
    event = decoded(
        IN_GROUP, self_id="BOT-1", user_id=OPENID, group_id="G_2", message_id="m-1", message=mention
    )
    said = to_incoming(event, "BOT-1", from_other_bot=False)
    assert (said.sender_id, said.chat.peer_id, said.message_id) == (OPENID, "G_2", "m-1")
    assert ([one.user_id for one in said.mentions], said.quoted_id) == ([OPENID], "R-1_x")
    event = decoded(IN_GROUP, self_id=OPENID, message=mention)
    assert to_incoming(event, OPENID, from_other_bot=False).mentions_bot


@pytest.mark.parametrize(
    ("person", "group", "number"),
    [(1880923567, 2750113641, 417), (OPENID, QQ_GROUP, "R-417"), ("1880923567", QQ_GROUP, "417")],
)
def test_ids_count_that_the_bridge_takes_back_and_not_those_beside_them(person, group, number):
    event = decoded(NAMED_TWICE, user_id=person, group_id=group, message_id=number)
    said = to_incoming(event, APP, from_other_bot=False)
    ids = (said.sender_id, said.chat.peer_id, said.message_id)
    assert ids == (str(person), str(group), str(number))
    assert (said.spoken_text.strip(), said.mentions_bot) == ("weather", True)
    assert (said.sender_role, said.sender_name, said.is_notice) == ("member", "", False)


def test_ids_that_come_as_texts_of_digits_are_those_that_came_as_numbers():
    event = decoded(IN_GROUP, user_id=PERSON, group_id=GROUP, message_id="82927218270")
    assert replace(event, raw={}) == replace(decoded(IN_GROUP), raw={})


@pytest.mark.parametrize("name", ["self_id", "user_id", "group_id", "message_id"])
@pytest.mark.parametrize("value", ["a b", "a/b", "ROBOT1.0_x!", "x" * 65, 1.5, True, {}])
@pytest.mark.parametrize("frame", [IN_GROUP, JOINED])
def test_an_event_with_what_is_no_id_is_dropped(frame, name, value):
    event = decoded(frame, **{name: value})
    assert isinstance(event, MalformedFrame)
    assert name in event.reason


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("9007199254740992", 2**53),
        ("9007199254740993", "9007199254740993"),
        ("0123", "0123"),
        (OPENID, OPENID),
        ("84212723105", 84212723105),
    ],
)
def test_digits_go_out_as_numbers_that_every_client_reads(text, sent):
    assert send_action("group", text, [])[1]["group_id"] == sent
    assert send_action("private", text, [])[1]["user_id"] == sent


def test_message_ids_below_zero_stay_numbers():
    assert id_number("-1432778632", is_message=True) == -1432778632


def test_the_words_of_a_failure_may_stand_in_msg():
    answer = parse_response({"status": "failed", "retcode": -1, "msg": "需要提供 scene_type"})
    assert (answer.is_success, answer.error_text) == (False, "需要提供 scene_type")
