"""What is asked of a vision model, and under what its answer is kept."""

from agent.media.image_reader import (
    DEFAULT,
    DEFAULT_PROMPT,
    content_key,
    prompt_kind,
    vision_messages,
)


def test_the_words_of_the_sender_are_the_prompt_and_blank_ones_are_not():
    for words, prompt in (("look ", "look "), ("", DEFAULT_PROMPT), (" \n ", DEFAULT_PROMPT)):
        content = vision_messages(words, ["a"])[-1]["content"]
        assert content[0] == {"type": "text", "text": prompt}


def test_the_pictures_follow_the_text_in_their_order():
    content = vision_messages("", ["a", "b", "a"])[-1]["content"]
    assert [part["image_url"]["url"] for part in content[1:]] == ["kept:a", "kept:b", "kept:a"]


def test_one_picture_is_known_by_its_own_hash_and_several_by_all_of_theirs_in_order():
    assert content_key(["a"]) == "a"
    keys = {content_key(["a", "b"]), content_key(["b", "a"]), content_key(["a", "b", "b"])}
    assert len(keys) == 3
    assert all(len(key) == 64 for key in keys)


def test_without_words_the_kind_of_prompt_is_the_same_for_everybody():
    assert prompt_kind("") == prompt_kind(" ") == DEFAULT
    assert prompt_kind("what colour?") != prompt_kind("what is written there?")
