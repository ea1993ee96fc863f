"""The wanted part of a JSON answer: JSONPath by RFC 9535, with bounds. Pure.

The answer is untrusted and may be built to be slow. So there are no regular expressions (``match``
and ``search``: Python's may never end, and block every thread meanwhile), a filter may select
single values only (else each element could select all elements), and every visited node counts.
"""

from typing import Protocol

NODES = 200_000
"""The most nodes visited for one answer; about half a second."""


class TooManyNodesError(Exception):
    """The answer has too many nodes, or is nested too deep."""


class JsonPathQuery(Protocol):
    """A path, ready to be applied in any thread."""

    is_single: bool
    """Whether the path can only lead to one value."""

    def apply(self, answer: object) -> list[object]:
        """The values that the path leads to, in order. Raises :class:`TooManyNodesError`."""
        ...


def compile_jsonpath(path: str) -> JsonPathQuery:
    """The path that ``path`` writes. Raises ValueError, with a reason, where it cannot be used.

    The first one takes a tenth of a second: not for the event loop.
    """
    from tools.http_tools.jsonpath_engine import compile_path

    return compile_path(path)
