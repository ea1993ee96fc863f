"""A validator's findings as lines a model can act on: ``messages[0].text 不能为空``."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from jsonschema.exceptions import ValidationError

from tools.schemas.patterns import search_pattern

MAX_LINES = 20
MAX_SHOWN = 100
"""Characters of a value or name that a line repeats."""
EMPTY = "不能为空"
UNKNOWN = "不是已知参数"
_KIND_WORDS = {
    "string": "字符串",
    "integer": "整数",
    "number": "数字",
    "boolean": "布尔值",
    "array": "数组",
    "object": "对象",
    "null": "null",
}


def limit_lines(lines: Iterable[str]) -> list[str]:
    """``lines`` without repetitions, cut after ``MAX_LINES`` with the number of the rest."""
    unique = list(dict.fromkeys(lines))
    rest = len(unique) - MAX_LINES
    return unique if rest <= 0 else [*unique[:MAX_LINES], f"……还有 {rest} 处"]


def format_path(path: Iterable[str | int]) -> str:
    """``("messages", 0, "text")`` as ``messages[0].text``; the arguments as a whole are
    ``参数``."""
    words = "".join(f"[{step}]" if isinstance(step, int) else f".{_shown(step)}" for step in path)
    return words.removeprefix(".") or "参数"


def validation_messages(error: ValidationError, path: Sequence[str | int] = ()) -> Iterator[str]:
    """The lines of one finding; ``path`` is where the value it was found in stands."""
    here = [*path, *error.relative_path]
    keyword = str(error.validator)
    if error.instance is None and keyword in _EMPTY_WHEN_NULL:
        yield f"{format_path(here)} {EMPTY}"
    elif keyword in ("anyOf", "oneOf") and error.context:
        yield from _branch_lines(error, here)
    elif keyword in _MISSING:
        for name in _MISSING[keyword](error.validator_value, error.instance):
            yield f"{format_path([*here, name])} {EMPTY}"
    elif keyword == "additionalProperties":
        for name in _unknown(error):
            yield f"{format_path([*here, name])} {UNKNOWN}"
    elif keyword in _EMPTY_WHEN_BLANK and (
        not error.instance.strip()
        if isinstance(error.instance, str)
        else error.instance in ([], {})
    ):
        yield f"{format_path(here)} {EMPTY}"
    elif keyword in _WORDS:
        yield f"{format_path(here)} {_WORDS[keyword](error.validator_value, error.instance)}"
    else:
        yield f"{format_path(here)} 不符合要求: {_shown(error.message)}"


_EMPTY_WHEN_NULL = frozenset({"type", "enum", "anyOf", "oneOf", "pattern", "minLength"})
_EMPTY_WHEN_BLANK = frozenset({"minLength", "minItems", "minProperties", "pattern"})
_WORDS: dict[str, Callable[[object, object], str]] = {
    "type": lambda wanted, _: f"应为{_kind_words(wanted)}",
    "enum": lambda _, value: f"不支持: {_shown(value)}",
    "const": lambda wanted, _: f"应为 {_shown(wanted)}",
    "minLength": lambda wanted, _: f"至少 {wanted} 个字符",
    "maxLength": lambda wanted, _: f"最多 {wanted} 个字符",
    "pattern": lambda wanted, _: f"格式不正确，应匹配 {_shown(wanted)}",
    "minimum": lambda wanted, _: f"不能小于 {wanted}",
    "maximum": lambda wanted, _: f"不能大于 {wanted}",
    "exclusiveMinimum": lambda wanted, _: f"应大于 {wanted}",
    "exclusiveMaximum": lambda wanted, _: f"应小于 {wanted}",
    "multipleOf": lambda wanted, _: f"应为 {wanted} 的倍数",
    "minItems": lambda wanted, _: f"至少 {wanted} 项",
    "maxItems": lambda wanted, _: f"最多 {wanted} 项",
    "uniqueItems": lambda *_: "不能有重复项",
    "anyOf": lambda *_: "不符合要求",
    "oneOf": lambda *_: "不符合要求",
    "not": lambda *_: "不符合要求",
}


def _absent(names: Iterable[str], instance: Mapping[str, object]) -> list[str]:
    return [name for name in names if name not in instance]


_MISSING: dict[str, Callable[[Any, Any], list[str]]] = {
    "required": _absent,
    "dependentRequired": lambda wanted, instance: [
        name
        for given, names in wanted.items()
        if given in instance
        for name in _absent(names, instance)
    ],
}


def _unknown(error: ValidationError) -> list[str]:
    schema = error.schema if isinstance(error.schema, Mapping) else {}
    instance = error.instance if isinstance(error.instance, Mapping) else {}
    patterns = schema.get("patternProperties", {})
    return [
        name
        for name in instance
        if name not in schema.get("properties", {})
        and not any(search_pattern(pattern, name) for pattern in patterns)
    ]


def _branch_lines(error: ValidationError, here: list[str | int]) -> Iterator[str]:
    """The faults of the alternative that was most likely meant, or the kinds that are possible."""
    branches: dict[object, list[ValidationError]] = {}
    for finding in error.context or ():
        branches.setdefault(next(iter(finding.schema_path), None), []).append(finding)
    meant = [
        findings
        for findings in branches.values()
        if not any(_excludes(finding) for finding in findings)
    ]
    if meant:
        for finding in min(meant, key=len):
            yield from validation_messages(finding, here)
        return
    findings = [finding for branch in branches.values() for finding in branch]
    values = [finding for finding in findings if finding.validator in ("const", "enum")]
    kinds = [finding.validator_value for finding in findings if finding.validator == "type"]
    if values:
        at, shown = [*here, *values[0].relative_path], _shown(values[0].instance)
        yield f"{format_path(at)} 不支持: {shown}"
    else:
        words = f"应为{_kind_words(kinds)}" if kinds else "不符合要求"
        yield f"{format_path(here)} {words}"


def _excludes(finding: ValidationError) -> bool:
    """Whether the value is of another kind than this alternative, or names another one by its fixed
    field."""
    depth = len(finding.relative_path)
    return (finding.validator == "type" and depth == 0) or (
        finding.validator in ("const", "enum") and depth <= 1
    )


def _kind_words(wanted: Any) -> str:
    kinds = (
        [wanted]
        if isinstance(wanted, str)
        else [kind for item in wanted for kind in ([item] if isinstance(item, str) else item)]
    )
    return "或".join(dict.fromkeys(_KIND_WORDS.get(kind, kind) for kind in kinds))


def _shown(value: object) -> str:
    """``value`` on one line, cut."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    line = " ".join(text.split())
    return line if len(line) <= MAX_SHOWN else f"{line[:MAX_SHOWN]}…"
