"""The wanted part of a JSON answer: JSONPath by RFC 9535, with bounds. Pure.

The answer is untrusted and may be built to be slow. So there are no regular expressions (``match``
and ``search``: Python's may never end, and block every thread meanwhile), a filter may select
single values only (else each element could select all elements), and every visited node counts.
"""

from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import Any

from jsonpath import CompoundJSONPath, JSONPath, JSONPathEnvironment, JSONPathMatch
from jsonpath.exceptions import JSONPathError
from jsonpath.filter import BaseExpression, FilterQuery
from jsonpath.selectors import Filter

NODES = 200_000
"""The most nodes visited for one answer; about half a second."""
_left: ContextVar[list[int]] = ContextVar("nodes_left")


class TooManyNodesError(Exception):
    """The answer has too many nodes, or is nested too deep."""


class _Environment(JSONPathEnvironment):
    """RFC 9535 without its regular expressions; each judgement of a filter counts."""

    def __init__(self) -> None:
        super().__init__(strict=True, filter_caching=False)
        for name in ("match", "search"):
            del self.function_extensions[name]

    def is_truthy(self, obj: object) -> bool:
        _count()
        return super().is_truthy(obj)


class _Node(JSONPathMatch):
    """A node that counts, and keeps nothing but its value."""

    __slots__ = ()

    def new_child(self, obj: object, key: int | str) -> JSONPathMatch:
        _count()
        return _node(obj, self.root)

    def add_child(self, *children: JSONPathMatch) -> None:
        """The path to a node is not needed."""


_environment = _Environment()


class JsonPathQuery:
    """A path, ready to be applied in any thread. Made by :func:`compile_jsonpath`."""

    def __init__(self, path: JSONPath) -> None:
        self._path = path
        self.is_single = path.singular_query()
        """Whether the path can only lead to one value."""

    def apply(self, answer: object) -> list[object]:
        """The values that the path leads to, in order. Raises :class:`TooManyNodesError`."""
        token = _left.set([NODES])
        nodes: Iterable[JSONPathMatch] = [_node(answer, answer)]
        try:
            for segment in self._path.segments:
                nodes = segment.resolve(nodes)
            return [node.obj for node in nodes]
        except (JSONPathError, RecursionError) as error:
            raise TooManyNodesError(str(error)) from error
        finally:
            _left.reset(token)


def compile_jsonpath(path: str) -> JsonPathQuery:
    """The path that ``path`` writes. Raises ValueError, with a reason, where it cannot be used."""
    try:
        compiled = _environment.compile(path)
        if isinstance(compiled, CompoundJSONPath):
            raise ValueError("one path only")
        for query in _filter_queries(compiled):
            if not query.path.singular_query():
                raise ValueError(f"in a filter, {query} may lead to many values")
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    except JSONPathError as error:
        raise ValueError(str(error).partition("\n")[0]) from error
    return JsonPathQuery(compiled)


def _count() -> None:
    left = _left.get()
    left[0] -= 1
    if left[0] < 0:
        raise TooManyNodesError(f"more than {NODES} nodes")


def _node(obj: Any, root: Any) -> _Node:
    return _Node(filter_context={}, obj=obj, parent=None, path="", parts=(), root=root)


def _filter_queries(path: JSONPath) -> Iterator[FilterQuery]:
    """The queries that filters of ``path`` make, at any depth."""
    waiting: list[BaseExpression] = [
        selector.expression
        for segment in path.segments
        for selector in segment.selectors
        if isinstance(selector, Filter)
    ]
    while waiting:
        expression = waiting.pop()
        if isinstance(expression, FilterQuery):
            yield expression
        waiting += expression.children()
