"""Actions: what is written to the client, strictly."""

import json

import pytest
from hypothesis import given, strategies as st

from onebot.protocol.actions import encode_action, parse_response, send_action

HELLO = [{"type": "text", "data": {"text": "hello"}}]


def test_a_group_is_addressed_by_an_integer():
    assert send_action("group", "30003", HELLO) == (
        "send_group_msg",
        {"group_id": 30003, "message": HELLO},
    )


def test_a_person_is_addressed_by_an_integer():
    assert send_action("private", "20002", HELLO) == (
        "send_private_msg",
        {"user_id": 20002, "message": HELLO},
    )


def test_a_temporary_session_carries_its_group_and_stays_private():
    name, params = send_action("private", "20002", HELLO, temp_group_id="30003")
    assert name == "send_private_msg"
    assert params == {"user_id": 20002, "group_id": 30003, "message": HELLO}


def test_a_group_never_carries_the_group_of_a_temporary_session():
    assert send_action("group", "30003", HELLO, temp_group_id="5")[1]["group_id"] == 30003


@pytest.mark.parametrize("peer_id", ["BAC-x", "-5", "１２", "1e3"])
def test_an_id_that_is_not_all_digits_stays_text(peer_id):
    assert send_action("group", peer_id, HELLO)[1]["group_id"] == peer_id


def test_a_frame_is_compact_json_with_the_words_as_they_are():
    frame = encode_action(
        "send_group_msg",
        {"group_id": 1, "message": [{"type": "text", "data": {"text": "你好 [CQ:at,qq=all]&<"}}]},
        "e-1",
    )
    assert frame == (
        '{"action":"send_group_msg","params":{"group_id":1,"message":[{"type":"text",'
        '"data":{"text":"你好 [CQ:at,qq=all]&<"}}]},"echo":"e-1"}'
    )


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_json_cannot_say_is_refused(number):
    with pytest.raises(ValueError):
        encode_action("x", {"n": number}, "e")


@given(st.text(alphabet=st.characters() | st.characters(categories=["Cs"])))
def test_any_words_of_a_model_are_a_valid_utf8_frame(words):
    frame = encode_action("send_msg", {"text": words}, "e")
    assert json.loads(frame.encode())["params"]["text"] == words.encode(
        "utf-16", "surrogatepass"
    ).decode("utf-16", "replace")


def test_two_halves_of_an_emoji_become_one_and_a_lone_half_is_replaced():
    frame = encode_action("send_msg", {"text": "\ud83d\ude00\ud83d"}, "e")
    assert json.loads(frame)["params"]["text"] == "😀\ufffd"


@pytest.mark.parametrize("retcode", [1200, 100, 120, -1, 9057, 404, 1404, 1400])
@pytest.mark.parametrize("field", ["wording", "message", "msg", "status"])
def test_a_failure_is_kept_in_the_clients_words(retcode, field):
    response = parse_response(
        {"status": "failed", "retcode": retcode, "data": None, field: f"no because {retcode}"}
    )
    assert (response.is_success, response.error_text) == (False, f"no because {retcode}")


@pytest.mark.parametrize("key", ["wording", "message", "msg"])
def test_blank_words_of_a_failure_are_passed_over(key):
    frame = {
        "status": "failed",
        "retcode": 100,
        "wording": " ",
        "message": None,
        "msg": "",
        key: " muted ",
    }
    assert parse_response(frame).error_text == "muted"


@pytest.mark.parametrize("retcode", [None, True, {}, "x", 1.5, "", "1e3"])
def test_an_unreadable_retcode_of_a_failure_is_a_failure(retcode):
    response = parse_response({"status": "failed", "retcode": retcode})
    assert not response.is_success
    assert response.retcode == -1


def test_an_uncertain_failure_is_no_success():
    response = parse_response(
        {"status": "failed", "retcode": 1200, "wording": "Error: Timeout: NTEvent x EventRet: {}"}
    )
    assert (response.is_success, response.is_uncertain) == (False, True)


def test_a_success_is_never_uncertain():
    assert not parse_response(
        {"status": "ok", "retcode": 0, "message": "Timeout: NTEvent"}
    ).is_uncertain


@pytest.mark.parametrize(
    ("answer", "file"),
    [
        ({"status": "ok", "retcode": 0, "data": {"file": "/cache/1"}}, "/cache/1"),
        ({"status": "ok", "retcode": 0, "data": None}, ""),
        ({"status": "failed", "retcode": 100, "data": {"file": "/cache/1"}}, ""),
    ],
)
def test_a_client_says_where_it_put_what_it_loaded(answer, file):
    assert parse_response(answer).file == file
