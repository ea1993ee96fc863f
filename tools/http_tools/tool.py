"""An HTTP tool that is ready to be called: what it declares and sends, and how answers become
results. Pure except ``exchange``; large answers are for a thread.
"""

import base64
import hashlib
import html
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tools.contract import (
    InvalidArguments,
    ToolAnnotation,
    ToolContentItem,
    ToolExecutionResult,
    ToolSpec,
)
from tools.fetch.fetcher import Fetcher
from tools.fetch.request import RETRYABLE_STATUSES, FetchRequest, FetchResponse
from tools.http_tools.templates import (
    BodyTemplate,
    Encode,
    Entries,
    Template,
    TemplateValues,
    UrlTemplate,
    body_template,
    parse_query_entries,
    parse_template,
    percent_encode,
    url_template,
)
from tools.http_tools.validation import GRACE_SECONDS, PROVIDER, HttpToolSettings, secret_names
from tools.processes.threads import run_in_thread
from tools.registry.catalogue import failed_result
from tools.schemas.arguments import is_deeper, parse_strict_json
from tools.secrets.masked import SecretMask, SecretValues
from tools.text import encodings
from tools.text.encodings import claimed_encoding, guessed_encoding, without_mark

if TYPE_CHECKING:
    from tools.http_tools.jsonpath import JsonPathQuery

# The words of a page, without its tags. Pure, and linear in the length of the page, however it is
# written.

_TAG = re.compile(r"</?([A-Za-z][A-Za-z0-9]*)")
_UNSEEN = {
    kind: re.compile(f"</{kind}", re.IGNORECASE | re.ASCII)
    for kind in ("script", "style", "noscript", "template", "svg")
}
_INLINE = {
    "a",
    "abbr",
    "b",
    "code",
    "em",
    "font",
    "i",
    "mark",
    "q",
    "s",
    "small",
    "span",
    "strong",
    "sub",
    "sup",
    "u",
}
_SPACES = re.compile(r"[^\S\n]+")
_LINES = re.compile(r"\s*\n\s*")


PAGE_CHARS = 512 * 1024
"""Characters of a page that are read: many times the text that the model gets of them."""


def extract_text(page: str) -> str:
    """What a reader of ``page`` sees, more or less: one line for each block, nothing of scripts."""
    words: list[str] = []
    page = page[:PAGE_CHARS]
    at = 0
    while (tag := page.find("<", at)) >= 0:
        words.append(page[at:tag])
        name = _TAG.match(page, tag)
        if name is None and not page.startswith(("<!", "<?"), tag):
            words.append("<")
            at = tag + 1
            continue
        kind = name[1].lower() if name else ""
        words.append("" if kind in _INLINE else "\n")
        at = _end(page, tag, kind)
    words.append(page[at:])
    return _LINES.sub("\n", _SPACES.sub(" ", html.unescape("".join(words)))).strip()


def _end(page: str, tag: int, kind: str) -> int:
    """Where the text continues after the tag, and after what it hides."""
    if page.startswith("<!--", tag):
        return _after(page, "-->", tag)
    end = _after(page, ">", tag)
    if kind in _UNSEEN and page[tag + 1] != "/" and page[end - 2 : end] != "/>":
        closing = _UNSEEN[kind].search(page, end)
        return _after(page, ">", closing.end()) if closing else len(page)
    return end


def _after(text: str, mark: str, start: int) -> int:
    index = text.find(mark, start)
    return len(text) if index < 0 else index + len(mark)


EXCERPT = 1_000
"""Characters of a failure's answer that the model gets."""
PICKED_LIMIT = 2**20
"""Characters that a list of picked values may come to."""
QUICK_BYTES = 16 * 1024
"""An answer of at most so many bytes is read on the event loop."""
MAX_DEPTH = 64
"""The most levels of JSON that are read; later code processes the result recursively."""
NOTHING = "请求成功，服务器没有返回内容。"
NO_MATCH = "请求成功，但返回的数据中没有要取的内容。"
NOT_JSON = object()
_TEXT_WORDS = (
    *("json", "xml", "javascript", "ecmascript", "yaml", "toml", "graphql", "csv"),
    "x-www-form-urlencoded",
)
_SIGNS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
)
_MIME = re.compile(r"[a-z0-9][a-z0-9.+-]{0,60}/[a-z0-9][a-z0-9.+-]{0,60}")


