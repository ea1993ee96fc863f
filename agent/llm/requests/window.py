"""Requests that fit the window of a model: what is dropped, in which order, and what is never cut.

Of a request, the system messages and everything from the current message on are kept: the run's own
calls and results stay together. Of what stands before it, the history goes first, oldest first,
then the background (summary, memory, and what else was said in the group). When that is not enough,
long texts are shortened: tool results, those of earlier steps first, then the words of users. Pure;
the messages of a result that were not shortened are the same objects.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from agent.llm.requests.messages import ChatMessage
from agent.llm.requests.shortening import SHORTEST, count_words, shorten_message
from agent.llm.requests.tokens import estimate_message_tokens
from tools.text.fences import FenceKind

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
    for places in _droppable(messages, begin):
        first = _first_kept(messages, places, [sizes[place] for place in places], over)
        dropped.update(places[:first])
        over -= sum(sizes[place] for place in places[:first])
    fitted = _without(messages, dropped)
    for places in _shortenable(fitted, begin - len(dropped)):
        if over <= 0:
            break
        over = _shorten_to_fit(fitted, places, over, count)
    return fitted


def drop_oldest_half(messages: Sequence[ChatMessage], begin: int) -> list[ChatMessage] | None:
    """``messages`` for another try, when an endpoint says that they are more than its window
    holds: without the older half of the history; if there is none, without the background; if there
    is none, with tool results, then users' words, shortened to half. None when nothing is left.

    ``begin`` is as in :func:`fit_window`. Some two dozen tries use up any request.
    """
    for places in _droppable(messages, begin):
        if places:
            sizes = [estimate_message_tokens(messages[place]) for place in places]
            first = _first_kept(messages, places, sizes, sum(sizes) / 2)
            return _without(messages, set(places[:first]))
    results = [place for places in _results(messages, begin) for place in places]
    for places in (results, _of_users(messages, begin)):
        halved = list(messages)
        for place in places:
            halved[place] = shorten_message(halved[place], count_words(halved[place]) // 2)
        if any(halved[place] is not messages[place] for place in places):
            return halved
    return None


# --- What may go ------------------------------------------------------------------------


def _droppable(messages: Sequence[ChatMessage], begin: int) -> tuple[list[int], list[int]]:
    """The places of the history and of the background, both before ``begin``."""
    history: list[int] = []
    background: list[int] = []
    for place, message in enumerate(messages[: max(0, begin)]):
        if message.get("role") not in KEPT_ROLES:
            (background if _is_background(message) else history).append(place)
    return history, background


def _is_background(message: ChatMessage) -> bool:
    content = message.get("content")
    return isinstance(content, str) and content.startswith(_BACKGROUND)


def _first_kept(
    messages: Sequence[ChatMessage], places: Sequence[int], sizes: Sequence[float], over: float
) -> int:
    """How many of ``places`` to drop, oldest first, so that ``over`` tokens go: then so many more
    that what is left begins with a user's message, not with an answer or a result."""
    if over <= 0:
        return 0
    enough = (place for place, gone in enumerate(accumulate(sizes), 1) if gone >= over)
    for first in range(next(enough, len(places)), len(places)):
        if messages[places[first]].get("role") == "user":
            return first
    return len(places)


def _without(messages: Sequence[ChatMessage], dropped: set[int]) -> list[ChatMessage]:
    return [message for place, message in enumerate(messages) if place not in dropped]


# --- What may be shorter ----------------------------------------------------------------


def _shortenable(messages: Sequence[ChatMessage], begin: int) -> Iterator[list[int]]:
    yield from _results(messages, begin)
    yield _of_users(messages, begin)


def _results(messages: Sequence[ChatMessage], begin: int) -> tuple[list[int], list[int]]:
    """The places of the tool results of earlier steps, and of the last one, from ``begin`` on."""
    places = range(max(0, begin), len(messages))
    last = max((p for p in places if messages[p].get("role") == "assistant"), default=0)
    results = [place for place in places if messages[place].get("role") == "tool"]
    return [p for p in results if p < last], [p for p in results if p > last]


def _of_users(messages: Sequence[ChatMessage], begin: int) -> list[int]:
    places = range(max(0, begin), len(messages))
    return [place for place in places if messages[place].get("role") == "user"]


def _shorten_to_fit(
    messages: list[ChatMessage], places: Sequence[int], over: float, count: Count
) -> float:
    """Shorten those of ``messages`` at ``places``, the largest first, until they have ``over``
    tokens less; how many are still too many.

    All that are larger than one size are cut to it, so that the others stay whole.
    """
    shortest = {place: shorten_message(messages[place], SHORTEST) for place in places}
    sizes = {place: (count(messages[place]), count(short)) for place, short in shortest.items()}
    limit = _level(list(sizes.values()), over)
    for place, (size, least) in sizes.items():
        if size > max(limit, least):
            messages[place] = _cut_to(messages[place], shortest[place], limit, count)
            over -= size - count(messages[place])
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
