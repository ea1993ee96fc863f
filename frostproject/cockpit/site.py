"""The admin as operators meet it: its pages, and the navigation to them."""

from typing import Any, cast

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils.module_loading import import_string
from django.views.i18n import JavaScriptCatalog

from frostproject.cockpit.navigation import current_group, list_groups
from frostproject.cockpit.pages import PAGES
from frostproject.signin import factors
from frostproject.signin.admin_site import FrostAdminSite

#: By its path, as pages are: it knows tables.
LEADS_TO_START = "frostproject.cockpit.start_steps.leads_to_start"


class CockpitSite(FrostAdminSite):
    """The one site of the admin: :data:`PAGES` beside the tables, in groups."""

    def get_urls(self) -> list[URLPattern | URLResolver]:
        own = [
            path(page.route, self.admin_view(page.bound_to(self)), name=page.name) for page in PAGES
        ]
        # No row here has an address on another site, and its list of sites is not installed.
        return own + [
            one for one in super().get_urls() if getattr(one, "name", "") != "view_on_site"
        ]

    def login(  # type: ignore[override]
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponseBase:
        """As everywhere; who can set up an installation that cannot answer yet is led to where that
        is done."""
        answer: HttpResponseBase = super().login(request, extra_context)
        is_in = request.method == "POST" and answer.status_code == 302
        if (
            is_in
            and answer.headers["Location"] == reverse("admin:index")
            and not factors.has_second_factor(request.user)
            and import_string(LEADS_TO_START)(request.user)
        ):
            answer.headers["Location"] = reverse("admin:start")
        return answer

    def i18n_javascript(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Django's catalogue for scripts, and what this project adds to it."""
        packages = ["django.contrib.admin", "frostproject"]
        return cast("HttpResponse", JavaScriptCatalog.as_view(packages=packages)(request))

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        context = super().each_context(request)
        here = current_group(context["available_apps"])
        return {**context, "here": here}

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """The navigation; with ``app_label`` the tables of that app, as in Django."""
        apps: list[Any] = super().get_app_list(request, app_label)
        if app_label or not self.has_permission(request):
            return apps
        return list_groups(request, apps)
