"""Requests that fit the window of a model: what is dropped, in which order, and what is never cut.

Of a request, the system messages and everything from the current message on are kept: the run's own
calls and results stay together. Of what stands before it, the history goes first, oldest first,
then the background (summary, memory, and what else was said in the group). When that is not enough,
long texts are shortened: tool results, those of earlier steps first, then the words of users. Pure;
the messages of a result that were not shortened are the same objects.
"""

import re
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from agent.llm.requests.messages import ChatMessage
from agent.llm.requests.tokens import estimate_message_tokens
from tools.text import fences
from tools.text.fences import FenceKind

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


def _text_of(part: object) -> str:
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else ""


def _words_begin(text: str) -> int:
    """Where the words begin: below the frame, if there is one."""
    if not fences.is_framed(text):
        return 0
    return text.find("\n") + 1 or len(text)


Count = Callable[[ChatMessage], float]

KEPT_ROLES = ("system", "developer")
_BACKGROUND = tuple(
    kind.opening for kind in (FenceKind.SUMMARY, FenceKind.MEMORY, FenceKind.AMBIENT)
)
#: Tries to cut a text to what was allotted to it, before it is cut as short as can be; steps to
#: find what is allotted.
_TRIES, _HALVINGS = 6, 40


def fit_window(
    messages: Sequence[ChatMessage], *, room: int, count: Count, begin: int
) -> list[ChatMessage]:
    """``messages`` fitted to ``room`` tokens, as ``count`` counts one; all of them where they fit.

    ``begin`` is the place of the current message. In the result it is as much smaller as the result
    has fewer messages. When even the shortest form is too large, that form is the result.
    """
    sizes = [count(message) for message in messages]
    over = sum(sizes) - room
    dropped: set[int] = set()
    for indexes in _droppable(messages, begin):
        first = _first_kept(messages, indexes, [sizes[index] for index in indexes], over)
        dropped.update(indexes[:first])
        over -= sum(sizes[index] for index in indexes[:first])
    fitted = _without(messages, dropped)
    begin -= len(dropped)
    for indexes in (*_results(fitted, begin), _of_users(fitted, begin)):
        if over <= 0:
            break
        over = _shorten_to_fit(fitted, indexes, over, count)
    return fitted


def drop_oldest_half(messages: Sequence[ChatMessage], begin: int) -> list[ChatMessage] | None:
    """``messages`` for another try, when an endpoint says that they are more than its window
    holds: without the older half of the history; if there is none, without the background; if there
    is none, with tool results, then users' words, shortened to half. None when nothing is left.

    ``begin`` is as in :func:`fit_window`. Some two dozen tries use up any request.
    """
    for indexes in _droppable(messages, begin):
        if indexes:
            sizes = [estimate_message_tokens(messages[index]) for index in indexes]
            first = _first_kept(messages, indexes, sizes, sum(sizes) / 2)
            return _without(messages, set(indexes[:first]))
    results = [index for indexes in _results(messages, begin) for index in indexes]
    for indexes in (results, _of_users(messages, begin)):
        halved = list(messages)
        for index in indexes:
            halved[index] = shorten_message(halved[index], count_words(halved[index]) // 2)
        if any(halved[index] is not messages[index] for index in indexes):
            return halved
    return None


# --- What may go ------------------------------------------------------------------------


def _droppable(messages: Sequence[ChatMessage], begin: int) -> tuple[list[int], list[int]]:
    """The places of the history and of the background, both before ``begin``."""
    history: list[int] = []
    background: list[int] = []
    for index, message in enumerate(messages[: max(0, begin)]):
        if message.get("role") not in KEPT_ROLES:
            content = message.get("content")
            is_background = isinstance(content, str) and content.startswith(_BACKGROUND)
            (background if is_background else history).append(index)
    return history, background


def _first_kept(
    messages: Sequence[ChatMessage], indexes: Sequence[int], sizes: Sequence[float], over: float
) -> int:
    """How many of ``indexes`` to drop, oldest first, so that ``over`` tokens go: then so many more
    that what is left begins with a user's message, not with an answer or a result."""
    if over <= 0:
        return 0
    enough = (index for index, gone in enumerate(accumulate(sizes), 1) if gone >= over)
    for first in range(next(enough, len(indexes)), len(indexes)):
        if messages[indexes[first]].get("role") == "user":
            return first
    return len(indexes)


def _without(messages: Sequence[ChatMessage], dropped: set[int]) -> list[ChatMessage]:
    return [message for index, message in enumerate(messages) if index not in dropped]


# --- What may be shorter ----------------------------------------------------------------


def _results(messages: Sequence[ChatMessage], begin: int) -> tuple[list[int], list[int]]:
    """The places of the tool results of earlier steps, and of the last one, from ``begin`` on."""
    indexes = range(max(0, begin), len(messages))
    last = max((p for p in indexes if messages[p].get("role") == "assistant"), default=0)
    results = [index for index in indexes if messages[index].get("role") == "tool"]
    return [p for p in results if p < last], [p for p in results if p > last]


def _of_users(messages: Sequence[ChatMessage], begin: int) -> list[int]:
    indexes = range(max(0, begin), len(messages))
    return [index for index in indexes if messages[index].get("role") == "user"]


def _shorten_to_fit(
    messages: list[ChatMessage], indexes: Sequence[int], over: float, count: Count
) -> float:
    """Shorten those of ``messages`` at ``indexes``, the largest first, until they have ``over``
    tokens less; how many are still too many.

    All that are larger than one size are cut to it, so that the others stay whole.
    """
    shortest = {index: shorten_message(messages[index], SHORTEST) for index in indexes}
    sizes = {index: (count(messages[index]), count(short)) for index, short in shortest.items()}
    limit = _level(list(sizes.values()), over)
    for index, (size, least) in sizes.items():
        if size > max(limit, least):
            messages[index] = _cut_to(messages[index], shortest[index], limit, count)
            over -= size - count(messages[index])
    return over


def _level(sizes: list[tuple[float, float]], over: float) -> float:
    """The size to which those that are larger have to be cut, as far as each can be, so that
    ``over`` tokens go; 0 where that is not enough. ``sizes`` are as they are, and the least."""
    low, high = 0.0, max((size for size, _ in sizes), default=0.0)
    for _ in range(_HALVINGS):
        limit = (low + high) / 2
        gone = sum(size - max(least, limit) for size, least in sizes if size > max(least, limit))
        low, high = (limit, high) if gone >= over else (low, limit)
    return low


def _cut_to(message: ChatMessage, shortest: ChatMessage, limit: float, count: Count) -> ChatMessage:
    """``message`` with as many of its words as about ``limit`` tokens hold; the ``shortest`` form
    where that is too large."""
    words, size, least = count_words(message), count(message), count(shortest)
    kept = count_words(shortest)
    for _ in range(_TRIES):
        if not least < limit < size:
            break
        words = int(kept + (words - kept) * (limit - least) / (size - least) * 0.99)
        short = shorten_message(message, words)
        size = count(short)
        if size <= limit:
            return short
    return shortest
