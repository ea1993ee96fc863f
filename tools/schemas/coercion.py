"""Readings of a model's arguments that lose nothing: ``"10"`` where an integer is wanted is 10.

Models write ids as numbers, numbers as text and lists as JSON inside a string. Each is
read as the schema wants it; what has no such reading stays, for the validator to refuse.
Pure: a copy is returned, and the work is bounded by the size of the value.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

from tools.errors import InvalidArguments

MAX_DEPTH = 32
MAX_BYTES = 2**20
MAX_VALUES = 10_000
"""So many values take about a tenth of a second to check."""
TOO_DEEP = f"参数嵌套过深（最多 {MAX_DEPTH} 层）"
TOO_LARGE = f"参数过大（最多 {MAX_BYTES // 2**20} MiB）"
TOO_MANY = f"参数过多（最多 {MAX_VALUES} 个值）"


def check_text_size(text: str) -> None:
    """Raise :class:`InvalidArguments` for more than ``MAX_BYTES`` of UTF-8."""
    if len(text) * 4 > MAX_BYTES and len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise InvalidArguments([TOO_LARGE])


def check_size(value: Any) -> None:
    """Raise :class:`InvalidArguments` for more than ``MAX_DEPTH`` lists and objects in each other,
    or ``MAX_VALUES`` values."""
    count = 1
    for depth, level in enumerate(nested_levels(value), 1):
        count += len(level)
        if depth > MAX_DEPTH:
            raise InvalidArguments([TOO_DEEP])
        if count > MAX_VALUES:
            raise InvalidArguments([TOO_MANY])


def is_deeper(value: Any, limit: int) -> bool:
    """Whether there are more than ``limit`` lists and objects in each other."""
    return any(depth > limit for depth, _ in enumerate(nested_levels(value), 1))


def nested_levels(value: Any) -> Iterator[list[Any]]:
    """What ``value`` holds, then what that holds, and so on: one level at a time."""
    level = [value]
    while containers := [item for item in level if isinstance(item, dict | list)]:
        level = [
            item
            for container in containers
            for item in (container.values() if isinstance(container, dict) else container)
        ]
        yield level


def walk_values(value: Any) -> Iterator[Any]:
    """``value`` and everything in it, at any depth."""
    waiting = [value]
    while waiting:
        yield (item := waiting.pop())
        if isinstance(item, dict | list):
            waiting += item.values() if isinstance(item, dict) else item


_INTEGER = re.compile(r"[+-]?[0-9]{1,30}")
_NUMBER = re.compile(r"[+-]?[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?")
_BOOLEANS = {"true": True, "false": False}
_KINDS: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


def coerce_value(schema: Any, value: Any, root: Mapping[str, Any]) -> Any:
    """``value`` as ``schema`` wants it. ``root`` is the document that ``$ref`` points into."""
    schema = resolve_ref(schema, root)
    if not isinstance(schema, Mapping):
        return value
    value = _as_kind(_kinds(schema), value)
    for part in schema.get("allOf", ()):
        value = coerce_value(part, value, root)
    for branches in (schema.get("anyOf"), schema.get("oneOf")):
        if branches:
            value = _as_branch([resolve_ref(branch, root) for branch in branches], value, root)
    if isinstance(value, dict):
        return _object(schema, value, root)
    if isinstance(value, list):
        first = schema.get("prefixItems", ())
        return [
            coerce_value(first[place] if place < len(first) else schema.get("items"), item, root)
            for place, item in enumerate(value)
        ]
    return value


def resolve_ref(schema: Any, root: Mapping[str, Any]) -> Any:
    """``schema``, or what its local ``$ref`` points at; None where it points at nothing."""
    for _ in range(16):  # a chain of references that is longer goes in a circle
        reference = schema.get("$ref") if isinstance(schema, Mapping) else None
        if not isinstance(reference, str) or not reference.startswith("#"):
            return schema
        try:
            schema = resolve_pointer(reference, root)
        except LookupError:
            return None
    return None


def resolve_pointer(reference: str, root: Any) -> Any:
    """What stands in ``root`` where ``reference``, ``#/…``, points: as validators find it
    (RFC 6901, 6). Raises LookupError where nothing does."""
    if reference != "#" and not reference.startswith("#/"):
        raise LookupError(reference)
    for step in unquote(reference).split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(root, Mapping):
            root = root[name]
        elif isinstance(root, list) and name.isdecimal() and len(name) < 9:
            root = root[int(name)]
        else:
            raise LookupError(reference)
    return root


def _object(
    schema: Mapping[str, Any], value: dict[str, Any], root: Mapping[str, Any]
) -> dict[str, Any]:
    properties, required = schema.get("properties", {}), schema.get("required", ())
    result = {}
    for key, item in value.items():
        wanted = resolve_ref(properties.get(key, schema.get("additionalProperties")), root)
        # "Not given" is what a model means by null where null is no value.
        if (
            item is None
            and key in properties
            and key not in required
            and not _takes_null(wanted, root)
        ):
            continue
        result[key] = coerce_value(wanted, item, root)
    return result


def _takes_null(schema: Any, root: Mapping[str, Any]) -> bool:
    if not isinstance(schema, Mapping):
        return True
    branches = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if branches:
        return any(_takes_null(resolve_ref(branch, root), root) for branch in branches)
    kinds = _kinds(schema)
    return ("null" in kinds) if kinds else None in schema.get("enum", (None,))


def _as_branch(branches: list[Any], value: Any, root: Mapping[str, Any]) -> Any:
    """``value`` by the one branch that can be meant; as it is where several can."""
    branches = [branch for branch in branches if isinstance(branch, Mapping)]
    fitting = [branch for branch in branches if _may_be(branch, value)]
    if len(fitting) == 1:
        return coerce_value(fitting[0], value, root)
    if fitting:
        return value
    read = _as_kind([kind for branch in branches for kind in _kinds(branch)], value)
    return value if read is value else _as_branch(branches, read, root)


def _may_be(branch: Mapping[str, Any], value: Any) -> bool:
    kinds = _kinds(branch)
    if kinds and not any(_is_kind(kind, value) for kind in kinds):
        return False
    if not isinstance(value, dict):
        return True
    fixed = {
        key: sub["const"]
        for key, sub in branch.get("properties", {}).items()
        if isinstance(sub, Mapping) and "const" in sub
    }
    return all(value.get(key) == wanted for key, wanted in fixed.items())


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    kind = schema.get("type", [])
    return [kind] if isinstance(kind, str) else list(kind)


def _is_kind(kind: str, value: Any) -> bool:
    return kind in _KINDS and isinstance(value, _KINDS[kind])


def _as_kind(kinds: Iterable[str], value: Any) -> Any:
    kinds = list(kinds)
    if any(_is_kind(kind, value) for kind in kinds):
        return value
    for kind in kinds:
        try:
            return _READERS[kind](value)
        except (KeyError, ValueError, TypeError, RecursionError):
            continue
    return value


def _integer(value: Any) -> int:
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise ValueError(value)


def _number(value: Any) -> int | float:
    if not isinstance(value, str) or not _NUMBER.fullmatch(value.strip()):
        raise ValueError(value)
    return int(value) if _INTEGER.fullmatch(value.strip()) else float(value)


def _boolean(value: Any) -> bool:
    if not isinstance(value, str):
        raise TypeError(value)
    return _BOOLEANS[value.strip().lower()]


def _string(value: Any) -> str:
    """A number in full: ids must not become 1.2e+18."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(value)
    if isinstance(value, int) or value.is_integer():
        return str(int(value))
    if not math.isfinite(value):
        raise ValueError(value)
    return format(Decimal(repr(value)), "f")


def _json(wanted: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        decoded = json.loads(value)
        check_size(decoded)
        if not isinstance(decoded, wanted):
            raise TypeError(value)
        return decoded

    return read


_READERS: dict[str, Callable[[Any], Any]] = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "string": _string,
    "array": _json(list),
    "object": _json(dict),
}
