"""Every template of a row, wherever it stands, and however broken the row is. Pure."""

import json
from collections.abc import Iterator
from typing import Any, NoReturn

from tools.http_tools.settings import HttpToolSettings


def row_templates(settings: HttpToolSettings) -> Iterator[tuple[str, str]]:
    """The field and the text of each template; nothing of a field that cannot be read."""
    yield "url", settings.url
    for field in ("query", "headers"):
        yield from ((field, text) for text in _leaves(getattr(settings, field)))
    if settings.body_kind == "text":
        yield "body", settings.body
    elif settings.body_kind in ("json", "form"):
        yield from (("body", text) for text in _leaves(parse_json_or_none(settings.body)))


def parse_json_or_none(text: str) -> Any:
    """The JSON that ``text`` is; None where it is none."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _leaves(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        match waiting.pop():
            case dict() as table:
                waiting += table.values()
            case list() as items:
                waiting += items
            case str() as text:
                yield text
