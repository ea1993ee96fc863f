"""The URL of a request: its host and the beginning of its path are the row's, whatever the
arguments are. Pure."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from yarl import URL

from tools.errors import InvalidArguments, ToolFailed
from tools.fetch.urls import MAX_LENGTH, parse_url
from tools.http_tools.substitution import Encode, TemplateValues, render_value
from tools.http_tools.templates import (
    Template,
    literal_text,
    parse_template,
    template_arguments,
)

_PARTS = re.compile(r"(https?://[^/?#\\{}]+)(/[^?#]*)?(?:\?([^#]*))?", re.IGNORECASE)
_STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SAFE = "/?:@!$&'()*+,;=~%"
_DECODINGS = 5
"""How often a value is decoded to find out what it means: some servers decode twice."""

Entries = tuple[tuple[str, Template], ...]
"""Names as they are sent, and templates of their values; an empty name is an entry without
``=``."""


@dataclass(frozen=True, slots=True)
class UrlTemplate:
    """A URL in parts, literal texts encoded. Made by :func:`url_template`."""

    origin: str
    segments: tuple[Template, ...]
    query: Entries

    def url(self, values: TemplateValues, more: Entries = ()) -> str:
        """The URL of one call, with the entries ``more`` behind its own.

        Raises :class:`InvalidArguments` for a value that is no part of a path, and
        :class:`tools.fetch.errors.RequestRefused` for a URL that is too long.
        """
        path = "/".join(_segment(segment, values) for segment in self.segments)
        query = "&".join(
            pair
            for name, template in (*self.query, *more)
            for pair in render_pairs(name, template, values, _query_value)
        )
        url = f"{self.origin}/{path}{'?' if query else ''}{query}"
        self._require_same_place(parse_url(url))
        return url

    def _require_same_place(self, url: URL) -> None:
        """What encoding already sees to, asked of the parser that the request is sent with."""
        prefix = ""
        for piece in (piece for segment in self.segments for piece in ("/", *segment)):
            if not isinstance(piece, str):
                break
            prefix += piece
        row = parse_url(f"{self.origin}{prefix}")
        is_same = (url.scheme, url.raw_host, url.port, url.raw_user) == (
            *(row.scheme, row.raw_host, row.port),
            None,
        )
        path = url.raw_path
        if not (
            is_same and path.startswith(row.raw_path) and path.count("/") == len(self.segments)
        ):
            raise ToolFailed("参数会使请求指向其他地址，请求未发送，请不要重试。")


def url_template(text: str) -> UrlTemplate | None:
    """The template that ``text`` is; None when it has a template before its path, or a fragment, or
    is no http URL."""
    parts = _PARTS.fullmatch(text.strip())
    if parts is None:
        return None
    segments = (parts[2] or "/").removeprefix("/").split("/")
    query = tuple(_entry(entry) for entry in (parts[3] or "").split("&") if entry)
    return UrlTemplate(
        parts[1], tuple(parse_template(segment, _kept) for segment in segments), query
    )


def parse_query_entries(table: Mapping[str, Any]) -> Entries:
    """The entries of a query that is written as a table, names and literal texts encoded."""
    return tuple(
        (percent_encode(name), template) for name, template in table_entries(table, percent_encode)
    )


def table_entries(
    table: Mapping[str, Any], encode: Callable[[str], str]
) -> Iterator[tuple[str, Template]]:
    """Each name with each of its templates; numbers, true and false stand for their texts."""
    for name, values in table.items():
        for value in values if isinstance(values, list) else [values]:
            yield (
                name,
                parse_template(value if isinstance(value, str) else render_value(value), encode),
            )


def render_pairs(
    name: str, template: Template, values: TemplateValues, encode: Encode
) -> Iterator[str]:
    """``name=value``, once for each item where the template is one list; nothing where it is left
    out."""
    if values.is_omitted(template):
        return
    many = values.single_value(template)
    if isinstance(many, list):
        yield from (
            f"{name}={encode(render_value(item), *template_arguments(template))}" for item in many
        )
    else:
        value = values.render(template, encode)
        yield f"{name}={value}" if name else value


def percent_encode(text: str) -> str:
    """``text`` with everything but unreserved signs percent-encoded (RFC 3986, 2.3)."""
    return quote(text, safe="")


def is_dot_segment(segment: str) -> bool:
    """Whether some server could read ``segment`` as a way out of its place: ``.``, ``..``, however
    encoded or hidden."""
    for _ in range(_DECODINGS):
        plain = unicodedata.normalize("NFKC", segment)
        if any(part.partition(";")[0].strip() in (".", "..") for part in re.split(r"[/\\]", plain)):
            return True
        segment, before = unquote(segment), segment
        if segment == before:
            return False
    return True  # so many layers are not legitimate


def _segment(segment: Template, values: TemplateValues) -> str:
    """One part of the path. Raises :class:`InvalidArguments` where a value is missing or would lead
    elsewhere."""
    names = list(template_arguments(segment))
    if missing := [name for name in names if not values.has(name)]:
        raise InvalidArguments([f"{name} 不能为空" for name in missing])
    text = values.render(segment, _path_value)
    if names and (not text or is_dot_segment(text)):
        raise InvalidArguments([f"{name} 不能作为网址路径的一部分" for name in names])
    return text


def _path_value(text: str, name: str) -> str:
    if _CONTROL.search(text):
        raise InvalidArguments([f"{name} 含有不能放进网址的控制字符"])
    return _query_value(text, name)


def _query_value(text: str, name: str) -> str:
    if len(text) > MAX_LENGTH:
        raise InvalidArguments([f"{name} 过长，网址放不下"])
    return percent_encode(text)


def _entry(entry: str) -> tuple[str, Template]:
    """One entry of the URL's own query, which may be encoded already."""
    name, equals, value = entry.partition("=")
    if not equals:
        return "", parse_template(entry, _kept)
    return literal_text(parse_template(name, _kept)), parse_template(value, _kept)


def _kept(text: str) -> str:
    """Literal text of a URL: what is encoded stays so, and what has to be is."""
    return quote(_STRAY_PERCENT.sub("%25", text), safe=_SAFE)
