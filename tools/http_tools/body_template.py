"""The body of a request, by its kind. Pure."""

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus

from tools.http_tools.substitution import ABSENT, TemplateValues
from tools.http_tools.templates import Template, parse_template
from tools.http_tools.url_template import Entries, render_pairs, table_entries


@dataclass(frozen=True, slots=True)
class NoBody:
    """The body of each kind has ``body(values)``: that of one call, None for none; it raises as
    ``TemplateValues.text`` does."""

    content_type: str = ""

    def body(self, values: TemplateValues) -> bytes | None:
        return None


@dataclass(frozen=True, slots=True)
class JsonBody:
    """JSON whose texts are templates (``tree`` holds them as such)."""

    tree: Any
    content_type: str = "application/json"

    def body(self, values: TemplateValues) -> bytes | None:
        if (value := _filled(self.tree, values)) is ABSENT:
            return None
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class FormBody:
    """Fields as browsers send them (WHATWG URL, 5)."""

    fields: Entries
    content_type: str = "application/x-www-form-urlencoded"

    def body(self, values: TemplateValues) -> bytes | None:
        return "&".join(
            pair
            for name, template in self.fields
            for pair in render_pairs(name, template, values, lambda text, _: quote_plus(text))
        ).encode()


@dataclass(frozen=True, slots=True)
class TextBody:
    """Text. In XML, values are escaped; anywhere else text is all that they can be."""

    template: Template
    is_xml: bool
    content_type: str = "text/plain; charset=utf-8"

    def body(self, values: TemplateValues) -> bytes | None:
        escape = html.escape if self.is_xml else str
        return values.render(self.template, lambda text, _: escape(text)).encode("utf-8", "replace")


BodyTemplate = NoBody | JsonBody | FormBody | TextBody


def body_template(kind: str, body: str, headers: Mapping[str, str]) -> BodyTemplate:
    """The template that a row writes. Raises ValueError where ``body`` is not of its ``kind``."""
    if kind == "json":
        return JsonBody(_tree(json.loads(body)))
    if kind == "form":
        return FormBody(
            tuple(
                (quote_plus(name), template)
                for name, template in table_entries(json.loads(body), quote_plus)
            )
        )
    if kind == "text":
        return TextBody(parse_template(body), "xml" in content_type(headers))
    return NoBody()


def content_type(headers: Mapping[str, Any]) -> str:
    """The content type in a row's headers, in lower case, or ""."""
    return next(
        (str(value).lower() for name, value in headers.items() if name.lower() == "content-type"),
        "",
    )


def _tree(value: Any) -> Any:
    """JSON in which each text is a template. Lists stay lists, so a tuple is always one."""
    match value:
        case dict():
            return {name: _tree(item) for name, item in value.items()}
        case list():
            return [_tree(item) for item in value]
        case str():
            return parse_template(value)
        case _:
            return value


def _filled(tree: Any, values: TemplateValues) -> Any:
    match tree:
        case dict():
            filled = {name: _filled(item, values) for name, item in tree.items()}
            return {name: item for name, item in filled.items() if item is not ABSENT}
        case list():
            return [item for part in tree if (item := _filled(part, values)) is not ABSENT]
        case tuple():
            if (value := values.single_value(tree)) is not ABSENT:
                return value  # also null: to clear something is not to leave it as it is
            if values.is_omitted(tree):
                return ABSENT
            return values.render(tree, lambda text, _: text)
        case _:
            return tree