@dataclass(frozen=True, slots=True)
class AnswerTemplate:
    """How a tool's answers become results. Made by :func:`answer_template`."""

    tool_name: str
    picker: "JsonPathQuery | None" = None

    def is_quick(self, fetched: FetchResponse) -> bool:
        """Whether :meth:`result` may be asked for on the event loop."""
        is_small = len(fetched.body) <= QUICK_BYTES
        return is_small and encodings.is_quick() and (self.picker is None or self.picker.is_single)

    def result(self, fetched: FetchResponse, mask: SecretMask) -> ToolExecutionResult:
        """What the model gets of ``fetched``, with no secret in it. Never raises."""
        if not fetched.is_success:
            is_retryable = fetched.status in RETRYABLE_STATUSES or fetched.status >= 500
            reason = (
                f"接口返回了错误（HTTP {fetched.status}）{'，可以稍后再试' if is_retryable else ''}"
            )
            return self._failed(reason, fetched, mask, http_status=fetched.status)
        if not fetched.body.strip():
            return self._success(NOTHING)
        if self.picker is not None:
            return self._picked(self.picker, fetched, mask)
        return self._whole(fetched, mask)

    def _picked(
        self, picker: "JsonPathQuery", fetched: FetchResponse, mask: SecretMask
    ) -> ToolExecutionResult:
        from tools.http_tools.jsonpath import TooManyNodesError

        value = parse_masked_json(decode_text(fetched.body, fetched.content_type), mask)
        if value is NOT_JSON:
            return self._failed("接口返回的不是 JSON，取不出所需内容", fetched, mask)
        try:
            found = picker.apply(value)
            texts = _texts(found, math.inf if picker.is_single else PICKED_LIMIT)
        except TooManyNodesError:
            texts = None
        if texts is None:
            return failed_result(self.tool_name, "接口返回的数据过多或嵌套过深，取不出所需内容。")
        if not found:
            return self._success(NO_MATCH)
        if not picker.is_single:
            return self._success(f"[{', '.join(texts)}]", found)
        return self._success(found[0] if isinstance(found[0], str) else texts[0], found[0])

    def _whole(self, fetched: FetchResponse, mask: SecretMask) -> ToolExecutionResult:
        if not is_text(fetched):
            return self._picture_or_note(fetched, mask)
        text = decode_text(fetched.body, fetched.content_type)
        may_be_json = "json" in _mime(fetched) or text.lstrip("\ufeff \t\r\n")[:1] in ("{", "[")
        value = parse_masked_json(text, mask) if may_be_json else NOT_JSON
        if value is NOT_JSON:
            return self._success(_words(text, fetched, mask) or NOTHING)
        return self._success(json.dumps(value, ensure_ascii=False) if mask else text, value)

    def _picture_or_note(self, fetched: FetchResponse, mask: SecretMask) -> ToolExecutionResult:
        body, text = fetched.body, ""
        if mime := picture_mime(body):
            if mask.hides(body):
                return failed_result(self.tool_name, "接口返回的图片中含有密钥，已丢弃。")
            item = ToolContentItem("image", data=base64.b64encode(body).decode(), mime_type=mime)
        else:
            mime = _mime(fetched) or "application/octet-stream"
            kind = "audio" if mime.startswith("audio/") else "binary"
            item = ToolContentItem(kind, mime_type=mime, metadata={"bytes": len(body)})
            text = f"接口返回了 {mime} 类型的内容，共 {len(body)} 字节，无法用文字表示。"
        return ToolExecutionResult(self.tool_name, success=True, content=text, content_items=[item])

    def _failed(
        self, reason: str, fetched: FetchResponse, mask: SecretMask, **details: object
    ) -> ToolExecutionResult:
        excerpt = mask_answer_text(fetched, mask, EXCERPT)
        return failed_result(
            self.tool_name, f"{reason}{'：' if excerpt else '。'}{excerpt}", **details
        )

    def _success(self, text: str, value: object = None) -> ToolExecutionResult:
        return ToolExecutionResult(
            self.tool_name, success=True, content=text, structured_content=value
        )


