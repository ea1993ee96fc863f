"""Which URLs can be fetched, checked before any name is resolved."""

import re
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from yarl import URL

from tools.fetch.addresses import parse_address
from tools.fetch.allow_list import AllowList
from tools.fetch.errors import RequestRefused

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
