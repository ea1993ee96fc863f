"""The pages: the admin, and the way to it. Reading this loads them all."""

from django.contrib import admin
from django.urls import path
from django.views.generic import RedirectView
from django.views.i18n import set_language

import tools.http_tools.admin
import tools.mcp.admin
import tools.plugins.admin  # noqa: F401 - Django looks into tools.admin alone

admin.autodiscover()

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/language/", set_language, name="set_language"),
    path("admin/", admin.site.urls),
]

handler400 = "frostproject.cockpit.error_pages.bad_request"
handler403 = "frostproject.cockpit.error_pages.forbidden"
handler404 = "frostproject.cockpit.error_pages.not_found"
