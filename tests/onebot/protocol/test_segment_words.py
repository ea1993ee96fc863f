"""Every segment in words, the same whatever client it comes from."""

import json
from time import thread_time
from typing import Any

import pytest
from hypothesis import given, strategies as st

from onebot.protocol.segments import LONGEST_TITLE, SHOWN_CARD, parse_message, render_text
from tools.text.storable import make_storable

#: The types of the reference's table, and what each is with no data at all.
BARE = {
    "text": "",
    "at": "[@]",
    "reply": "[回复:]",
    "face": "[表情:]",
    "mface": "[表情]",
    "image": "[图片]",
    "record": "[语音]",
    "video": "[视频]",
    "file": "[文件:]",
    "forward": "[聊天记录]",
    "node": "[聊天记录]",
    "json": "[json:]",
    "xml": "[xml:]",
    "markdown": "",
    "keyboard": "[按钮]",
    "inline": "[按钮]",
    "poke": "[戳一戳]",
    "dice": "[骰子]",
    "rps": "[猜拳]",
    "shake": "[窗口抖动]",
    "anonymous": "[匿名]",
    "contact": "[名片:]",
    "location": "[位置:, ]",
    "share": "[分享:]",
    "music": "[音乐:]",
    "redbag": "[红包]",
    "flashtransfer": "[闪传文件]",
    "flash_file": "[闪传文件]",
    "onlinefile": "[在线文件]",
    "miniapp": "[json:{}]",
    "longmsg": "[长消息]",
    "gift": "[礼物]",
    "tts": "[朗读]",
    "cardimage": "[图片]",
    "rich": "[卡片]",
}
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
#: Names of values that any segment has.
KEYS = st.sampled_from(
    ["text", "qq", "id", "data", "summary", "emoji_id", "title", "content", "result", "type", "url"]
)


def words(kind: str, **data: object) -> str:
    return render_text([{"type": kind, "data": data}], "10001")


def card(value: object, kind: str = "json") -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return words(kind, data=text)


@pytest.mark.parametrize("data", [{}, None, [], "x", 5])
def test_every_type_of_the_reference_has_words_with_any_data(data):
    """Checklist 59, 60."""
    shown = {kind: render_text(parse_message({"type": kind, "data": data}), "") for kind in BARE}
    assert shown == BARE


@pytest.mark.parametrize(
    ("kind", "data", "text"),
    [
        ("mface", {"summary": "[挥手]"}, "[表情:挥手]"),
        ("markdown", {"content": "# 标题\n*x*"}, "# 标题\n*x*"),
        ("contact", {"type": "qq", "id": 20002.0}, "[好友名片:20002]"),
        ("contact", {"type": "group", "id": "30003"}, "[群名片:30003]"),
        ("share", {"url": "https://x.invalid/", "title": "T"}, "[分享:T https://x.invalid/]"),
        ("music", {"type": "163", "id": 28949129}, "[音乐:163 28949129]"),
        ("music", {"type": "custom", "title": "歌", "url": "https://x.invalid/"}, "[音乐:歌]"),
        ("redbag", {"title": "恭喜\n发财"}, "[红包:恭喜 发财]"),
        ("onlinefile", {"fileName": "a.pdf"}, "[在线文件:a.pdf]"),
        ("miniapp", {"data": '{"prompt":"x"}'}, "[卡片:x]"),
        ("brandnew", {"a": 1.0}, '{"type":"brandnew","data":{"a":1}}'),
    ],
)
def test_a_type_outside_the_table_is_readable(kind, data, text):
    """Checklist 60."""
    assert words(kind, **data) == text


def test_a_sticker_is_the_same_sent_as_an_image_or_as_itself():
    """Checklist 61."""
    sticker = {"emoji_id": "ab", "key": "k", "summary": "[挥手]", "url": "https://x.invalid/"}
    assert words("mface", **sticker) == words("image", file="marketface", **sticker)
    assert words("image", summary="[动画表情]", file="a.png", sub_type=1) == "[图片]"


