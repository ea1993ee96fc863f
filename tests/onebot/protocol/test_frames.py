"""Every stored payload becomes what its file says, and no frame raises."""

import json
from datetime import datetime
from pathlib import Path
from time import thread_time
from typing import Any, cast

import pytest
from hypothesis import given, strategies as st

from onebot.protocol.actions import ActionResponse
from onebot.protocol.events import MessageEvent, OtherEvent
from onebot.protocol.frames import MAX_DEPTH, MAX_SEGMENTS, MalformedFrame, decode_frame
from onebot.protocol.segments import mentions_account, quoted_id, render_text, spoken_text

PAYLOADS = Path(__file__).parents[2] / "payloads"
CASES = [
    pytest.param(case, id=f"{path.stem}: {case['name']}")
    for path in sorted(PAYLOADS.glob("*.json"))
    for case in json.loads(path.read_text(encoding="utf-8"))
]
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
ANY_JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10
)
LIKE_AN_EVENT = st.fixed_dictionaries(
    {
        "post_type": st.sampled_from(["message", "message_sent", "meta_event", "notice"])
        | ANY_JSON,
        "message_type": st.sampled_from(["group", "private"]) | ANY_JSON,
        "group_id": st.just(30003) | ANY_JSON,
        "user_id": st.just(20002) | ANY_JSON,
    },
    optional={
        "meta_event_type": st.sampled_from(["heartbeat", "lifecycle"]) | ANY_JSON,
        "message": ANY_JSON
        | st.lists(st.fixed_dictionaries({"type": st.just("at") | ANY_JSON, "data": ANY_JSON})),
        **dict.fromkeys(
            ["self_id", "message_id", "time", "sender", "sub_type", "interval", "status"], ANY_JSON
        ),
    },
)
LIKE_A_RESPONSE = st.fixed_dictionaries(
    {"retcode": ANY_JSON},
    optional=dict.fromkeys(["status", "echo", "data", "message", "wording", "msg"], ANY_JSON),
)


def seen(result: Any, name: str) -> Any:
    """One property of a decoded frame, in the words of the payload files."""
    match name:
        case "type":
            return type(result).__name__
        case "text":
            return render_text(result.segments, result.self_id)
        case "spoken":
            return spoken_text(result.segments)
        case "mentions":
            return mentions_account(result.segments, result.self_id)
        case "quoted":
            return quoted_id(result.segments)
    value = getattr(result, name)
    return value.isoformat() if isinstance(value, datetime) else value


@pytest.mark.parametrize("case", CASES)
def test_a_payload_becomes_what_its_file_says(case):
    text = case["text"] if "text" in case else json.dumps(case["frame"], ensure_ascii=False)
    result = decode_frame(text)
    assert {name: seen(result, name) for name in case["becomes"]} == case["becomes"]


def test_a_binary_frame_says_the_same_as_a_text_frame():
    for each in CASES:
        (case,) = cast("tuple[dict[str, Any]]", each.values)
        text = case["text"] if "text" in case else json.dumps(case["frame"])
        assert decode_frame(text.encode()) == decode_frame(text), case["name"]


@given(ANY_JSON | LIKE_AN_EVENT | LIKE_A_RESPONSE)
def test_no_json_raises_and_what_comes_of_it_can_be_stored(value):
    result = decode_frame(json.dumps(value))
    if isinstance(result, MessageEvent):
        words = [
            render_text(result.segments, result.self_id),
            spoken_text(result.segments),
            quoted_id(result.segments),
        ]
        ids = [result.peer_id, result.user_id, result.message_id, result.temp_group_id]
        assert "\0" not in "".join(
            [*words, *ids, json.dumps(result.raw, allow_nan=False, ensure_ascii=False)]
        )
        "".join([*words, *ids, result.sender_name]).encode()
    if isinstance(result, ActionResponse):
        assert result.is_success or result.error_text
        assert not (result.is_success and result.is_uncertain)


@given(st.binary() | st.text())
def test_no_bytes_and_no_text_raise(data):
    assert decode_frame(data)


