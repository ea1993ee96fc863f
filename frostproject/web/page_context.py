"""What a page is made for: the time zone of the installation's row, whichever process shows it, and
whoever reads it (see :mod:`agent.pages.error_words`)."""

from collections.abc import Callable
from typing import Any

from django.db import Error
from django.http import HttpRequest

from agent.pages.error_words import page_read_by
from agent.record.settings.installation import load_installation
from tools.local_time import Clock, page_clock, present_clock

ADMIN = "/admin/"


def context_of_pages(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Middleware. One short query for a page of the admin, none for anything else."""

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
