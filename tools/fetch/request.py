"""What is to be fetched, within which limits, and what came of it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from tools.fetch.errors import RequestRefused

DEFAULT_BYTES = 32 * 2**20
DEFAULT_SECONDS = 30.0
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
OWN_HEADERS = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that the connection itself sets; another ``Host`` would be another destination."""
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]*")
BAD_HEADER = gettext_noop("“%(name)s” is not a header that can be sent.")


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """One download. Raises ValueError for a method that is none of ``METHODS``.

    ``headers`` go to the origin of ``url`` alone. ``max_bytes`` counts the body as it is
    sent and as it is unpacked; ``seconds`` from the call to the last byte. Of what ``is_private``
    no header at all goes to another origin, however harmless its name.
    """

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    max_bytes: int = DEFAULT_BYTES
    seconds: float = DEFAULT_SECONDS
    is_private: bool = False

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"{self.method!r} is not one of {', '.join(METHODS)}")


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """An answer, whatever its status. ``url`` is where it came from, after redirects."""

    url: str
    status: int
    headers: Mapping[str, str]
    """Names in lower case; of a name that was sent more than once, the first value."""
    body: bytes = field(repr=False)

    @property
    def content_type(self) -> str:
        """As the server claims it, or ""; what the bytes really are must be found in them."""
        return self.headers.get("content-type", "")

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


def check_headers(headers: Mapping[str, str]) -> list[str]:
    """What is wrong with ``headers``, for a form."""
    return [_(BAD_HEADER) % {"name": name} for name in _refused(headers)]


def require_sendable(headers: Mapping[str, str]) -> None:
    """Raise :class:`RequestRefused` for headers that cannot be sent, or are not the caller's to
    set."""
    for name in _refused(headers):
        raise RequestRefused(
            BAD_HEADER % {"name": name}, f"请求头 {name[:100]!r} 不能发送，请改正后再试。"
        )


def _refused(headers: Mapping[str, str]) -> list[str]:
    return [
        name
        for name, value in headers.items()
        if name.lower() in OWN_HEADERS
        or not (_HEADER_NAME.fullmatch(name) and _HEADER_VALUE.fullmatch(value))
    ]