def test_invalid_utf8_is_malformed():
    assert decode_frame(b'{"retcode":0,"echo":"\xff"}') == MalformedFrame(
        "not UTF-8", '{"retcode":0,"echo":"\N{REPLACEMENT CHARACTER}"}'
    )


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 100_000])
def test_a_frame_nested_too_deeply_is_malformed(depth):
    frame = '{"post_type":"message","message":' + "[" * depth + "]" * depth + "}"
    result = decode_frame(frame)
    assert isinstance(result, MalformedFrame)
    assert result.reason == "nested too deeply"


def test_many_brackets_side_by_side_are_not_too_deep():
    frame = {"post_type": "notice", "notice_type": "x", "list": [[]] * 500}
    assert isinstance(decode_frame(json.dumps(frame)), OtherEvent)


@pytest.mark.parametrize(
    "message",
    [[{"type": "text", "data": {"text": "a"}}] * (MAX_SEGMENTS + 1), "[CQ:face,id=1]" * 100_000],
    ids=["array", "string"],
)
def test_a_message_of_too_many_segments_is_malformed(message):
    frame = {"post_type": "message", "message_type": "private", "user_id": 1, "message": message}
    result = decode_frame(json.dumps(frame))
    assert isinstance(result, MalformedFrame)
    assert result.reason == "more than 10000 segments"


@pytest.mark.parametrize(
    "text",
    [
        '{"url":"https://x.invalid/d?fileid=1&rkey=s3cr3t&x=1"}',
        '{"access_token":"s3cr3t"}',
        '{"headers":{"Authorization":"Bearer s3cr3t"}}',
        "GET /ws?access_token=s3cr3t HTTP/1.1",
        r'{"text":"{\"rkey\":\"s3cr3t\"}"}',
        '{"cookies":"a=1; p_skey=s3cr3t"}',
        "x" * 110 + "rkey=s3cr3t" + "s3cr3t" * 50,
    ],
)
def test_an_excerpt_tells_no_secret(text):
    result = decode_frame(text)
    assert isinstance(result, MalformedFrame)
    assert "s3cr3t" not in result.excerpt
    assert len(result.excerpt) <= 120


def test_an_excerpt_is_one_line_so_that_no_log_line_can_be_forged():
    result = decode_frame("x\nERROR root: forged\x1b[2J")
    assert isinstance(result, MalformedFrame)
    assert result.excerpt == "x ERROR root: forged [2J"


def test_nul_and_lone_surrogates_are_replaced_and_pairs_are_kept():
    frame = (
        '{"post_type":"message","message_type":"private","user_id":1,'
        '"message":"a\\u0000\\ud800b\\ud83d\\ude00"}'
    )
    result = decode_frame(frame)
    assert isinstance(result, MessageEvent)
    assert spoken_text(result.segments) == "a\ufffd\ufffdb😀"


def test_numbers_of_absurd_size_are_read_without_being_written_out():
    started = thread_time()
    result = decode_frame(
        '{"post_type":"message","message_type":"private","user_id":5,"message":[{"type":"reply","data":{"id":1e999999999}}],"time":1e999999999}'
    )
    assert isinstance(result, MessageEvent)
    assert (quoted_id(result.segments), result.time) == ("1E+999999999", None)
    assert thread_time() - started < 1


def test_an_integer_of_more_digits_than_python_reads_is_malformed():
    assert isinstance(decode_frame('{"retcode":' + "1" * 5000 + "}"), MalformedFrame)


def test_a_whole_float_is_kept_as_an_exact_integer_in_the_raw_event():
    result = decode_frame(
        '{"post_type":"notice","group_id":9007199254740993.0,"share":0.5,"tiny":1e-9}'
    )
    assert isinstance(result, OtherEvent)
    assert result.raw == {
        "post_type": "notice",
        "group_id": 9007199254740993,
        "share": 0.5,
        "tiny": "0.000000001",
    }


def test_the_last_of_two_equal_keys_counts():
    result = decode_frame('{"retcode":1200,"retcode":0,"echo":"e"}')
    assert isinstance(result, ActionResponse)
    assert result.is_success
