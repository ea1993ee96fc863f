"""Templates: texts in which ``{name}`` stands for an argument and ``{secret:NAME}`` for a secret,
and what is made of them: the URL and the body of a request. Pure.

``{{`` and ``}}`` are plain braces, as in mock values (:mod:`tools.text.placeholders`). The host of
the URL and the beginning of its path are the row's, whatever the arguments are.
"""

import html
import json
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from urllib.parse import quote, quote_plus, unquote

from django.utils.translation import gettext
from yarl import URL

from tools.contract import InvalidArguments, ToolFailed
from tools.fetch.request import MAX_LENGTH, parse_url
from tools.secrets.masked import SecretValues
from tools.text.placeholders import Placeholder, check_placeholders, split_placeholders

PARAMETER_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""Names of arguments that every model endpoint takes; ``:`` is not among their signs, so none is a
secret's."""
PREFIX = "secret:"


@dataclass(frozen=True, slots=True)
class ArgumentPlaceholder:
    """The place of an argument."""

    name: str


@dataclass(frozen=True, slots=True)
class SecretPlaceholder:
    """The place of a secret."""

    name: str


Template = tuple[str | ArgumentPlaceholder | SecretPlaceholder, ...]
"""Literal texts and placeholders, in order."""


def parse_template(text: str, encode: Callable[[str], str] = str) -> Template:
    """``text`` as a template, its literal parts encoded by ``encode``. Stray braces stay as they
    are written."""
    return tuple(
        encode(piece) if isinstance(piece, str) else _classified(piece)
        for piece in split_placeholders(text)
    )


def template_arguments(template: Template) -> Iterator[str]:
    """The names of the arguments in ``template``, in order, with repetitions."""
    return (piece.name for piece in template if isinstance(piece, ArgumentPlaceholder))


def template_secrets(template: Template) -> Iterator[str]:
    """The names of the secrets in ``template``."""
    return (piece.name for piece in template if isinstance(piece, SecretPlaceholder))


def has_placeholders(text: str) -> bool:
    """Whether anything stands in braces in ``text``."""
    return any(isinstance(piece, Placeholder) for piece in split_placeholders(text))


def literal_text(template: Template, filler: str = "") -> str:
    """The literal parts of ``template``, with ``filler`` for each value between them."""
    return "".join(piece if isinstance(piece, str) else filler for piece in template)


def check_template(
    text: str, arguments: Collection[str] | None, secrets: Collection[str] | None
) -> list[str]:
    """What keeps ``text`` from being a template over these names, a translated line each. None: any
    name may stand there."""

    def check(written: Placeholder) -> str:
        named = _classified(written)
        is_secret = isinstance(named, SecretPlaceholder)
        known = secrets if is_secret else arguments
        if known is None or named.name in known:
            return ""
        words = (
            gettext("“%(placeholder)s” names no secret.")
            if is_secret
            else gettext("“%(placeholder)s” names no argument.")
        )
        if near := get_close_matches(named.name[:64], known, 1):
            advice = gettext("Perhaps “%(name)s” is meant.") % {"name": near[0]}
        else:
            names = ", ".join(sorted(known)[:50]) or gettext("none")
            advice = gettext("Known: %(names)s.") % {"names": names}
        return f"{words % {'placeholder': written.written[:100]}} {advice}"

    return check_placeholders(text, check)


def _classified(placeholder: Placeholder) -> ArgumentPlaceholder | SecretPlaceholder:
    if placeholder.inside.startswith(PREFIX):
        return SecretPlaceholder(placeholder.inside.removeprefix(PREFIX))
    return ArgumentPlaceholder(placeholder.inside)


TEXT_LIMIT = 4 * 2**20
"""Characters that the values of one request may come to; a template can name an argument many
times."""
ABSENT = object()
Encode = Callable[[str, str], str]
"""From a value's text and its name to how it stands. Raises :class:`InvalidArguments` for what
cannot stand there."""


class TemplateValues:
    """The arguments and secrets of one call."""

    def __init__(self, arguments: Mapping[str, object], secrets: SecretValues) -> None:
        self._arguments = arguments
        self._secrets = secrets
        self._room = TEXT_LIMIT

    def is_omitted(self, template: Template) -> bool:
        """Whether ``template`` names arguments and all of them are missing; null counts as
        missing."""
        names = list(template_arguments(template))
        return bool(names) and all(self._arguments.get(name) is None for name in names)

    def single_value(self, template: Template) -> object:
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

        Raises :class:`tools.contract.InvalidArguments`, and :class:`tools.contract.ToolFailed` for
        a secret that is not there.
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


def render_value(value: object) -> str:
    """Texts stand bare, a list of plain values with commas between them, everything else as JSON;
    null is ""."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and not any(isinstance(item, dict | list) for item in value):
        return ",".join(map(render_value, value))
    return json.dumps(value, ensure_ascii=False)


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
        :class:`tools.fetch.request.RequestRefused` for a URL that is too long.
        """
        path = "/".join(_segment(segment, values) for segment in self.segments)
        query = "&".join(
            pair
            for name, template in (*self.query, *more)
            for pair in render_pairs(name, template, values, _query_value)
        )
        url = f"{self.origin}/{path}{'?' if query else ''}{query}"
        self._require_same_host(parse_url(url))
        return url

    def _require_same_host(self, url: URL) -> None:
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


def parse_query_entries(table: Mapping[str, object]) -> Entries:
    """The entries of a query that is written as a table, names and literal texts encoded."""
    return tuple(
        (percent_encode(name), template) for name, template in table_entries(table, percent_encode)
    )


def table_entries(
    table: Mapping[str, object], encode: Callable[[str], str]
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

    tree: object
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


def content_type(headers: Mapping[str, object]) -> str:
    """The content type in a row's headers, in lower case, or ""."""
    return next(
        (str(value).lower() for name, value in headers.items() if name.lower() == "content-type"),
        "",
    )


def _tree(value: object) -> object:
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


def _filled(tree: object, values: TemplateValues) -> object:
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
