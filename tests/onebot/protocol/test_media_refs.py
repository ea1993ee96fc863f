"""What messages hold beside words, in every dialect."""

import time

import pytest

from agent.domain.types import MediaRef
from onebot.protocol.media_refs import (
    NODES,
    find_forward_ids,
    find_inner_segments,
    parse_forward,
    parse_media_refs,
)
from onebot.protocol.segments import parse_message


def segment(kind: str, **data: object) -> dict:
    return {"type": kind, "data": data}


DIALECTS = {
    "napcat": segment(
        "image",
        file="A1.png",
        sub_type=0,
        url="https://x.qq.com/a?rkey=1",
        file_size="5120",
        summary="",
    ),
    "llbot": segment(
        "image", file="A1.png", subType=0, url="https://x.qq.com/a?rkey=1", file_size=5120
    ),
    "lagrange": segment(
        "image", file="https://x.qq.com/a?rkey=1", filename="A1.png", url="", summary="[图片]"
    ),
    "go-cqhttp": parse_message(
        "[CQ:image,file=A1.png,subType=0,url=https://x.qq.com/a?rkey=1&amp;b=2]"
    )[0],
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_picture_is_found_in_every_dialect(dialect):
    (ref,) = parse_media_refs([DIALECTS[dialect]], "77")
    assert ref.kind == "image"
    assert ref.url.startswith("https://x.qq.com/a?rkey=1")
    assert ref.message_id == "77"


@pytest.mark.parametrize(
    "path",
    [
        "file:///etc/passwd",
        "/etc/passwd",
        "C:\\Users\\a.png",
        "ftp://x/a.png",
        "data:text/html,x",
        "",
    ],
)
def test_a_path_is_never_an_address(path):
    (ref,) = parse_media_refs([segment("image", file=path, url=path, path=path)])
    assert (ref.url, ref.data) == ("", "")


@pytest.mark.parametrize("key", ["file", "url"])
def test_base64_is_the_content_itself(key):
    (ref,) = parse_media_refs([segment("image", **{key: "base64://aGVsbG8="})])
    assert (ref.data, ref.url, ref.name) == ("aGVsbG8=", "", "")


def test_a_very_long_name_is_no_name_to_ask_for():
    (ref,) = parse_media_refs([segment("image", file="x" * 5_000)])
    assert (ref.file, len(ref.name)) == ("", 200)


def test_media_are_counted_by_kind_and_in_order():
    kinds = ["image", "record", "image", "text", "file", "mface"]
    refs = parse_media_refs([segment(kind, file=kind) for kind in kinds])
    assert [(ref.kind, ref.index) for ref in refs] == [
        ("image", 0),
        ("record", 0),
        ("image", 1),
        ("file", 0),
        ("image", 2),
    ]


@pytest.mark.parametrize(
    ("size", "expected"),
    [("5120", 5120), (5120.0, 5120), (None, 0), ("-1", 0), ("9" * 40, 0), ("1k", 0)],
)
def test_a_size_is_only_what_can_be_meant(size, expected):
    assert parse_media_refs([segment("file", file="a", file_size=size)])[0].size == expected


def test_what_clients_want_to_hear_again_about_a_file_is_kept():
    (ref,) = parse_media_refs([segment("file", file_id="/a", busid=102, file_hash="x1")])
    assert (ref.file_id, ref.busid, ref.file_hash) == ("/a", "102", "x1")


@pytest.mark.parametrize(
    "odd", [None, {}, {"file": None}, {"file": {"a": 1}, "url": [1]}, {"file": True, "url": 7}]
)
def test_odd_data_is_a_picture_without_anything(odd):
    (ref,) = parse_media_refs(parse_message([{"type": "image", "data": odd}]))
    assert isinstance(ref, MediaRef)
    assert ref.url == ""


ANSWERS = {
    "messages": {"messages": [{"message": [segment("image", file="a")]}]},
    "content": {"messages": [{"content": [segment("image", file="a")]}]},
    "cq string": {"messages": [{"content": "[CQ:image,file=a]"}]},
    "nodes": {"message": [segment("node", user_id="1", content=[segment("image", file="a")])]},
    "a bare list": [{"message": [segment("image", file="a")]}],
}


@pytest.mark.parametrize("form", ANSWERS)
def test_a_forward_is_read_in_every_form(form):
    assert [parse_media_refs(one)[0].file for one in parse_forward(ANSWERS[form])] == ["a"]


@pytest.mark.parametrize(
    "value", [None, "", 7, {}, {"messages": None}, {"messages": ["x", None, 1, {}]}]
)
def test_what_is_no_forward_holds_nothing(value):
    assert [parse_media_refs(one) for one in parse_forward(value) if one] == []


def test_forwards_in_forwards_are_followed_so_far_and_no_farther():
    inner: list = [segment("image", file="a")]
    for _ in range(6):
        inner = [segment("forward", id="1", content=[{"message": inner}])]
    assert sum(len(parse_media_refs(one)) for one in find_inner_segments(inner)) == 0
    assert len(find_inner_segments(inner)) == 3


def test_a_forward_of_very_many_messages_is_cut():
    wide = [
        {"message": [segment("forward", content=[{"message": [segment("image", file="a")]}] * 200)]}
    ] * 200
    assert len(parse_forward({"messages": wide})) == NODES


def test_only_a_forward_without_content_has_to_be_asked_for():
    assert find_forward_ids(
        [
            segment("forward", id="1"),
            segment("forward", id="2", content=[{}]),
            segment("text", text="x"),
        ]
    ) == ["1"]


def test_a_message_of_very_many_pictures_takes_time_in_proportion():
    """A client may tell anything; this is read on the event loop."""
    began = time.process_time()
    assert len(parse_media_refs([segment("image", file="a")] * 10_000)) == 10_000
    assert time.process_time() - began < 1.5
