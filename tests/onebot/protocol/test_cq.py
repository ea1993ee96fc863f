"""CQ codes: read in linear time, the same message as its array form."""

from time import thread_time

import pytest
from hypothesis import given, strategies as st

from onebot.protocol.segments import MAX_SEGMENTS, parse_cq, parse_message

KEYS = st.from_regex(r"[a-z_]{1,8}", fullmatch=True)
CODES = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["at", "face", "image", "json", "x-y.z_1"]),
        "data": st.dictionaries(KEYS, st.text(), max_size=3),
    }
)
TEXTS = st.text(min_size=1).map(lambda text: {"type": "text", "data": {"text": text}})
MESSAGES = st.lists(CODES | TEXTS)


def encode_cq(segments):
    """The string form as clients write it."""
    return "".join(
        escape(segment["data"]["text"])
        if segment["type"] == "text"
        else encode_code(segment["type"], segment["data"])
        for segment in segments
    )


def encode_code(kind, data):
    return (
        f"[CQ:{kind}"
        + "".join(f",{key}={escape(value).replace(',', '&#44;')}" for key, value in data.items())
        + "]"
    )


def escape(text):
    return text.replace("&", "&amp;").replace("[", "&#91;").replace("]", "&#93;")


def joined(segments):
    """Neighbouring texts as one, for a string cannot tell them apart."""
    result: list[dict] = []
    for segment in segments:
        if result and segment["type"] == result[-1]["type"] == "text":
            result[-1] = {
                "type": "text",
                "data": {"text": result[-1]["data"]["text"] + segment["data"]["text"]},
            }
        else:
            result.append(segment)
    return result


def text(words):
    return {"type": "text", "data": {"text": words}}


@given(MESSAGES)
def test_a_string_and_an_array_of_one_message_are_the_same_segments(message):
    """Checklist 50."""
    assert parse_message(encode_cq(message)) == parse_message(joined(message))


@given(st.text(alphabet="[]CQ:,=&#;amp9134 x") | st.text())
def test_no_text_raises_and_no_text_segment_is_empty(string):
    assert text("") not in parse_cq(string)


@pytest.mark.parametrize(
    ("string", "segments"),
    [
        ("[CQ:shake]", [{"type": "shake", "data": {}}]),
        ("[CQ:at,qq=1,]", [{"type": "at", "data": {"qq": "1"}}]),
        ("[CQ:at,qq=1,name=a&#44;b]", [{"type": "at", "data": {"qq": "1", "name": "a,b"}}]),
        (
            "[CQ:image,url=https://x.invalid/?a=1&amp;b=2]",
            [{"type": "image", "data": {"url": "https://x.invalid/?a=1&b=2"}}],
        ),
        ("[CQ:x,flag,=y]", [{"type": "x", "data": {"flag": ""}}]),
        ("[CQ:mface,summary=&#91;wave&#93;]", [{"type": "mface", "data": {"summary": "[wave]"}}]),
        (
            '[CQ:face,id=14,raw={"a":&#91;1&#44;2&#93;}]',
            [{"type": "face", "data": {"id": "14", "raw": '{"a":[1,2]}'}}],
        ),
        (
            "a[CQ:at,qq=1]b\n[CQ:at,qq=2]",
            [
                text("a"),
                {"type": "at", "data": {"qq": "1"}},
                text("b\n"),
                {"type": "at", "data": {"qq": "2"}},
            ],
        ),
    ],
)
def test_a_code_becomes_a_segment(string, segments):
    """Checklist 57."""
    assert parse_cq(string) == segments


@pytest.mark.parametrize(
    "string",
    ["[CQ:", "a [CQ:at,qq=1", "[CQ:]", "[CQ: at,qq=1]", "[cq:at,qq=1]", "[]", "x]", "[CQ:,qq=1]"],
)
def test_what_is_no_complete_code_is_text(string):
    """Checklist 57."""
    assert parse_cq(string) == [text(string)]


def test_an_unclosed_code_does_not_swallow_the_next_one():
    assert parse_cq("see [CQ:image and [CQ:at,qq=1] there") == [
        text("see [CQ:image and "),
        {"type": "at", "data": {"qq": "1"}},
        text(" there"),
    ]


def test_a_string_of_too_many_codes_is_not_read_to_its_end():
    assert len(parse_cq("x[CQ:a]" * 20_000)) <= MAX_SEGMENTS + 3


def test_the_ampersand_is_unescaped_last():
    """Checklist 56."""
    assert parse_cq("&amp;#91;CQ:at&#44;qq=1&amp;amp;&#93;") == [text("&#91;CQ:at,qq=1&amp;]")]


def test_an_escaped_code_in_the_text_is_no_code():
    """Checklist 55."""
    assert parse_cq("&#91;CQ:at,qq=10001&#93;") == [text("[CQ:at,qq=10001]")]


@pytest.mark.parametrize(
    "string",
    [
        "[CQ:" * 250_000,
        "[CQ:" * 250_000 + "]",
        "[CQ:a]" * 170_000,
        "[CQ:a," + "k=v," * 250_000 + "]",
    ],
)
def test_a_megabyte_of_openings_is_read_in_linear_time(string):
    """Checklist 57."""
    started = thread_time()
    assert parse_cq(string)
    assert thread_time() - started < 2
