"""The connections to one endpoint.

They are aiohttp's, opened by the openai library with its certificates and the proxies of the
environment. A question goes straight to them: the objects that the library's HTTP client makes of
it and its answer on the way cost twice as much as asking does.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Self, cast

import httpx2

from tools.version import USER_AGENT

LIMITS = httpx2.Limits(max_connections=5_000, max_keepalive_connections=500)
"""So many, so that thousands of runs can wait for one endpoint at once."""


class _Route(NamedTuple):
    """How an address is reached: ``session`` is that of the proxy, if there is one, that
    ``options`` name."""

    session: Any
    options: dict[str, Any]


class EndpointConnections:
    """Those below ``http``; ``aiohttp`` is loaded late, and so handed on. ``payload`` makes of
    bytes what is forgotten once it is sent."""

    def __init__(
        self, http: httpx2.AsyncClient, aiohttp: Any, payload: Callable[[bytes], object]
    ) -> None:
        self._http, self._payload = http, payload
        self.headers = dict(http.headers)
        """Those of every question, in small letters."""
        self.error: type[Exception] = aiohttp.ClientError
        """What says that a question got no answer."""
        self._aiohttp = aiohttp
        # An answer is awaited until a deadline, so that each step needs no limit of its own.
        self._no_limit = aiohttp.ClientTimeout()
        self._routes: dict[str, _Route] = {}

    @classmethod
    async def open(cls) -> Self:
        """Connections, which are made with the first question. That loads libraries of 500 modules
        of types and reads the system's certificates: half a second, which neither a start nor the
        event loop waits for."""
        return await asyncio.to_thread(cls._open)

    @classmethod
    def _open(cls) -> Self:
        import aiohttp
        from aiohttp.payload import BytesPayload
        from openai import DefaultAioHttpClient

        class SentBody(BytesPayload):
            async def write_with_length(self, writer: Any, content_length: int | None) -> None:
                await super().write_with_length(writer, content_length)
                self._value = b""

        http = DefaultAioHttpClient(limits=LIMITS, headers={"User-Agent": USER_AGENT})
        return cls(http, aiohttp, SentBody)

    def ask(
        self, method: str, url: str, headers: Mapping[str, str], body: object = None
    ) -> AbstractAsyncContextManager[Any]:
        """The ``aiohttp.ClientResponse`` to ``body``, bytes or an iterator of them, for as long as
        the block. Its body is as it comes, and is not limited (:mod:`agent.llm.answers.bounds`)."""
        route = self._routes.get(url) or self._find_route(url)
        return cast(
            "AbstractAsyncContextManager[Any]",
            route.session.request(
                method,
                url,
                data=self._payload(body) if isinstance(body, bytes) else body,
                headers=headers,
                # It would turn the question into a GET, or take keys elsewhere.
                allow_redirects=False,
                auto_decompress=False,
                timeout=self._no_limit,
                **route.options,
            ),
        )

    async def close(self) -> None:
        await self._http.aclose()

    def _find_route(self, url: str) -> _Route:
        # Neither library says which connections lead to an address; it is one of the proxies'.
        opened: Any = self._http._transport_for_url(httpx2.URL(url))
        if not isinstance(opened.client, self._aiohttp.ClientSession):
            opened.client = opened.get_client()
        options: dict[str, Any] = {}
        if proxy := opened.proxy:
            auth = self._aiohttp.BasicAuth(*proxy.auth) if proxy.auth else None
            options = {
                "proxy": str(proxy.url),
                "proxy_auth": auth,
                "proxy_headers": proxy.headers,
            }
        route = self._routes[url] = _Route(opened.client, options)
        return route
