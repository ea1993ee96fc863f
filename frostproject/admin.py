"""The name on every page of the admin."""

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

admin.site.site_header = "FrostAgent"
admin.site.site_title = "FrostAgent"
admin.site.index_title = _("Overview")
admin.site.site_url = None  # the site is the admin
