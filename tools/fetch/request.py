"""What is to be fetched, within which limits, and what came of it.

What can go wrong with a download, for whom each text is, and whether trying again makes sense.

::

    FetchError
    ├── RequestRefused      the URL or a header cannot be sent as it is written
    ├── DestinationRefused  the server's address is not public, and FETCH_ALLOW does not list it
    ├── RedirectRefused     too many redirects, or one that would give away what was sent
    ├── NameUnknown         there is no such name
    ├── ConnectionFailed    no connection, or one that ended too early (retryable)
    ├── TlsRefused          the server could not prove its name
    ├── TookTooLong         the time is up (retryable)
    ├── TooLarge            more bytes than the caller takes
    ├── UnreadableAnswer    not HTTP, or packed in a way that cannot be undone
    └── StatusRefused       a download was answered with anything but 2xx (retryable: 408, 425,
                            429, 5xx)

``str(error)`` is for the operator and may name addresses; ``error.text`` is for the
model and names none, since what a name of the inside resolves to is not the chat's affair.

Which URLs can be fetched, judged before any name is resolved, and from a host's name to the
addresses that may be dialled for it.
"""

import re
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from ipaddress import ip_address

from django.utils.translation import gettext as _, gettext_noop
from yarl import URL

from tools.fetch.allow_list import (
    FAKE_IP_NETWORK,
    Address,
    AllowList,
    normalize_host,
    parse_address,
    unwrap_address,
)
from tools.processes.threads import run_in_thread

RETRYABLE_STATUSES = frozenset({408, 425, 429})


class FetchError(Exception):
    """A download that failed. ``is_retryable``: the same request may succeed later."""

    text = "该网址无法访问。"
    is_retryable = False

    def __init__(self, operator: str, text: str = "") -> None:
        super().__init__(operator)
        self.text = text or self.text


class RequestRefused(FetchError):  # noqa: N818 - it says what happened, as do all below
    """Nothing was sent: the request is not one that this project makes."""

    text = "请求的写法不正确，请改正后再试。"


class DestinationRefused(FetchError):  # noqa: N818
    """Nothing was sent: the host has no address that downloads may reach."""

    text = "该网址指向内部网络或保留地址，不允许访问，请不要重试。"


class RedirectRefused(FetchError):  # noqa: N818
    """The server sent the request elsewhere, and it was not followed."""

    text = "该网址的跳转次数过多或不安全，无法访问，请不要重试。"


class NameUnknown(FetchError):  # noqa: N818
    """The resolver knows no address of the host."""

    text = "找不到该网址的域名，请检查网址是否正确。"


class ConnectionFailed(FetchError):  # noqa: N818
    """The server could not be reached, or went away before its answer was complete."""

    text = "无法连接到该网址的服务器，或连接中断，可以稍后再试。"
    is_retryable = True


class TlsRefused(FetchError):  # noqa: N818
    """The certificate is not valid for the name, or no encryption could be agreed on."""

    text = "该网址的安全证书无效，无法访问，请不要重试。"


class TookTooLong(FetchError):  # noqa: N818
    """The last byte had not come when the time was up."""

    is_retryable = True

    def __init__(self, operator: str, seconds: float) -> None:
        super().__init__(operator, f"访问该网址超过 {seconds:g} 秒仍未完成，可以稍后再试。")


class TooLarge(FetchError):  # noqa: N818
    """The answer, as sent or unpacked, has more than ``max_bytes``."""

    def __init__(self, max_bytes: int) -> None:
        size = f"{max_bytes / 2**20:.4g} MiB" if max_bytes >= 2**20 else f"{max_bytes} 字节"
        super().__init__(
            f"the answer has more than {max_bytes} bytes",
            f"该网址的内容超过 {size}，请不要重试。",
        )


class UnreadableAnswer(FetchError):  # noqa: N818
    """What came is not a complete HTTP answer in an encoding that was asked for."""

    text = "该网址返回的内容无法识别，请不要重试。"


class StatusRefused(FetchError):  # noqa: N818
    """The server answered, but not with what was asked for."""

    def __init__(self, operator: str, status: int) -> None:
        self.status = status
        self.is_retryable = status in RETRYABLE_STATUSES or status >= 500
        advice = "可以稍后再试" if self.is_retryable else "请不要重试"
        super().__init__(operator, f"该网址返回了错误（HTTP {status}），{advice}。")


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
    no header at all goes to another origin, however harmless its name. Unless it
    ``follows_redirects``, any raises :class:`RedirectRefused`.
    """

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    max_bytes: int = DEFAULT_BYTES
    seconds: float = DEFAULT_SECONDS
    is_private: bool = False
    follows_redirects: bool = True

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


MAX_LENGTH = 8_000
"""Characters; servers and this project's HTTP client give up at about 8 KiB a line."""
_EXACT = re.compile(r"(?:[!#$&-;=?-Z\[\]_a-z~]|%[0-9A-Fa-f]{2})*")
_HOST = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+")


