"""Errors on pages are told to whoever reads them: see :mod:`agent.pages.page_reader`."""

import inspect
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from django.utils.decorators import sync_and_async_middleware

from agent.pages.page_reader import page_read_by


@sync_and_async_middleware
def reader_of_pages(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Middleware. No query."""
    if inspect.iscoroutinefunction(get_response):

        async def later(request: HttpRequest) -> Any:
            with page_read_by(request.user):
                return await get_response(request)

        return later

    def now(request: HttpRequest) -> Any:
        with page_read_by(request.user):
            return get_response(request)

    return now
