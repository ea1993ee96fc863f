"""How many tokens a call took, as endpoints report it in their various ways. Pure."""

from collections.abc import Mapping
from typing import Any, NamedTuple

#: More is no number of tokens.
MOST = 2**31
_INPUT = ("prompt_tokens", "input_tokens")
_OUTPUT = ("completion_tokens", "output_tokens")
#: DeepSeek names what it had kept "prompt_cache_hit_tokens", Moonshot "cached_tokens".
_CACHED = ("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens")
_REASONING = ("reasoning_tokens",)


class Usage(NamedTuple):
    """Tokens of a call: ``cached`` are part of ``input``, ``reasoning`` of ``output``."""

    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0

    @property
    def tokens(self) -> int:
        return self.input + self.output


def read_usage(answer: object) -> Usage | None:
    """What ``answer``, the body of a response, reports; None if that is nothing.

    Gemini and xAI leave the thoughts out of the output and count them in the total alone, so what
    the total holds beyond input and output is output too.
    """
    usage = answer.get("usage") if isinstance(answer, dict) else None
    if not isinstance(usage, Mapping):
        return None
    given, said = _first(usage, _INPUT), _first(usage, _OUTPUT)
    total = _number(usage, "total_tokens")
    if not (given or said):
        return Usage(input=total) if total else None
    cached = _detailed(usage, _CACHED, ("prompt_tokens_details", "input_tokens_details"))
    details = ("completion_tokens_details", "output_tokens_details")
    reasoning = _detailed(usage, _REASONING, details)
    beyond = max(0, total - given - said) if given and total else 0
    said += beyond
    return Usage(given, min(cached, given), said, min(max(reasoning, beyond), said))


def _detailed(usage: Mapping[str, Any], names: tuple[str, ...], places: tuple[str, ...]) -> int:
    found = (_first(part, names) for place in places if isinstance(part := usage.get(place), dict))
    return max(found, default=0) or _first(usage, names)


def _first(usage: Mapping[str, Any], names: tuple[str, ...]) -> int:
    return next((number for name in names if (number := _number(usage, name))), 0)


def _number(usage: Mapping[str, Any], name: str) -> int:
    value = usage.get(name)
    return value if type(value) is int and 0 < value < MOST else 0
