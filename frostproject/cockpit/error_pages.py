"""What is shown where there is no page, or not for this user: in the admin's look."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """There is no such page, or no such row within the user's reach: which of both is not told."""
    words = _("There is no such page, or it is not yours to see.")
    return _page(request, 404, _("Not found"), words)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The user may not do this."""
    words = _("Your account may not do this. Who administers the accounts can change that.")
    return _page(request, 403, _("Not allowed"), words)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """What was sent cannot be read. Nothing is known of who sent it."""
    words = _("What was sent cannot be read. Go back, load the page again, and try once more.")
    return _page(request, 400, _("This was not understood"), words)


def _page(request: HttpRequest, status: int, title: str, words: str) -> HttpResponse:
    context: dict[str, Any] = {"title": title, "words": words, "status": status}
    is_known = getattr(getattr(request, "user", None), "is_staff", False)
    if is_known and request.path.startswith(reverse("admin:index")):
        context = {**admin.site.each_context(request), **context}
    return render(request, "admin/error.html", context, status=status)