@dataclass(frozen=True, slots=True)
class UrlProblem:
    """What is wrong with a URL: a message for forms and the log, a sentence for the model."""

    message: str
    text: str


TOO_LONG = UrlProblem(gettext_noop("The URL is too long."), "网址过长。")
NOT_A_URL = UrlProblem(gettext_noop("This is not a URL."), "这不是一个有效的网址。")
SCHEME = UrlProblem(
    gettext_noop("The URL must begin with http:// or https://."),
    "网址只能以 http:// 或 https:// 开头。",
)
USER = UrlProblem(
    gettext_noop("The URL must not hold a user name or password."), "网址中不能包含用户名或密码。"
)
HOST = UrlProblem(gettext_noop("The URL names no valid host."), "网址中没有有效的主机名。")
NOT_PUBLIC = UrlProblem(
    gettext_noop("The URL's address is not public, and FETCH_ALLOW does not list it."),
    "该网址指向内部网络或保留地址，不允许访问。",
)


def check_url(url: str, allow: AllowList | None = None) -> list[str]:
    """What is wrong with ``url``, for a form; no name is resolved.

    With ``allow``, a host that is written as an address is checked as well. A name that passes here
    may still be refused when it is fetched.
    """
    parsed, problem = _judged(url)
    if problem is None and allow is not None:
        host = parsed.raw_host or ""
        address = parse_address(host)
        problem = NOT_PUBLIC if address and not allow.permits(host, address) else None
    return [_(problem.message)] if problem else []


def parse_url(url: str) -> URL:
    """``url``, ready to be sent. Raises :class:`RequestRefused`.

    A URL that needs no quoting stays as it is to the last sign: links are signed, and not
    every server sees that ``%7E`` and ``~`` are the same.
    """
    parsed, problem = _judged(url)
    if problem is not None:
        raise RequestRefused(problem.message, problem.text)
    return parsed


def join_url(base: URL, reference: str) -> URL:
    """Where ``reference``, found at ``base``, leads. Raises :class:`RequestRefused`."""
    try:
        return parse_url(str(base.join(_quoted(reference))))
    except ValueError as error:
        raise RequestRefused(NOT_A_URL.message, NOT_A_URL.text) from error


def _judged(url: str) -> tuple[URL, UrlProblem | None]:
    url = url.strip(" ")
    if len(url) > MAX_LENGTH:
        return URL(), TOO_LONG
    if any(sign < " " or sign == "\x7f" for sign in url):
        return URL(), NOT_A_URL
    try:
        parsed = _quoted(url)
    except ValueError:
        return URL(), NOT_A_URL
    return parsed, _problem(parsed, url)


def _problem(parsed: URL, url: str) -> UrlProblem | None:
    if parsed.scheme not in ("http", "https"):
        return SCHEME
    if "@" in re.split(r"[/?#\\]", url.partition("//")[2], maxsplit=1)[0]:
        return USER
    return None if _HOST.fullmatch(parsed.raw_host or "") else HOST


def _quoted(url: str) -> URL:
    """``url`` parsed, and quoted unless it is already. Raises ValueError."""
    quoted = URL(url).with_fragment(None)  # also checks what the other way takes on trust
    return URL(url, encoded=True).with_fragment(None) if _EXACT.fullmatch(url) else quoted


ResolveHost = Callable[[str], Awaitable[Sequence[str]]]
"""The addresses of a host, best first. Raises ``socket.gaierror`` when there are none."""


class DestinationResolver:
    """Judges hosts by what ``resolve`` says, under ``allow``."""

    def __init__(self, allow: AllowList | None = None, resolve: ResolveHost | None = None) -> None:
        self._allow = allow or AllowList()
        self._resolve = resolve or resolve_system_addresses

    async def permitted(self, host: str) -> tuple[Address, ...]:
        """The addresses of ``host`` that may be dialled, best first; at least one.

        Dial these and do not resolve ``host`` again. Raises :class:`NameUnknown`, and
        :class:`DestinationRefused` when no address is permitted. What is not permitted
        among others is left out: names with an address for inside and one for outside exist.
        """
        found = await self._addresses(host)
        permitted = tuple(address for address in found if self._allow.permits(host, address))
        if not permitted:
            raise DestinationRefused(_refusal(host, found))
        return permitted

    async def require_all(self, host: str) -> None:
        """Raise as :meth:`permitted`, and :class:`DestinationRefused` too where only some of the
        addresses are permitted.

        For what resolves ``host`` again elsewhere, and dials what it likes best.
        """
        found = await self._addresses(host)
        if not all(self._allow.permits(host, address) for address in found):
            raise DestinationRefused(_refusal(host, found))

    async def _addresses(self, host: str) -> tuple[Address, ...]:
        try:
            answers = await self._resolve(host)
        except (OSError, UnicodeError) as error:
            raise _unknown(host, error) from error
        if not answers:
            raise NameUnknown(f"{host} has no address")
        return tuple(dict.fromkeys(ip_address(answer) for answer in answers))