def answer_template(settings: HttpToolSettings) -> AnswerTemplate:
    """How ``settings`` turn answers into results. Raises ValueError for a JSONPath that cannot be
    used."""
    if settings.answer_kind != "jsonpath":
        return AnswerTemplate(settings.name)
    from tools.http_tools.jsonpath import compile_jsonpath

    return AnswerTemplate(settings.name, compile_jsonpath(settings.answer_path))


def mask_answer_text(fetched: FetchResponse, mask: SecretMask, limit: int) -> str:
    """The beginning of an answer in words, without secrets; "" of what has none."""
    if not is_text(fetched):
        return ""
    text = _words(decode_text(fetched.body, fetched.content_type), fetched, mask)
    return text if len(text) <= limit else f"{text[:limit]}…"


def mask_headers(headers: Mapping[str, str], mask: SecretMask) -> dict[str, str]:
    """Headers of a request or an answer without secrets."""
    return {mask.text(name): mask.text(value) for name, value in headers.items()}


def parse_masked_json(text: str, mask: SecretMask) -> object:
    """The JSON that ``text`` is, without secrets; ``NOT_JSON`` for what is none, also for NaN and
    what is nested too deep."""
    try:
        value = parse_strict_json(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return NOT_JSON
    return NOT_JSON if is_deeper(value, MAX_DEPTH) else mask.json(value)


def is_text(fetched: FetchResponse) -> bool:
    """Whether ``fetched`` is probably text: by its content type, else by its bytes."""
    mime = _mime(fetched)
    if mime.startswith("text/") or any(word in mime for word in _TEXT_WORDS):
        return True
    if mime not in ("", "application/octet-stream") or picture_mime(fetched.body):
        return False
    try:
        return "\0" not in fetched.body.decode()
    except UnicodeDecodeError:
        return False


def picture_mime(body: bytes) -> str:
    """What kind of picture ``body`` is, of those that models take; "" for anything else, whatever
    it claims."""
    if body[:4] == b"RIFF" and body[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for sign, mime in _SIGNS if body.startswith(sign)), "")


def _mime(fetched: FetchResponse) -> str:
    mime = fetched.content_type.partition(";")[0].strip().lower()
    return mime if _MIME.fullmatch(mime) else ""


def _words(text: str, fetched: FetchResponse, mask: SecretMask) -> str:
    return mask.text(extract_text(text) if "html" in _mime(fetched) else text.strip())


def _texts(values: list[object], limit: float) -> list[str] | None:
    """``values`` as JSON; None where that is more than ``limit`` characters."""
    texts = []
    for value in values:
        texts.append(json.dumps(value, ensure_ascii=False))
        limit -= len(texts[-1])
        if limit < 0:
            return None
    return texts


# Bytes of an answer as text, whatever they claim to be. Pure.

_IN_PAGE = 2_048
"""Bytes of a page that are searched for its charset (the HTML standard has 1,024)."""
_MEANT = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "ascii": "utf-8",
    "utf_7": "utf-8",
    "latin_1": "cp1252",
}
"""What pages mean by what they claim (WHATWG Encoding, 4.2)."""


def decode_text(body: bytes, content_type: str) -> str:
    """``body`` as text: by its mark, by what it claims, or as whatever fits; what fits nothing is
    ``�``. Never raises."""
    unmarked, mark = without_mark(body)
    if mark:
        return unmarked.decode(mark, "replace")
    for encoding in _encodings(body, content_type):
        try:
            return body.decode(encoding)
        except (UnicodeError, LookupError):  # it also knows names of what is no charset
            continue
    return body.decode("utf-8", "replace")


def _encodings(body: bytes, content_type: str) -> Iterator[str]:
    """What ``body`` may be in, the likeliest first."""
    page = body if "html" in content_type else b""
    for claimed in (
        claimed_encoding(content_type.encode()),
        claimed_encoding(page[:_IN_PAGE]),
    ):
        if claimed:
            yield _MEANT.get(claimed, claimed)
    yield "utf-8"
    if guessed := guessed_encoding(body):
        yield guessed


# The whole request of a tool, from its row and the arguments of a call. Pure.

