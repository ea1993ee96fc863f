"""Messages with fewer words: the middle of a long text is left out, and a mark says how much. Pure.

Never cut are the line of a frame (:mod:`tools.text.fences`), which says who speaks, and parts that
are no text.
"""

import re
from typing import Any

from agent.llm.requests.messages import ChatMessage
from tools.text import fences

#: Characters that are left of a text at least. Half of them hold the opening of a fence.
SHORTEST = 400
#: Characters that are left out at least: the mark takes tokens too.
LEAST_CUT = 100
_MARK = "…（省略 {} 字）…"
_MARKED = re.compile(r"…（省略 (\d{1,9}) 字）…")


def shorten_text(text: str, keep: int) -> str:
    """``text`` with ``keep`` characters of its words, as many from their beginning as from their
    end, and the mark between; the very same text where that leaves out hardly anything.

    What an earlier mark in the middle stands for is counted again, not the mark.
    """
    begin = _words_begin(text)
    cut_from, cut_to = begin + keep - keep // 2, len(text) - keep // 2
    left_out = cut_to - cut_from
    if left_out < LEAST_CUT:
        return text
    earlier = text.find("…（省略 ", cut_from, cut_to)
    if earlier >= 0 and (found := _MARKED.match(text, earlier, cut_to)):
        left_out += int(found[1]) - len(found[0])
    return f"{text[:cut_from]}{_MARK.format(left_out)}{text[cut_to:]}"


def shorten_message(message: ChatMessage, keep: int) -> ChatMessage:
    """A copy of ``message`` with about ``keep`` characters of words, never fewer than
    :data:`SHORTEST` in a text; the very same message where nothing is left out.

    Parts without text, and those that stay as they are, are shared.
    """
    content = message.get("content")
    if isinstance(content, str):
        short = shorten_text(content, max(SHORTEST, keep))
        return message if short is content else {**message, "content": short}
    words = count_words(message)
    if not isinstance(content, list) or words <= keep:
        return message
    parts = [_shorten_part(part, keep / words) for part in content]
    same = all(new is old for new, old in zip(parts, content, strict=True))
    return message if same else {**message, "content": parts}


def count_words(message: ChatMessage) -> int:
    """Characters of a message's words, which could be left out."""
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    return sum(len(text) - _words_begin(text) for part in parts if (text := _text_of(part)))


def _shorten_part(part: Any, share: float) -> Any:
    text = _text_of(part)
    keep = int((len(text) - _words_begin(text)) * share)
    short = shorten_text(text, max(SHORTEST, keep))
    return part if short is text else {**part, "text": short}


def _text_of(part: Any) -> str:
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else ""


def _words_begin(text: str) -> int:
    """Where the words begin: below the frame, if there is one."""
    if not fences.is_framed(text):
        return 0
    return text.find("\n") + 1 or len(text)
