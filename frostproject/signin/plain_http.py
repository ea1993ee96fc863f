"""Signing in over plain HTTP where cookies are for https only: browsers store none, and the pages
explain it."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.csrf import csrf_failure as stock_page


def is_for_https_only() -> bool:
    """Whether every origin that browsers use is https, so that cookies are for https alone."""
    return bool(settings.SESSION_COOKIE_SECURE)


def https_addresses() -> list[str]:
    """Where the admin is to be opened, as far as CSRF_TRUSTED_ORIGINS names hosts."""
    return [
        f"{origin.rstrip('/')}/admin/"
        for origin in settings.CSRF_TRUSTED_ORIGINS
        if "*" not in origin
    ]


def csrf_failure(request: HttpRequest, reason: str = "", **options: Any) -> HttpResponse:
    """Django's page for a form that is not to be trusted, or ours where the browser could not keep
    the cookie for it."""
    if is_for_https_only() and settings.CSRF_COOKIE_NAME not in request.COOKIES:
        return render(
            request, "admin/plain_http.html", {"addresses": https_addresses()}, status=403
        )
    return stock_page(request, reason, **options)