async def resolve_system_addresses(host: str) -> list[str]:
    """What this machine's resolver says, which also reads every spelling of an address.

    In a thread of its own: a name server that never answers would otherwise hold up the
    look-ups of everything else in this process.
    """
    look_up = partial(
        socket.getaddrinfo, host, None, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
    )
    return [str(info[4][0]) for info in await run_in_thread(look_up)]


def _unknown(host: str, error: OSError | UnicodeError) -> NameUnknown:
    refused = NameUnknown(f"{host} cannot be looked up: {error}")
    if isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN:
        refused.is_retryable, refused.text = True, "暂时无法查询该网址的域名，可以稍后再试。"
    return refused


#: What is said of a host whose address is not public. A page tells it in the reader's language.
NAME_REFUSED = gettext_noop(
    "%(host)s is %(addresses)s, which is not public; FETCH_ALLOW can list it"
)
FAKE_NAME_REFUSED = gettext_noop(
    "%(host)s is %(addresses)s, which is not public (a proxy in fake-ip mode answers so for every "
    "name); FETCH_ALLOW can list it"
)
ADDRESS_REFUSED = gettext_noop("%(host)s is not public; FETCH_ALLOW can list it")


def _refusal(host: str, found: Sequence[Address]) -> str:
    is_fake = any(unwrap_address(address) in FAKE_IP_NETWORK for address in found)
    said = FAKE_NAME_REFUSED if is_fake else NAME_REFUSED
    if parse_address(host) is not None:
        said = ADDRESS_REFUSED
    return said % {"host": host, "addresses": ", ".join(map(str, found))}


# What is sent where, and what of it may follow a redirect.

MAX_REDIRECTS = 5
STATUSES = frozenset({301, 302, 303, 307, 308})
FORWARDED_HEADERS = frozenset({"accept", "accept-language", "user-agent"})
"""Headers that say nothing about who asks. Any other may be a key, whatever its name."""


@dataclass(frozen=True, slots=True)
class WireRequest:
    """One request on the wire."""

    url: URL
    method: str
    headers: Mapping[str, str]
    body: bytes | None
    is_private: bool = False

    @property
    def has_secrets(self) -> bool:
        return (
            self.body is not None
            or self.is_private
            or any(name.lower() not in FORWARDED_HEADERS for name in self.headers)
        )


def follow_redirect(hop: WireRequest, status: int, location: str) -> WireRequest:
    """The request that ``status`` and ``location`` ask for instead of ``hop``.

    Its method is that of RFC 9110, 15.4, as browsers read it. To another origin only
    ``FORWARDED_HEADERS`` headers go along, and none of a private request; the step from http to
    https of the same host is none.
    Raises :class:`RedirectRefused` when a body would go to another origin or anything that
    may be secret from https to http, and when ``location`` cannot be fetched.
    """
    try:
        url = join_url(hop.url, location)
    except RequestRefused as error:
        raise RedirectRefused(
            f"{hop.url.host} redirects to something that cannot be fetched: {error}"
        ) from error
    asked = hop
    if (status == 303 and hop.method != "HEAD") or (status in (301, 302) and hop.method == "POST"):
        headers = {
            name: value
            for name, value in hop.headers.items()
            if not name.lower().startswith("content-")
        }
        asked = replace(hop, method="GET", headers=headers, body=None)
    if _is_same_site(hop.url, url):
        return replace(asked, url=url)
    if (hop.url.scheme, url.scheme) == ("https", "http") and asked.has_secrets:
        raise RedirectRefused(
            f"{hop.url.host} redirects from https to http, and the request may hold secrets"
        )
    if asked.body is not None:
        raise RedirectRefused(f"{hop.url.host} redirects a request with a body to {url.host}")
    headers = {
        name: value
        for name, value in asked.headers.items()
        if name.lower() in FORWARDED_HEADERS and not hop.is_private
    }
    return WireRequest(url, asked.method, headers, None)


def _is_same_site(old: URL, new: URL) -> bool:
    if normalize_host(old.raw_host or "") != normalize_host(new.raw_host or ""):
        return False
    is_upgrade = (
        (old.scheme, new.scheme) == ("http", "https")
        and old.is_default_port()
        and new.is_default_port()
    )
    return is_upgrade or (old.scheme, old.port) == (new.scheme, new.port)
