"""The messages that an answer becomes, and to whom they are addressed."""

from dataclasses import replace

import pytest

from agent.chat.speaking import (
    address_answer,
    build_final_parts,
    cut_messages,
    is_blank,
    mention_members,
    split_pieces,
)
from agent.domain.manners import ChatManners
from agent.domain.persona import environment_persona
from agent.domain.types import MessagePart
from agent.markdown.answer_pieces import AnswerPiece
from tests.agent.talk import GROUP, PRIVATE, message

PICTURE = AnswerPiece("| a |", "/media/table.png")


def kinds(parts: list[MessagePart]) -> list[str]:
    return [part.type for part in parts]


@pytest.mark.parametrize(
    ("mention", "quote", "expected"),
    [
        (None, None, ["mention_user", "plain"]),
        (False, True, ["quote", "plain"]),
        (True, False, ["mention_user", "plain"]),
        (False, False, ["plain"]),
    ],
)
def test_manners_say_more_than_the_persona_about_mention_and_quote(mention, quote, expected):
    persona = replace(environment_persona(), mention=True, quote=False)
    said = message("hi", GROUP, message_id="7")
    manners = ChatManners(mention=mention, quote=quote)
    assert kinds(build_final_parts(said, "yes", persona, manners)) == expected
    in_private = message("hi", PRIVATE, message_id="7")
    assert kinds(build_final_parts(in_private, "yes", persona, manners)) == ["plain"]


def test_a_picture_is_addressed_without_touching_the_words_behind_it():
    parts = [MessagePart("image", path="/a.png"), MessagePart("plain", text="see")]
    persona = replace(environment_persona(), mention=True, quote=False)
    addressed = address_answer(parts, message("hi", GROUP), persona, ChatManners())
    assert kinds(addressed) == ["mention_user", "image", "plain"]
    assert addressed[-1].text == "see"


def test_words_and_pictures_share_a_message_while_they_fit():
    pieces = [AnswerPiece("a" * 60), PICTURE, AnswerPiece("b" * 60), AnswerPiece(" \n")]
    first, second = split_pieces(pieces, 100)
    assert (kinds(first.parts), first.text) == (["plain", "image"], "a" * 60 + "\n| a |")
    assert (kinds(second.parts), second.text) == (["plain"], "b" * 60)
    many = split_pieces([PICTURE] * 12, 100)
    assert [len(one.parts) for one in many] == [9, 3]


def test_what_is_left_out_leaves_a_mark():
    messages = split_pieces([AnswerPiece("甲" * 100), AnswerPiece("乙" * 100)], 100)
    (kept,) = cut_messages(messages, 1, 100)
    assert kept.parts[0].text == "甲" * 99 + "…"
    assert cut_messages(messages, 2, 100) == messages


def test_members_are_mentioned_in_words_alone():
    messages = split_pieces([AnswerPiece("@Ann see"), PICTURE], 100)
    (named,) = mention_members(messages, {"Ann": "20001"})
    assert kinds(named.parts) == ["mention_user", "plain", "image"]


@pytest.mark.parametrize("text", ["", " \n", "\u200b\u2060", "\ufe0f\u200d"])
def test_signs_without_a_shape_say_nothing(text):
    """Checklist 83."""
    assert is_blank(text)
    assert not is_blank(text + "0")
