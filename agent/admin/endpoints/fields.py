"""Fields of a model endpoint as people fill them in: its address, its keys, its headers."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from agent.llm.client.api_keys import is_sendable
from tools.mcp.admin.lines import LinesField, SecretLinesField
from tools.secrets.masked import MASK

MOST_KEYS = 100
MOST_HEADERS = 50
LONGEST_KEY = 4_000
OLLAMA_PORT = 11434
_ENDINGS = ("/chat/completions", "/completions", "/models", "/embeddings", "/audio/transcriptions")
_QUOTES = "\"'`“”‘’„«»"
_BEGIN = re.compile(r"[A-Za-z]{2,8}-")
_STORED = re.compile(rf"{MASK}\s*(\d+)?")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_OWN_HEADERS = frozenset(
    {"host", "content-length", "content-type", "transfer-encoding", "connection", "expect"}
)
_OTHER_PROTOCOLS = (
    (re.compile(r"/messages\Z|/anthropic(/|\Z)"), "Anthropic"),
    (re.compile(r":(streamG|g)enerateContent\Z"), "Gemini"),
    (re.compile(r"/responses\Z"), "Responses"),
)


def normalize_base_url(text: str) -> str:
    """The base address in what was entered: without ``/chat/completions`` and the like at its end.

    A query stays. Raises ValidationError with a sentence that says what is wrong.
    """
    text = text.strip().strip(_QUOTES)
    if re.search(r"\s", text) or not text.isprintable():
        raise ValidationError(
            _("The address holds a space or a line break: copy it once more, in one piece.")
        )
    if "://" not in text:
        raise ValidationError(
            _("The address begins with https:// or, in your own network, with http://.")
        )
    try:
        parts = urlsplit(text)
        host = parts.hostname if parts.port is None or parts.port else None
    except ValueError as error:
        raise ValidationError(_("This is no address: its host or port cannot be read.")) from error
    if parts.scheme.lower() not in ("http", "https"):
        raise ValidationError(_("The address begins with https:// or http://, with nothing else."))
    if parts.username is not None or parts.password is not None:
        raise ValidationError(
            _("The address must not hold a user or password: a key has its own field.")
        )
    if not host or not re.fullmatch(r"[\w.-]+|[0-9A-Fa-f:.]+", host):
        raise ValidationError(_("The address names no host, such as api.example.com."))
    path = parts.path.rstrip("/")
    for ending in _ENDINGS:
        path = path.removesuffix(ending).rstrip("/")
    if parts.port == OLLAMA_PORT and re.fullmatch(r"(/api(/\w+)?)?", path):
        path = "/v1"  # its own protocol is below /api
    return urlunsplit((parts.scheme.lower(), parts.netloc.lower(), path, parts.query, ""))


def other_protocol(url: str) -> str:
    """What is to be said of an address that is known to speak another protocol; "" for others."""
    parts = urlsplit(url)
    place = f"{parts.netloc}{parts.path}"
    name = next((name for sign, name in _OTHER_PROTOCOLS if sign.search(place)), "")
    words = _(
        "This is an address of the %s protocol. Enter the one of the OpenAI-compatible API (chat "
        "completions); the provider's documentation names it."
    )
    return words % name if name else ""


def clean_key(line: str) -> str:
    """The key in a line that somebody pasted: without quotes, ``Bearer`` and the like before it.

    Raises ValidationError; the key is not in its words.
    """
    key = line.strip().strip(_QUOTES).strip()
    key = re.sub(r"(?i)\A(authorization\s*:\s*)?bearer\s+", "", key).strip().strip(_QUOTES)
    key = re.sub(r"\A[A-Z][A-Z0-9_]*_KEY\s*=\s*", "", key).strip(_QUOTES)
    if re.search(r"\s", key):
        raise ValidationError(
            _("A key holds no space and no line break inside: paste it in one piece.")
        )
    if not is_sendable(key):
        raise ValidationError(
            _(
                "A key holds a character that no key has (Chinese, a full-width or an invisible "
                "one): copy it once more from the provider's page."
            )
        )
    if len(key) > LONGEST_KEY:
        raise ValidationError(_("This is too long for a key."))
    return key


class KeysField(LinesField):
    """Keys, one a line; ``•••• 2`` stands for the second one that is stored.

    The form sets ``stored``; None where they cannot be read any more. Cleaned to a list, or None
    where those that cannot be read stay.
    """

    stored: Sequence[str] | None = ()
    kept: tuple[str, ...] = ()
    """Once it is cleaned: what stands for stored keys that stay."""

    def shown(self) -> str:
        if self.stored is None:
            return MASK
        return "\n".join(f"{MASK} {number}" for number in range(1, len(self.stored) + 1))

    def clean(self, value: Any) -> Any:
        lines = [line.strip() for line in super().clean(value)]
        self.kept = tuple(line for line in lines if line.startswith(MASK))
        if self.stored is None and lines == [MASK]:
            return None
        if len(lines) > MOST_KEYS:
            raise ValidationError(_("At most %d keys.") % MOST_KEYS)
        keys = [key for line in lines if (key := self._read(line))]
        new = [key for line, key in zip(lines, keys, strict=False) if MASK not in line]
        begin = _BEGIN.match(new[0]) if new else None
        if begin and not all(key.startswith(begin[0]) for key in new):
            raise ValidationError(
                _(
                    "One line begins otherwise than the first. If one key was broken over two "
                    "lines, join them; several keys stand one a line."
                )
            )
        return list(dict.fromkeys(keys))

    def _read(self, line: str) -> str:
        if MASK not in line:
            return clean_key(line)
        found = _STORED.fullmatch(line)
        place = int(found[1] or 1) - 1 if found else -1
        if self.stored is None or not 0 <= place < len(self.stored):
            raise ValidationError(
                _("“%s” stands for no stored key: replace the whole line with a key.") % line[:20]
            )
        return self.stored[place]


class HeadersField(SecretLinesField):
    """Headers, ``NAME: value`` one a line or as a JSON object; cleaned to a dict."""

    def __init__(self, **options: Any) -> None:
        super().__init__(":", **options)

    def clean(self, value: Any) -> Any:
        found = super().clean(_as_lines(value) if isinstance(value, str) else value)
        if isinstance(found, Mapping):
            if len(found) > MOST_HEADERS:
                raise ValidationError(_("At most %d headers.") % MOST_HEADERS)
            for name, entered in found.items():
                _check_header(name, entered)
        return found


def _as_lines(text: str) -> str:
    """``text``, or the lines of the JSON object that it is."""
    if not text.strip().startswith("{"):
        return text
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict) or not all(isinstance(one, str) for one in fields.values()):
        raise ValidationError(
            _('This is no JSON object of texts, such as {"X-Name": "value"}.'),
        )
    for name, entered in fields.items():
        _check_header(name, entered)
    return "\n".join(f"{name}: {entered}" for name, entered in fields.items())


def _check_header(name: str, value: str) -> None:
    if not _HEADER_NAME.fullmatch(name):
        raise ValidationError(
            _("“%s” is no name of a header: letters, digits and dashes.") % name[:50]
        )
    if name.lower() in _OWN_HEADERS:
        raise ValidationError(_("The header “%s” is set by the program itself.") % name)
    if not (is_sendable(value) or value == MASK):
        raise ValidationError(
            _("The value of “%s” holds a line break or a sign that is no ASCII.") % name
        )
