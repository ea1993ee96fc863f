"""What the model reads of a message: every segment in its words, whatever shape the message came
in."""

import json

import pytest

from tests.cast import fresh_id
from tests.e2e.chat import client, tell, words
from tests.fake_onebot import at, text

#: What follows the words where the quoted message cannot be had.
QUOTED = "\n⟦以下是被引用的消息⟧"
NEW = {"type": "new", "data": {"summary": "[开心]", "emoji_id": "ab"}}


@pytest.mark.parametrize(
    ("segment", "said"),
    [
        (text("  as it is  "), "as it is"),
        (text("[CQ:face,id=1] &amp; <b>"), "[CQ:face,id=1] &amp; <b>"),
        (at(20002), "[@20002]"),
        ({"type": "at", "data": {"qq": 3127306807.0}}, "[@3127306807]"),
        ({"type": "face", "data": {"id": 14}}, "[表情:14]"),
        ({"type": "face", "data": {"id": 14.0}}, "[表情:14]"),
        ({"type": "record", "data": {"file": "a.amr"}}, "[语音]"),
        ({"type": "video", "data": {"file": "a.mp4"}}, "[视频]"),
        ({"type": "file", "data": {"name": "a.pdf", "size": 3}}, "[文件:a.pdf]"),
        ({"type": "file", "data": {"file": "b.pdf"}}, "[文件:b.pdf]"),
        ({"type": "reply", "data": {"id": "-5"}}, "[回复:-5]"),
        ({"type": "reply", "data": {"id": 1795228591665.0}}, "[回复:1795228591665]"),
        (
            {"type": "location", "data": {"lat": 39.9, "lon": "116.4", "title": "北京"}},
            "[位置:39.9,116.4 北京]",
        ),
        (
            {"type": "location", "data": {"lat": 0.0000001, "lon": 1e2, "title": ""}},
            "[位置:0.0000001,100 ]",
        ),
        ({"type": "json", "data": {"data": '{"app":"x"}'}}, '[json:{"app":"x"}]'),
        ({"type": "json", "data": {"data": "not json"}}, "[json:not json]"),
        ({"type": "json", "data": {"data": '{"prompt":"[分享]歌"}'}}, "[卡片:[分享]歌]"),
        ({"type": "mface", "data": {"summary": "[开心]", "emoji_id": "ab"}}, "[表情:开心]"),
        ({"type": "dice", "data": {"result": 6.0}}, "[骰子:6]"),
        ({"type": "dice", "data": {"value": "6"}}, "[骰子:6]"),
        ({"type": "shake", "data": None}, "[窗口抖动]"),
        ({"type": "shake"}, "[窗口抖动]"),
        ({"type": "xml", "data": {"data": "<a/>"}}, "[xml:<a/>]"),
    ],
)
async def test_every_segment_has_its_words(live, model, segment, said):
    model.script(["ok"])
    async with client(live) as bot:
        await tell(bot, [segment], user=fresh_id())
        await bot.next_action()
    own, quoted, _ = words(model.requests[0]).partition(QUOTED)
    assert own == said
    assert bool(quoted) is (segment["type"] == "reply")


@pytest.mark.parametrize(
    ("segment", "shown"),
    [
        (NEW, NEW),
        ({"type": "new", "data": {"n": 6.0}}, {"type": "new", "data": {"n": 6}}),
        ({"type": "new", "data": {"id": 1e18}}, {"type": "new", "data": {"id": 10**18}}),
        ({"type": "new", "data": None}, {"type": "new", "data": {}}),
        ({"type": "new"}, {"type": "new", "data": {}}),
    ],
)
async def test_an_unknown_segment_is_shown_as_json_without_floats(live, model, segment, shown):
    model.script(["ok"])
    async with client(live) as bot:
        await tell(bot, [segment], user=fresh_id())
        await bot.next_action()
    assert json.loads(words(model.requests[0])) == shown
    assert ".0" not in words(model.requests[0])
    assert "e+" not in words(model.requests[0])


async def test_a_string_and_an_array_of_the_same_message_read_the_same(live, model):
    model.answer_with(lambda _request: "ok")
    user = fresh_id()
    array = [
        text("a[1&2]"),
        at(5),
        {"type": "face", "data": {"id": "14"}},
        {"type": "reply", "data": {"id": "-5"}},
        text("b,c=d"),
    ]
    async with client(live) as bot:
        for message in (
            array,
            "a&#91;1&amp;2&#93;[CQ:at,qq=5][CQ:face,id=14][CQ:reply,id=-5]b,c=d",
        ):
            await tell(bot, message, user=user)
            await bot.next_action()
    first, second = map(words, model.requests)
    assert first == second
    assert first.partition(QUOTED)[0] == "a[1&2][@5][表情:14][回复:-5]b,c=d"


@pytest.mark.parametrize(
    "odd", [None, "x", 5, {}, {"type": 5, "data": {}}, {"data": {"text": "x"}}, [], {"type": ""}]
)
async def test_what_is_no_segment_is_skipped(live, model, odd):
    model.script(["ok"])
    async with client(live) as bot:
        await tell(bot, [text("a"), odd, text("b")], user=fresh_id())
        await bot.next_action()
    assert words(model.requests[0]) == "ab"


async def test_a_message_of_one_segment_needs_no_list(live, model):
    model.script(["ok"])
    async with client(live) as bot:
        await tell(bot, text("alone"), user=fresh_id())
        await bot.next_action()
    assert words(model.requests[0]) == "alone"


@pytest.mark.parametrize(
    "message", ["[CQ:" * 200_000, "[CQ:shake]" * 300, "[CQ:at,qq=1," + "a=b," * 50_000 + "]"]
)
async def test_a_string_made_to_hurt_is_read_in_no_time(live, model, message):
    model.script(["ok"])
    async with client(live) as bot:
        await tell(bot, message, user=fresh_id())
        await bot.next_action()


async def test_what_cannot_be_stored_costs_a_character_and_not_the_message(live, model):
    model.script(["ok"])
    user = fresh_id()
    async with client(live) as bot:
        await bot.send_raw(
            f'{{"post_type":"message","message_type":"private","self_id":{bot.self_id},"user_id":{user},'
            r'"message":"a\u0000b\ud83dc\ud83d\ude00"}'
        )
        await bot.next_action()
    assert words(model.requests[0]) == "a\ufffdb\ufffdc😀"
