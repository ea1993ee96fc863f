"""What a page is made for: the time zone of the installation's row, whichever process shows it, and
whoever reads it (see :mod:`agent.pages.error_words`)."""

import inspect
from collections.abc import Callable
from typing import Any

from asgiref.sync import sync_to_async
from django.db import Error
from django.http import HttpRequest
from django.utils.decorators import sync_and_async_middleware

from agent.pages.error_words import page_read_by
from agent.record.settings.installation import load_installation
from tools.local_time import Clock, page_clock, present_clock

ADMIN = "/admin/"


@sync_and_async_middleware
def context_of_pages(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Middleware. One short query for a page of the admin, none for anything else."""
    if inspect.iscoroutinefunction(get_response):

        async def later(request: HttpRequest) -> Any:
            clock = await sync_to_async(_clock_for)(request)
            with page_clock(clock), page_read_by(request.user):
                return await get_response(request)

        return later

    def now(request: HttpRequest) -> Any:
        with page_clock(_clock_for(request)), page_read_by(request.user):
            return get_response(request)

    return now


def _clock_for(request: HttpRequest) -> Clock:
    if not request.path_info.startswith(ADMIN):
        return present_clock()
    try:
        return load_installation()[0]
    except Error:  # the page says what is wrong with the database
        return present_clock()
