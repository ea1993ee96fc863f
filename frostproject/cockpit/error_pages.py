"""What is shown where there is no page, or not for this user: in the admin's look."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _


def _page(
    status: int, title: object, words: object
) -> Callable[[HttpRequest, Exception], HttpResponse]:
    def page(request: HttpRequest, exception: Exception) -> HttpResponse:
        context: dict[str, Any] = {"title": title, "words": words, "status": status}
        is_known = getattr(getattr(request, "user", None), "is_staff", False)
        if is_known and request.path.startswith(reverse("admin:index")):
            context = {**admin.site.each_context(request), **context}
        return render(request, "admin/error.html", context, status=status)

    return page


#: There is no such page, or no such row within the user's reach: which of both is not told.
not_found = _page(404, _("Not found"), _("There is no such page, or it is not yours to see."))
forbidden = _page(
    403,
    _("Not allowed"),
    _("Your account may not do this. Who administers the accounts can change that."),
)
#: Nothing is known of who sent it.
bad_request = _page(
    400,
    _("This was not understood"),
    _("What was sent cannot be read. Go back, load the page again, and try once more."),
)
