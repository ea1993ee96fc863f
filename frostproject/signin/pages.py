"""Django's pages as an ASGI application that is loaded when the first page is asked for."""

import asyncio
from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import get_resolver

from frostproject.signin.gate import SignInGate
from frostproject.web import http


class Pages:
    """A server that nobody looks at never loads its pages: half a second and 20 MiB.

    A request that is cancelled while they load leaves them to the next one.
    """

    def __init__(self) -> None:
        self._loaded: SignInGate | None = None
        self._loading = asyncio.Lock()

    async def __call__(self, scope: dict[str, Any], receive: http.Receive, send: http.Send) -> None:
        pages = self._loaded or await self._load()
        await pages(scope, receive, send)

    async def _load(self) -> SignInGate:
        async with self._loading:
            if self._loaded is None:  # in a thread: messages are answered meanwhile
                self._loaded = await asyncio.to_thread(_load)
            return self._loaded


class PageHandler(ASGIHandler):
    """Middleware and page are one call in one thread. Django would go to the thread and back for
    each middleware, which takes longer than a small page."""

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware()

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        return await sync_to_async(self.get_response)(request)


def _load() -> SignInGate:
    """The middleware, and by way of the addresses every page."""
    gate = SignInGate(PageHandler())
    _ = get_resolver().url_patterns
    return gate
