"""Recorded segments as people read them."""

import json

import pytest

from agent.admin.chats.segments import face_words, plain_words, render_segments


def segment(kind: str, **data: object) -> dict:
    return {"type": kind, "data": data}


def pieces(*segments: object, names: dict | None = None) -> list[tuple[str, str]]:
    return [(one.kind, one.text) for one in render_segments(list(segments), names or {})]


def test_words_and_mentions_keep_their_order_and_the_quote_stands_elsewhere():
    said = (segment("reply", id="5"), segment("at", qq="20001"), segment("text", text=" hi"))
    assert pieces(*said, names={"20001": "木木"}) == [("mention", "@木木"), ("text", " hi")]


@pytest.mark.parametrize(
    ("number", "told", "words"),
    [
        ("178", "", "[斜眼笑]"),
        ("9999", "", "[9999]"),
        ("9999", "/新表情", "[新表情]"),
        ("128513", "", "😁"),
    ],
)
def test_a_face_reads_as_its_name(number: str, told: str, words: str):
    assert face_words(number, told) == words


def test_a_card_reads_by_its_title_and_where_it_leads():
    news = {"title": "Snow", "desc": "by the lake", "jumpUrl": "https://b23.tv/abc", "tag": "b"}
    (card,) = render_segments([segment("json", data=json.dumps({"meta": {"news": news}}))], {})
    assert (card.kind, card.text, card.detail) == ("card", "Snow", "by the lake · b · b23.tv")


def test_a_forward_lists_who_said_what():
    inner = [segment("text", text="one"), segment("image", file="a.png")]
    nodes = [segment("node", nickname="Ann", content=inner), {"sender": {"card": "Bob"}, "x": 1}]
    (forward,) = render_segments([segment("forward", id="1", content=nodes)], {})
    lines = [(line.name, line.words) for line in forward.lines]
    assert lines == [("Ann", "one[image]"), ("Bob", "")]


def test_media_know_their_place_among_the_segments():
    found = render_segments([segment("text", text="a"), segment("file", name="b.pdf")], {})
    assert (found[1].kind, found[1].label, found[1].text, found[1].index) == (
        *("media", "file", "b.pdf", 1),
    )


@pytest.mark.parametrize(
    "bad",
    [
        None,
        "text",
        {},
        [None, 1, "x", {"type": 5}, {"type": "at"}, {"type": "face", "data": []}],
        [segment("json", data="{"), segment("json", data={"meta": 5}), segment("xml", data=None)],
        [segment("forward", content=[None, 5, {"data": {"content": {"type": "text"}}}])],
        [segment("share", url="http://[bad"), segment("image", file={"a": 1}), segment("x" * 500)],
        [segment("node", content=[segment("node", content=[segment("node", content="x")])])],
    ],
)
def test_nothing_that_clients_send_stops_a_page(bad: object):
    assert isinstance(render_segments(bad, {}), list)
    assert isinstance(plain_words(bad, {}), str)


def test_what_turns_the_direction_of_reading_is_shown_harmless():
    assert pieces(segment("text", text="a\u202eb 👍\u200d❤\ufe0f")) == [
        ("text", "a\\u202eb 👍\u200d❤\ufe0f")
    ]


def test_half_a_character_can_be_shown():
    assert pieces(segment("text", text="a\ud83d")) == [("text", "a?")]