HEADER_LIMIT = 8_000
"""Characters of a header's value; most servers take no more."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class RequestTemplate:
    """A row, read once. Made by :func:`request_template`."""

    method: str
    url: UrlTemplate
    query: Entries
    headers: tuple[tuple[str, Template], ...]
    body: BodyTemplate
    seconds: float
    max_bytes: int
    secrets: frozenset[str]
    """The names of all secrets that the row names."""

    def request(self, arguments: Mapping[str, object], secrets: SecretValues) -> FetchRequest:
        """The request of one call; ``arguments`` are checked already.

        Raises :class:`tools.contract.InvalidArguments` for a value that cannot stand where it
        is wanted, :class:`tools.contract.ToolFailed` for a secret that is not to be had or may not
        be sent there (:class:`tools.secrets.masked.SecretRefused`), and
        :class:`tools.fetch.request.RequestRefused` for a URL that is too long.
        """
        values = TemplateValues(arguments, secrets)
        body = self.body.body(values)
        url = self.url.url(values, self.query)
        secrets.check_destination(self.secrets, url)
        headers = {
            name: values.render(template, _header_value(name))
            for name, template in self.headers
            if not values.is_omitted(template)
        }
        if (
            body is not None
            and self.body.content_type
            and "content-type" not in map(str.lower, headers)
        ):
            headers["Content-Type"] = self.body.content_type
        return FetchRequest(
            url=url,
            method=self.method,
            headers=headers,
            body=body,
            max_bytes=self.max_bytes,
            seconds=self.seconds,
            is_private=bool(self.secrets),
        )


def request_template(settings: HttpToolSettings) -> RequestTemplate:
    """What ``settings`` ask for. Raises ValueError where they have faults (see
    :mod:`tools.http_tools.validation`)."""
    url = url_template(settings.url)
    if url is None:
        raise ValueError("the URL cannot be read")
    return RequestTemplate(
        method=settings.method,
        url=url,
        query=parse_query_entries(settings.query),
        headers=tuple((name, parse_template(value)) for name, value in settings.headers.items()),
        body=body_template(settings.body_kind, settings.body, settings.headers),
        seconds=settings.timeout_seconds,
        max_bytes=settings.max_kib * 1024,
        secrets=secret_names(settings),
    )


def _header_value(header: str) -> Encode:
    """How values stand in ``header``. Those of cookies are encoded: a ``;`` would begin another
    cookie."""

    def encoded(text: str, name: str) -> str:
        if _CONTROL.search(text) or len(text) > HEADER_LIMIT:
            raise InvalidArguments([f"{name} 含有不能放进请求头的控制字符，或者过长"])
        return percent_encode(text) if header.lower() == "cookie" else text

    return encoded


NO_PARAMETERS = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True, eq=False)
class ReadyHttpTool:
    """A row without faults, read once. Made by :func:`build_ready_tool`."""

    settings: HttpToolSettings
    spec: ToolSpec
    request: RequestTemplate
    answer: AnswerTemplate

    async def exchange(
        self, request: FetchRequest, mask: SecretMask, fetcher: Fetcher
    ) -> tuple[FetchResponse, ToolExecutionResult]:
        """Make ``request`` once: what came, and what the model gets of it. Raises
        :class:`tools.fetch.request.FetchError`."""
        fetched = await fetcher.fetch(request)
        if self.answer.is_quick(fetched):
            return fetched, self.answer.result(fetched, mask)
        return fetched, await run_in_thread(lambda: self.answer.result(fetched, mask))


def build_ready_tool(settings: HttpToolSettings) -> ReadyHttpTool:
    """What ``settings`` describe. Raises ValueError where they have faults (see
    :mod:`tools.http_tools.validation`)."""
    method = settings.method
    spec = ToolSpec(
        name=settings.name,
        description=settings.description,
        parameters_schema=settings.parameters_schema or NO_PARAMETERS,
        provider_name=PROVIDER,
        provider_type=PROVIDER,
        annotation=ToolAnnotation(
            read_only=method == "GET",
            destructive=method == "DELETE",
            idempotent=method in ("GET", "PUT", "DELETE"),
            open_world=True,
        ),
        metadata={"timeout_seconds": settings.timeout_seconds + GRACE_SECONDS},
    )
    return ReadyHttpTool(settings, spec, request_template(settings), answer_template(settings))


def request_digest(request: FetchRequest) -> bytes:
    """A key that two requests share only when they are equal. It does not reveal the secrets in
    them."""
    text = json.dumps(
        [request.method, request.url, sorted(request.headers.items()), request.body is None]
    )
    return hashlib.sha256(text.encode() + b"\0" + (request.body or b"")).digest()