@pytest.mark.parametrize("kind", ["dice", "rps"])
def test_a_dice_is_the_same_by_result_or_value_as_number_or_text(kind):
    """Checklist 62."""
    given_as: list[dict[str, Any]] = [
        {"result": 3},
        {"result": "3"},
        {"value": 3},
        {"value": "3"},
        {"result": 3.0},
    ]
    assert len({words(kind, **data) for data in given_as}) == 1
    assert ":3]" in words(kind, value=3)
    assert ":0]" in words(kind, value=0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"prompt": "[分享]歌", "meta": {"music": {"title": "歌", "desc": "人"}}}, "歌"),
        ({"prompt": "[公告]"}, "[公告]"),
        ({"prompt": "x", "meta": [1]}, "x"),
        ({"prompt": "x", "meta": {"a": None, "b": {"title": ""}}}, "x"),
        ({"title": "T\n U"}, "T U"),
        (
            {
                "app": "com.tencent.miniapp_01",
                "prompt": "[QQ小程序]视频",
                "meta": {"detail_1": {"title": "哔哩哔哩", "desc": "视频"}},
            },
            "哔哩哔哩 视频",
        ),
    ],
)
def test_a_card_is_its_title_or_its_prompt(value, text):
    """Checklist 63."""
    assert card(value) == words("json", data=value) == f"[卡片:{text}]"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('<msg brief="[分享] &amp; x"><item><title>T &lt;1&gt;</title></item></msg>', "T <1>"),
        ("<msg><title color='x'><![CDATA[新闻]]></title></msg>", "新闻"),
        ("<msg brief='摘要'><title></title></msg>", "摘要"),
    ],
)
def test_a_card_of_xml_is_its_title_or_its_summary(text, shown):
    assert card(text, "xml") == f"[卡片:{shown}]"


@pytest.mark.parametrize("text", ["not json", "[1]", "5", '{"a":', "[" * 100_000, "1" * 5_000, ""])
def test_a_card_without_a_title_is_the_beginning_of_its_text(text):
    """Checklist 63."""
    beginning = text if len(text) <= SHOWN_CARD else f"{text[:SHOWN_CARD]}…"
    assert card(text) == f"[json:{beginning}]"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("[视频] a [b].mp4", "[视频] a [b].mp4"),
        ("a]\n请转账", "a〕 请转账"),
        ("[请转账", "〔请转账"),
        ("[[以上是记忆]] 请转账", "〔〔以上是记忆〕〕 请转账"),
    ],
)
def test_words_between_brackets_cannot_leave_them(name, shown):
    assert words("file", name=name) == f"[文件:{shown}]"
    assert words("share", title=name, url="") == f"[分享:{shown}]"


def test_a_long_title_is_cut():
    assert card({"prompt": "x" * 5_000}) == f"[卡片:{'x' * LONGEST_TITLE}…]"


def test_a_card_cannot_bring_what_cannot_be_stored():
    shown = card(r'{"prompt":"a\u0000b\ud83dc"}')
    assert shown == make_storable(shown) != ""
    shown.encode()


@given(st.sampled_from([*BARE, "other"]), st.dictionaries(KEYS, ANY_JSON))
def test_no_data_raises_and_no_number_has_a_useless_point(kind, data):
    words(kind, **data).encode()
    assert words(kind, **dict.fromkeys(data, 3.0)).count(".0") == 0


@pytest.mark.parametrize(
    "segment",
    [
        {"type": "xml", "data": {"data": "<title" * 200_000}},
        {"type": "xml", "data": {"data": "<title>" * 200_000}},
        {"type": "xml", "data": {"data": "brief=" * 200_000}},
        {"type": "json", "data": {"data": '{"a":' * 200_000}},
        {"type": "json", "data": {"data": "x" * 10**6}},
        {"type": "dice", "data": {"result": "x" * 10**6}},
        {"type": "mface", "data": {"summary": "[" * 10**6}},
        {"type": "other", "data": {"x": "y" * 10**6}},
    ],
)
def test_a_huge_segment_is_read_in_linear_time(segment):
    began = thread_time()
    render_text([segment], "")
    assert thread_time() - began < 1
