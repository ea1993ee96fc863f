"""Downloads, safely. The rules and their reasons are in the package's docstring."""

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

import aiohttp
from aiohttp.http import HttpProcessingError
from asgiref.sync import async_to_sync
from django.conf import settings

from tools.fetch.allow_list import AllowList, Use
from tools.fetch.body import ENCODINGS, read_body
from tools.fetch.destinations import DestinationResolver, ResolveHost
from tools.fetch.errors import (
    ConnectionFailed,
    RedirectRefused,
    RequestRefused,
    StatusRefused,
    TlsRefused,
    TookTooLong,
    UnreadableAnswer,
)
from tools.fetch.pinning import build_pinned_connector, pin_addresses
from tools.fetch.redirects import MAX_REDIRECTS, STATUSES, WireRequest, follow_redirect
from tools.fetch.request import FetchRequest, FetchResponse, require_sendable
from tools.fetch.urls import parse_url

T = TypeVar("T")
CONCURRENT = 64
"""Downloads at once; others wait for their turn, within their time."""
CONCURRENT_PER_HOST = 16
HEADERS = {"User-Agent": "FrostAgent", "Accept": "*/*", "Accept-Encoding": ENCODINGS}
_ENDLESS = aiohttp.ClientTimeout(total=None, sock_connect=None)


class Fetcher:
    """The way out, of which a process has one; belongs to the event loop that first uses it.

    ``allow`` holds what ``FETCH_ALLOW`` lists. ``resolve`` and ``tls`` replace this
    machine's resolver and its trusted certificates.
    """

    def __init__(
        self,
        allow: AllowList | None = None,
        *,
        resolve: ResolveHost | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.destinations = DestinationResolver(allow, resolve)
        self._tls = tls
        self._turns = asyncio.Semaphore(CONCURRENT)
        self._turn_to_read = asyncio.Lock()
        self._session: aiohttp.ClientSession | None = None

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """The answer to ``request``, with whatever status, after redirects. Raises
        :class:`FetchError`.

        When it returns, raises or is cancelled, its connection is closed.
        """
        url = parse_url(request.url)
        require_sendable(request.headers)
        try:
            async with asyncio.timeout(request.seconds), self._turns:
                hop = WireRequest(
                    url, request.method, request.headers, request.body, request.is_private
                )
                for _ in range(MAX_REDIRECTS + 1):
                    answer = await self._ask(hop, request.max_bytes)
                    if isinstance(answer, FetchResponse):
                        return answer
                    hop = answer
        except TimeoutError as error:
            raise TookTooLong(
                f"{url.host} took more than {request.seconds:g} s", request.seconds
            ) from error
        raise RedirectRefused(f"more than {MAX_REDIRECTS} redirects, the last to {hop.url.host}")

    async def download(self, request: FetchRequest) -> FetchResponse:
        """As :meth:`fetch`, but raises :class:`StatusRefused` for an answer that is no success."""
        fetched = await self.fetch(request)
        if not fetched.is_success:
            raise StatusRefused(
                f"{parse_url(fetched.url).host} answered with status {fetched.status}",
                fetched.status,
            )
        return fetched

    async def close(self) -> None:
        """Close what is open; downloads under way fail. A later one opens a new session."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _ask(self, hop: WireRequest, max_bytes: int) -> FetchResponse | WireRequest:
        """One exchange: the answer, or what is to be asked instead."""
        host = hop.url.raw_host or ""
        with pin_addresses(await self.destinations.permitted(host)), _in_our_words(host):
            response = await self._opened().request(
                hop.method, hop.url, headers=hop.headers, data=hop.body, allow_redirects=False
            )
            try:
                if response.status in STATUSES and (location := response.headers.get("Location")):
                    return follow_redirect(hop, response.status, location)
                if response.status < 200:
                    raise UnreadableAnswer(f"an answer of status {response.status} is no end")
                headers: dict[str, str] = {}
                for name, value in response.headers.items():
                    headers.setdefault(name.lower(), value)
                body = await read_body(response, max_bytes, self._turn_to_read)
                return FetchResponse(str(response.url), response.status, headers, body)
            finally:
                response.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=build_pinned_connector(self._tls, CONCURRENT_PER_HOST),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=HEADERS,
                timeout=_ENDLESS,
                trust_env=False,
                auto_decompress=False,
            )
        return self._session


def run_with_fetcher(use: Use, act: Callable[[Fetcher], Awaitable[T]]) -> T:
    """What ``act`` comes to with a fetcher for this ``use`` that is closed again. For threads
    without an event loop."""

    async def run() -> T:
        fetcher = Fetcher(AllowList.parse(settings.FETCH_ALLOW, use))
        try:
            return await act(fetcher)
        finally:
            await fetcher.close()

    return async_to_sync(run)()


@contextlib.contextmanager
def _in_our_words(host: str) -> Iterator[None]:
    """Raise what aiohttp raises inside as a :class:`FetchError`."""
    try:
        yield
    except aiohttp.InvalidURL as error:
        raise RequestRefused(f"the client does not take this URL of {host}") from error
    except (aiohttp.ClientSSLError, ssl.SSLError) as error:
        raise TlsRefused(f"{host}: {error}") from error
    except (aiohttp.ClientResponseError, HttpProcessingError) as error:
        raise UnreadableAnswer(f"{host} did not answer in HTTP: {error.message}") from error
    except (aiohttp.ClientError, OSError) as error:
        raise ConnectionFailed(f"{host}: {error}") from error
