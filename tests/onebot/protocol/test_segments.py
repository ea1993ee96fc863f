"""Segments: three shapes of a message, one reading."""

from decimal import Decimal

import pytest

from agent.domain.types import MessagePart
from onebot.protocol.segments import (
    mentions_account,
    parse_message,
    quoted_id,
    render_text,
    segments_from_parts,
    spoken_text,
)


def segment(kind, **data):
    return {"type": kind, "data": data}


HELLO = [segment("text", text="hello")]


@pytest.mark.parametrize(
    "value", [HELLO, "hello", HELLO[0], [{"type": "text", "data": {"text": "hello"}, "extra": 1}]]
)
def test_every_shape_of_a_message_is_a_list_of_segments(value):
    """Checklist 58."""
    assert parse_message(value) == HELLO


@pytest.mark.parametrize(
    "value", [None, "", [], {}, 5, True, [None], ["hello"], [[HELLO]], [{"type": 1}], {"data": {}}]
)
def test_what_holds_no_segment_is_an_empty_message(value):
    """Checklist 58, 59."""
    assert parse_message(value) == []


@pytest.mark.parametrize("data", [{}, None, [], "x", 5])
def test_data_that_is_no_object_is_empty(data):
    """Checklist 59."""
    assert parse_message([{"type": "dice", "data": data}, {"type": "rps"}]) == [
        segment("dice"),
        segment("rps"),
    ]


def test_text_in_an_array_is_never_read_as_a_code():
    message = [segment("text", text="[CQ:at,qq=10001]&amp;")]
    assert render_text(parse_message(message), "10001") == "[CQ:at,qq=10001]&amp;"
    assert not mentions_account(parse_message(message), "10001")


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (segment("text", text="as it is"), "as it is"),
        (segment("text", text=None), ""),
        (segment("text", text=5), "5"),
        (segment("at", qq="20002"), "[@20002]"),
        (segment("at", qq="all"), "[@all]"),
        (segment("at", qq=Decimal("3127306807.0")), "[@3127306807]"),
        (segment("at"), "[@]"),
        (segment("face", id=14), "[表情:14]"),
        (segment("image", url="https://x.invalid/a.png"), "[图片]"),
        (segment("record"), "[语音]"),
        (segment("video"), "[视频]"),
        (segment("file", name="a.pdf", file="x"), "[文件:a.pdf]"),
        (segment("file", file="b.pdf"), "[文件:b.pdf]"),
        (segment("file", file_name="c.pdf"), "[文件:c.pdf]"),
        (segment("file"), "[文件:]"),
        (segment("reply", id=-2147483647.0), "[回复:-2147483647]"),
        (segment("location", lat=39.9, lon="116.4", title="Home"), "[位置:39.9,116.4 Home]"),
        (segment("location", lat=Decimal("1e-5"), lon=116.0, title=None), "[位置:0.00001,116 ]"),
    ],
)
def test_a_segment_as_text(item, text):
    assert render_text([item], "10001") == text


def test_a_message_as_text_is_joined_without_the_own_mention_and_trimmed():
    message = [
        segment("at", qq=10001),
        segment("text", text="\u00a0hi "),
        segment("at", qq=2),
        segment("text", text=" there\u2005\n"),
    ]
    assert render_text(message, "10001") == "hi [@2] there"


def test_no_mention_is_dropped_while_the_own_id_is_unknown():
    assert render_text([segment("at")], "") == "[@]"
    assert not mentions_account([segment("at")], "")


@pytest.mark.parametrize(
    "qq", ["10001", " 10001 ", 10001, 10001.0, Decimal("10001.0"), Decimal("1.0001e4")]
)
def test_a_mention_is_seen_whatever_type_its_id_has(qq):
    assert mentions_account([segment("text", text="a"), segment("at", qq=qq)], "10001")


@pytest.mark.parametrize(
    "qq", ["all", "100011", "1000", "", None, True, 10001.5, ["10001"], {"qq": 10001}]
)
def test_another_mention_is_none_of_the_bot(qq):
    """Checklist 52, 53."""
    assert not mentions_account([segment("at", qq=qq)], "10001")


def test_spoken_text_is_the_text_segments_alone_and_untrimmed():
    message = [
        segment("text", text=" a"),
        segment("at", qq=1),
        segment("image"),
        segment("text", text=None),
        segment("text", text="b "),
    ]
    assert spoken_text(message) == " ab "


@pytest.mark.parametrize(
    ("items", "quoted"),
    [
        ([], ""),
        ([segment("text", text="a"), segment("reply", id=-5)], "-5"),
        ([segment("reply", id="7"), segment("reply", id="8")], "7"),
        ([segment("reply", id=Decimal("1287653344.0"))], "1287653344"),
        ([segment("reply", id="0")], ""),
        ([segment("reply")], ""),
    ],
)
def test_the_quoted_id_is_that_of_the_first_reply(items, quoted):
    assert quoted_id(items) == quoted


@pytest.mark.parametrize(
    "message",
    [
        [segment("text", text="[CQ:reply,id=7]a")],
        "&#91;CQ:reply,id=7&#93;a",
        "[CQ:reply&#44;id=7]a",
    ],
)
def test_what_is_typed_like_a_quote_quotes_nothing(message):
    """What people type comes as text of an array, or escaped in a string."""
    assert quoted_id(parse_message(message)) == ""


def test_parts_become_segments_with_strings_only():
    parts = [
        MessagePart("quote", message_id="-5"),
        MessagePart("mention_user", mention_user_id="20002"),
        MessagePart("plain", text="[CQ:at,qq=all]&<"),
        MessagePart("image", url="https://x.invalid/a.png", path="/media/a.png"),
        MessagePart("record", path="/media/a.amr"),
        MessagePart("video", url="https://x.invalid/a.mp4"),
        MessagePart("file", path="/media/a.pdf"),
    ]
    assert segments_from_parts(parts) == [
        segment("reply", id="-5"),
        segment("at", qq="20002"),
        segment("text", text="[CQ:at,qq=all]&<"),
        segment("image", file="https://x.invalid/a.png"),
        segment("record", file="file:///media/a.amr"),
        segment("video", file="https://x.invalid/a.mp4"),
        segment("file", file="file:///media/a.pdf"),
    ]
