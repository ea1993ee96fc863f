"""Downloads, safely. The rules and their reasons are in the package's docstring."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from asgiref.sync import async_to_sync
from django.conf import settings

from tools.fetch.allow_list import AllowList, Use
from tools.fetch.request import (
    MAX_REDIRECTS,
    DestinationResolver,
    FetchRequest,
    FetchResponse,
    RedirectRefused,
    ResolveHost,
    StatusRefused,
    TookTooLong,
    WireRequest,
    parse_url,
    require_sendable,
)

if TYPE_CHECKING:
    from tools.fetch.pinned_session import PinnedSession

T = TypeVar("T")
CONCURRENT = 64
"""Downloads at once; others wait for their turn, within their time."""


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
        self._session: PinnedSession | None = None

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """The answer to ``request``, with whatever status, after redirects. Raises
        :class:`FetchError`.

        When it returns, raises or is cancelled, its connection is closed.
        """
        url, most = parse_url(request.url), MAX_REDIRECTS if request.follows_redirects else 0
        require_sendable(request.headers)
        try:
            async with asyncio.timeout(request.seconds), self._turns:
                hop = WireRequest(
                    url, request.method, request.headers, request.body, request.is_private
                )
                for _ in range(most + 1):
                    answer = await self._ask(hop, request.max_bytes)
                    if isinstance(answer, FetchResponse):
                        return answer
                    hop = answer
        except TimeoutError as error:
            raise TookTooLong(
                f"{url.host} took more than {request.seconds:g} s", request.seconds
            ) from error
        raise RedirectRefused(f"more than {most} redirects, the last to {hop.url.host}")

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
        addresses = await self.destinations.permitted(hop.url.raw_host or "")
        if self._session is None:
            made = await asyncio.to_thread(_load_session_class)
            self._session = self._session or made(self._tls, self._turn_to_read)
        return await self._session.exchange(hop, addresses, max_bytes)


def _load_session_class() -> "type[PinnedSession]":
    """Takes a tenth of a second: neither a start nor the event loop waits for it."""
    from tools.fetch.pinned_session import PinnedSession

    return PinnedSession


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
