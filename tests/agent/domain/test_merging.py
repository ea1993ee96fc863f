"""How long a message waits for the next words of the same person."""

from dataclasses import replace

import pytest

from agent.domain.answer_triggers import NEXT_WORDS, is_bare_mention, merge_window
from agent.domain.manners import environment_manners
from agent.domain.types import MediaRef
from tests.agent.talk import GROUP, message


def test_a_message_waits_for_nothing_unless_a_row_says_so():
    said, manners = message("hi", GROUP, mentions_bot=True), environment_manners()
    assert merge_window(said, manners) == 0.0
    assert merge_window(said, replace(manners, merge_seconds=2.5)) == 2.5


@pytest.mark.parametrize(("seconds", "wanted"), [(0.0, NEXT_WORDS), (9.0, 9.0)])
def test_a_mention_without_words_waits_a_moment(seconds, wanted):
    manners = replace(environment_manners(), merge_seconds=seconds)
    assert merge_window(message(" ", GROUP, mentions_bot=True), manners) == wanted


@pytest.mark.parametrize(
    "said",
    [
        {"text": "hi", "mentions_bot": True},
        {"text": "", "mentions_bot": True, "quoted_id": "7"},
        {"text": "", "mentions_bot": True, "media": (MediaRef("image", "a.png"),)},
        {"text": ""},
    ],
)
def test_words_a_quote_or_a_picture_make_a_mention_more_than_bare(said):
    assert not is_bare_mention(message(chat=GROUP, **said))
