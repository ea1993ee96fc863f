"""From a client's event to the agent's message: the same whatever the client wrote it in."""

from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent.domain.types import IncomingMessage, Mention
from onebot.gateway.gateway import to_incoming
from onebot.protocol.events import MessageEvent, parse_event
from tests.onebot.protocol.test_cq import encode_cq, joined

BOT = "10001"
EVENT = {
    "post_type": "message",
    "message_type": "group",
    "self_id": 10001,
    "user_id": 20002,
    "group_id": 30003,
    "group_name": "Test",
    "sender": {"nickname": "Ann", "role": "admin"},
}


def incoming(message: Any, **fields: Any) -> IncomingMessage:
    event = parse_event({**EVENT, "message": message, **fields})
    assert isinstance(event, MessageEvent)
    return to_incoming(event, BOT, from_other_bot=False)


def at(qq: object, **data: object) -> dict[str, Any]:
    return {"type": "at", "data": {"qq": qq, **data}}


def read(message: Any) -> tuple[Any, ...]:
    """What the agent reads of a message, and whom it believes addressed."""
    said = incoming(message)
    media = [(one.kind, one.url, one.name) for one in said.media]
    return (
        *(said.text, said.spoken_text, said.mentions_bot, said.mentions, said.quoted_id),
        media,
    )


def segments(kind: str, **values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"type": st.just(kind), "data": st.fixed_dictionaries(values)})


IDS = st.integers(-(2**31), 2**53) | st.sampled_from([10001, "10001", "all", "0", "100011", "x"])
WORDS = st.text(max_size=12)
SEGMENTS = st.lists(
    segments("text", text=st.text(min_size=1))
    | segments("at", qq=IDS)
    | segments("at", qq=IDS, name=WORDS)
    | segments("reply", id=IDS)
    | segments("face", id=IDS)
    | segments("image", file=WORDS, url=WORDS, summary=WORDS, emoji_id=WORDS)
    | segments("mface", summary=WORDS)
    | segments("json", data=WORDS | st.just('{"prompt":"[a]","n":[1,2]}'))
    | segments("dice", result=st.integers(1, 6))
    | segments("music", type=WORDS, id=IDS)
    | segments("file", file=WORDS, file_size=IDS)
    | segments("markdown", content=WORDS)
)


@given(SEGMENTS)
def test_a_string_and_an_array_of_one_message_are_read_the_same(message):
    """Checklist 50."""
    as_text = [
        {"type": one["type"], "data": {key: str(value) for key, value in one["data"].items()}}
        for one in message
    ]
    assert read(encode_cq(as_text)) == read(joined(message))


@pytest.mark.parametrize(
    "message",
    [
        [at("10001"), {"type": "text", "data": {"text": " hi"}}],
        [at(10001), {"type": "text", "data": {"text": " hi"}}],
        [at(10001.0), {"type": "text", "data": {"text": "\u00a0hi"}}, at("10001")],
        [
            {"type": "text", "data": {"text": "h"}},
            at("10001"),
            {"type": "text", "data": {"text": "i"}},
        ],
        "[CQ:at,qq=10001,name=@bot] hi",
        "[CQ:at,qq=10001]hi[CQ:at,qq=10001]",
    ],
)
def test_a_mention_of_the_bot_is_no_word_and_none_of_the_people_mentioned(message):
    """Checklist 49, 51."""
    said = incoming(message)
    assert (said.text, said.mentions_bot, said.mentions) == ("hi", True, ())


@pytest.mark.parametrize("message", [[at("all")], [at("100011")], [at("20002")], "[CQ:at,qq=all]"])
def test_a_mention_of_all_or_of_another_is_none_of_the_bot(message):
    """Checklist 52, 53."""
    assert not incoming(message).mentions_bot


@pytest.mark.parametrize(
    ("message", "mentions"),
    [
        ([at(20002), at("20002", name="Bob"), at(20003)], [("20002", "Bob"), ("20003", "")]),
        ([at("20002", name="@Bob")], [("20002", "Bob")]),  # Lagrange
        ("[CQ:at,qq=20002,name=a&#44;b]", [("20002", "a,b")]),
        ([at("20002", name=None), at("0"), at("all"), at(None), at(10001)], [("20002", "")]),
        ([at(2**53 + 1)], [("9007199254740993", "")]),
        ([at("20002", name="x" * 10_000)], [("20002", "x" * 200)]),
    ],
)
def test_the_people_mentioned_are_known_each_once(message, mentions):
    assert incoming(message).mentions == tuple(Mention(*one) for one in mentions)


def test_nobody_is_mentioned_in_a_private_chat():
    assert incoming([at(20002)], message_type="private").mentions == ()


def test_an_anonymous_member_has_the_name_he_was_given():
    """Checklist 72."""
    given_as: list[Any] = [None, {"id": 1, "name": "Big Duck"}, {}, []]
    named = [incoming("hi", anonymous=one).sender_name for one in given_as]
    assert named == ["Ann", "Big Duck", "Ann", "Ann"]
    assert incoming("hi").sender_name == "Ann"
