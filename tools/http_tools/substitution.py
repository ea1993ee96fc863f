"""Values on their way into templates: what is left out, how values are text, and how much fits.
Pure."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from tools.errors import InvalidArguments
from tools.http_tools.templates import (
    ArgumentPlaceholder,
    SecretPlaceholder,
    Template,
    template_arguments,
)
from tools.secrets.masked import SecretValues

TEXT_LIMIT = 4 * 2**20
"""Characters that the values of one request may come to; a template can name an argument many
times."""
ABSENT = object()
Encode = Callable[[str, str], str]
"""From a value's text and its name to how it stands. Raises :class:`InvalidArguments` for what
cannot stand there."""


class TemplateValues:
    """The arguments and secrets of one call."""

    def __init__(self, arguments: Mapping[str, Any], secrets: SecretValues) -> None:
        self._arguments = arguments
        self._secrets = secrets
        self._room = TEXT_LIMIT

    def is_omitted(self, template: Template) -> bool:
        """Whether ``template`` names arguments and all of them are missing; null counts as
        missing."""
        names = list(template_arguments(template))
        return bool(names) and all(self._arguments.get(name) is None for name in names)

    def single_value(self, template: Template) -> Any:
        """The argument itself, where ``template`` is one place and nothing else; else, or where it
        is missing, ``ABSENT``."""
        match template:
            case (ArgumentPlaceholder(name),) if name in self._arguments:
                self._take(render_value(value := self._arguments[name]))
                return value
        return ABSENT

    def has(self, name: str) -> bool:
        return self._arguments.get(name) is not None

    def render(self, template: Template, encode: Encode) -> str:
        """``template`` with every value encoded; a missing argument is "".

        Raises :class:`tools.errors.InvalidArguments`, and :class:`tools.errors.ToolFailed` for a
        secret that is not there.
        """
        parts = []
        for piece in template:
            if isinstance(piece, str):
                parts.append(piece)
                continue
            is_secret = isinstance(piece, SecretPlaceholder)
            value = self._secrets[piece.name] if is_secret else self._arguments.get(piece.name)
            parts.append(encode(self._take(render_value(value)), piece.name))
        return "".join(parts)

    def _take(self, text: str) -> str:
        self._room -= len(text)
        if self._room < 0:
            raise InvalidArguments(["参数过大，请求放不下"])
        return text


def render_value(value: Any) -> str:
    """Texts stand bare, a list of plain values with commas between them, everything else as JSON;
    null is ""."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and not any(isinstance(item, dict | list) for item in value):
        return ",".join(map(render_value, value))
    return json.dumps(value, ensure_ascii=False)
