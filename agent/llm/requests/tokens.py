"""How many tokens a request is before an endpoint has counted it: an estimate from the kinds of
signs in it, and its correction by what the endpoint reports. Pure.

No vocabulary is used, for each family of models has its own. The weights were fitted to what
DeepSeek's (V4) and OpenAI's (o200k) count, whichever is more, in Chinese, English, chat, frames,
JSON, code, HTML, logs, CSV and Base64: the estimate is 6 % below to 18 % above what DeepSeek's
takes. Old vocabularies and rare characters take more, which the correction learns.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

from agent.llm.requests.messages import ChatMessage

#: Tokens that a picture, or another medium in a message, is taken for.
PICTURE = 1_000
#: Marks of the speaker around a message; name, marks and id of a call, arguments apart; what a
#: chat template says about tools before it lists them.
MESSAGE, CALL, TOOLS = 5, 10, 150
#: What a tool is taken for where its definition is not looked at.
TOOL = 250
#: Characters of a text from which on samples of it are counted: so many pieces, of so many.
SAMPLED_FROM, PIECES, PIECE = 2**17, 32, 2**11


class _Kind(NamedTuple):
    """A kind of sign: the tokens of each one, and besides of each unbroken run."""

    each: float
    run: float = 0


#: By the sign that stands for the kind. Of the others in UTF-8 the first byte tells the kind.
_KINDS = {
    "a": _Kind(0.09, 0.67),  # letters: a word is about one token
    "0": _Kind(0.5, 0.4),
    ".": _Kind(0.05, 0.7),  # other signs of ASCII, which often come together, as in `": "`
    " ": _Kind(0.02),  # usually part of the word that follows
    "h": _Kind(0.65, 0.6),  # Chinese characters, and some of the Japanese and Korean ones
    "k": _Kind(0.7),  # kana, and Chinese punctuation
    "f": _Kind(1.2),  # full-width signs
    "g": _Kind(0.95),  # Hangul
    "l": _Kind(0.42),  # two bytes: Cyrillic, Greek, Arabic, letters with accents
    "s": _Kind(1.8),  # other three bytes: symbols, dashes, Thai
    "e": _Kind(1.5),  # four bytes: emoji, rare characters
}
_ASCII = "a0. "
_CAPITAL, _HUMP, _LINE, _INDENT = 0.17, 1.7, 0.2, 0.8


def _kind(byte: int) -> str:
    sign = chr(byte)
    if byte < 0x80:
        if sign.isalnum():
            return "0" if sign.isdigit() else "A" if sign.isupper() else "a"
        return "n" if sign == "\n" else " " if sign.isspace() else "."
    ends = ((0xE0, "l"), (0xE3, "s"), (0xE4, "k"), (0xEA, "h"), (0xEE, "g"), (0xF0, "f"))
    return next((kind for end, kind in ends if byte < end), "e")


_KIND_OF = "".join(map(_kind, range(256))).encode()
_CONTINUATION = bytes(range(0x80, 0xC0))
#: A bit for each kind whose runs count; capitals are letters there.
_BIT_OF = {mark: 1 << bit for bit, mark in enumerate(m for m, k in _KINDS.items() if k.run)}
_BITS = bytes(_BIT_OF.get("a" if code == ord("A") else chr(code), 0) for code in range(256))


def estimate_text_tokens(text: str) -> float:
    """The tokens of ``text``, never more than two a character, in less than 1 ms for 24,000
    characters; of a very long one by samples, so that no text takes more than a few."""
    if len(text) <= SAMPLED_FROM:
        return _weigh(text.encode(errors="surrogatepass"))
    starts = range(0, len(text) - PIECE + 1, (len(text) - PIECE) // (PIECES - 1))
    sample = "".join([text[start : start + PIECE] for start in starts])
    return _weigh(sample.encode(errors="surrogatepass")) * len(text) / len(sample)


def estimate_message_tokens(message: ChatMessage) -> float:
    """The tokens of a message as an endpoint is sent it: words, pictures, calls with their
    arguments, thoughts and whatever else goes back to a model."""
    words: list[str] = []
    media = 0
    for key, value in message.items():
        if key == "content" and isinstance(value, list):
            media += _add_parts(words, value)
        elif key not in ("role", "tool_call_id"):
            _add_texts(words, value)
    calls = message.get("tool_calls")
    extra = MESSAGE + PICTURE * media + CALL * (len(calls) if isinstance(calls, list) else 0)
    return estimate_text_tokens("\n".join(words)) + extra


def estimate_tools_tokens(encoded: bytes) -> float:
    """The tokens of the tools that a request offers, as the JSON that is sent; 0 for none."""
    return _weigh(encoded) + TOOLS if encoded else 0.0


class TokenScale:
    """What the estimates for one model of an endpoint are to be multiplied by, learnt from the
    usage that comes back.

    ``factor`` is what to keep, and to begin with next time. It rises faster than it falls: too high
    an estimate costs some history, too low a one a refused request.
    """

    LEAST, MOST = 0.25, 4.0
    """Bounds of the factor, and of what is believed of a report."""
    SMALLEST = 100
    """Tokens of the smallest request that tells anything: in a smaller one the endpoint's own words
    are most of it."""
    RISE, FALL, STEP = 0.5, 0.1, 1.5

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = min(self.MOST, max(self.LEAST, factor)) if math.isfinite(factor) else 1.0

    def correct(self, estimated: float, reported: int) -> None:
        """Learn that a request, ``estimated`` without this factor, took ``reported`` input tokens.

        What cannot be is ignored (0, fifty times as many); leave out requests with pictures, whose
        tokens depend on their size.
        """
        if not (estimated >= self.SMALLEST and reported > 0):
            return
        ratio = reported / estimated
        if not self.LEAST <= ratio <= self.MOST:
            return
        ratio = min(self.factor * self.STEP, max(self.factor / self.STEP, ratio))
        self.factor += (self.RISE if ratio > self.factor else self.FALL) * (ratio - self.factor)

    def tokens(self, estimated: float) -> int:
        return math.ceil(estimated * self.factor)


def _weigh(data: bytes) -> float:
    """Tokens of UTF-8. Every pass is one of the interpreter's loops in C over a byte a sign."""
    signs = data.translate(_KIND_OF, _CONTINUATION)
    bits = int.from_bytes(signs.translate(_BITS))
    begun = (bits ^ (bits & (bits >> 8))).to_bytes(len(signs))  # the first sign of each run
    capitals = signs.count(b"A")
    tokens = _LINE * signs.count(b"n") + _INDENT * signs.count(b"n ")
    if capitals:
        tokens += (_CAPITAL + _KINDS["a"].each) * capitals + _HUMP * signs.count(b"aA")
    for mark in _ASCII if data.isascii() else _KINDS:
        kind = _KINDS[mark]
        tokens += kind.each * signs.count(ord(mark))
        if kind.run:
            tokens += kind.run * begun.count(_BIT_OF[mark])
    return tokens


def _add_parts(words: list[str], parts: list[object]) -> int:
    """How many media are among the ``parts`` of a content; the texts go to ``words``."""
    media = 0
    for part in parts:
        if isinstance(part, Mapping) and isinstance(part.get("text"), str):
            words.append(part["text"])
        else:
            media += 1
    return media


def _add_texts(words: list[str], value: object) -> None:
    """All texts in a JSON ``value``, however deep, with the names of its entries."""
    left = [value]
    while left:
        value = left.pop()
        if isinstance(value, str):
            words.append(value)
        elif isinstance(value, Mapping):
            left += value.values()
        elif isinstance(value, list | tuple):
            left += value
