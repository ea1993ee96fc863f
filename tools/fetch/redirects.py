"""What is sent where, and what of it may follow a redirect."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from yarl import URL

from tools.fetch.allow_list import normalize_host
from tools.fetch.errors import RedirectRefused, RequestRefused
from tools.fetch.urls import join_url

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
