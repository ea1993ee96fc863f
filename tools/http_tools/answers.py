"""From what a server sent back to the result of a call. Pure; large answers are for a thread."""

import base64
import html
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from charset_normalizer.utils import any_specified_encoding

from tools.contract import ToolContentItem, ToolExecutionResult
from tools.fetch.errors import RETRYABLE_STATUSES
from tools.fetch.request import FetchResponse
from tools.http_tools.jsonpath import JsonPathQuery, TooManyNodesError, compile_jsonpath
from tools.http_tools.settings import HttpToolSettings
from tools.registry.outcomes import failed_result
from tools.schemas.arguments import parse_strict_json
from tools.schemas.coercion import is_deeper
from tools.secrets.masked import SecretMask
from tools.text.encodings import guessed_encoding, without_mark

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
    place = text.find(mark, start)
    return len(text) if place < 0 else place + len(mark)


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
    picker: JsonPathQuery | None = None

    def is_quick(self, fetched: FetchResponse) -> bool:
        """Whether :meth:`result` may be asked for on the event loop."""
        return len(fetched.body) <= QUICK_BYTES and (self.picker is None or self.picker.is_single)

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
        self, picker: JsonPathQuery, fetched: FetchResponse, mask: SecretMask
    ) -> ToolExecutionResult:
        value = parse_masked_json(decode_text(fetched.body, fetched.content_type), mask)
        if value is NOT_JSON:
            return self._failed("接口返回的不是 JSON，取不出所需内容", fetched, mask)
        try:
            found = picker.apply(value)
            texts = _texts(found, math.inf if picker.is_single else PICKED_LIMIT)
        except TooManyNodesError:
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
        self, reason: str, fetched: FetchResponse, mask: SecretMask, **details: Any
    ) -> ToolExecutionResult:
        excerpt = mask_answer_text(fetched, mask, EXCERPT)
        return failed_result(
            self.tool_name, f"{reason}{'：' if excerpt else '。'}{excerpt}", **details
        )

    def _success(self, text: str, value: Any = None) -> ToolExecutionResult:
        return ToolExecutionResult(
            self.tool_name, success=True, content=text, structured_content=value
        )


def answer_template(settings: HttpToolSettings) -> AnswerTemplate:
    """How ``settings`` turn answers into results. Raises ValueError for a JSONPath that cannot be
    used."""
    wanted = compile_jsonpath(settings.answer_path) if settings.answer_kind == "jsonpath" else None
    return AnswerTemplate(settings.name, wanted)


def mask_answer_text(fetched: FetchResponse, mask: SecretMask, limit: int) -> str:
    """The beginning of an answer in words, without secrets; "" of what has none."""
    if not is_text(fetched):
        return ""
    text = _words(decode_text(fetched.body, fetched.content_type), fetched, mask)
    return text if len(text) <= limit else f"{text[:limit]}…"


def mask_headers(headers: Mapping[str, str], mask: SecretMask) -> dict[str, str]:
    """Headers of a request or an answer without secrets."""
    return {mask.text(name): mask.text(value) for name, value in headers.items()}


def parse_masked_json(text: str, mask: SecretMask) -> Any:
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


def _texts(values: list[Any], limit: float) -> list[str]:
    texts = []
    for value in values:
        texts.append(json.dumps(value, ensure_ascii=False))
        limit -= len(texts[-1])
        if limit < 0:
            raise TooManyNodesError("the picked values are too long")
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
        any_specified_encoding(content_type.encode()),
        any_specified_encoding(page, _IN_PAGE),
    ):
        if claimed:
            yield _MEANT.get(claimed, claimed)
    yield "utf-8"
    if guessed := guessed_encoding(body):
        yield guessed
