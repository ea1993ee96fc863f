"""Long texts with their middle left out."""

import time

import pytest

from agent.llm.requests.messages import SpokenMessage, build_speaker_frame, user_message
from agent.llm.requests.window import SHORTEST, count_words, shorten_message, shorten_text
from tools.text import fences

SPEECH = SpokenMessage("话" * 5000, "20001", "Ann", "group:7")
FRAME = build_speaker_frame(SPEECH)


def test_a_text_keeps_its_beginning_and_its_end_and_says_how_much_is_left_out():
    assert shorten_text("头" * 500 + "尾" * 500, 4) == "头头…（省略 996 字）…尾尾"


@pytest.mark.parametrize("text", ["", "short", "一" * 20])
def test_a_text_that_would_not_be_shorter_is_the_same(text):
    assert shorten_text(text, 10) is text


def test_what_was_left_out_before_is_counted_again():
    assert shorten_text(shorten_text("字" * 9000, 1000), 500) == shorten_text("字" * 9000, 500)


def test_a_mark_in_a_text_from_outside_does_no_harm():
    odd = "a" * 300 + "…（省略 " * 300 + "…（省略 99999999999999 字）…" + "b" * 300
    assert len(shorten_text(odd, 100)) < 130


def test_a_frame_stays_whole_however_little_is_left():
    short = shorten_message(user_message(SPEECH), 0)
    assert short["content"].startswith(FRAME + "\n话")
    assert count_words(short) < SHORTEST + 20
    assert shorten_text(FRAME * 9, 0) == FRAME * 9
    assert shorten_text(f"{FRAME}\n{'x' * 500}", 2) == f"{FRAME}\nx…（省略 498 字）…x"


def test_a_fence_keeps_its_beginning_and_its_end():
    kind = fences.FenceKind.HISTORY
    text = fences.fence_values(kind, [{"text": "说" * 50}] * 200)
    short = shorten_message({"role": "tool", "tool_call_id": "c", "content": text}, 0)["content"]
    assert short.startswith(kind.opening)
    assert short.endswith(kind.closing)


def test_of_parts_only_long_texts_change():
    pictures = [{"type": "image_url", "image_url": {"url": f"kept:{n}"}} for n in range(2)]
    label, long = (
        {"type": "text", "text": "[1]"},
        {"type": "text", "text": f"{FRAME}\n{'x' * 9000}"},
    )
    message = {"role": "user", "content": [long, pictures[0], label, pictures[1], None]}
    short = shorten_message(message, 1000)
    first, *others = short["content"]
    assert all(new is old for new, old in zip(others, message["content"][1:], strict=True))
    assert first["text"].startswith(FRAME + "\nx")
    assert len(first["text"]) < 1200
    assert long["text"].endswith("x" * 9000)


@pytest.mark.parametrize("content", [None, 7, [], "short", [{"type": "text"}], [{"text": 1}]])
def test_a_message_without_long_texts_is_the_same(content):
    message = {"role": "user", "content": content}
    assert shorten_message(message, 0) is message


def test_a_text_of_ten_million_characters_is_shortened_at_once():
    text = "…（省略 字" * 1_500_000
    started = time.process_time()
    assert len(shorten_text(text, 1000)) < 1030
    assert time.process_time() - started < 0.2
