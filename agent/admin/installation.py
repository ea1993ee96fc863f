"""The page of the one row of the installation."""

from typing import Any

from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from agent.models import Installation
from tools.admin.fields import SuggestedInput
from tools.admin.settings_page import SettingsAdmin, SettingsForm
from tools.local_time import known_zones


class InstallationForm(SettingsForm):
    class Meta:
        model = Installation
        fields = ("time_zone",)

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        field = self.fields.get("time_zone")
        if field is None:  # who may only look
            return
        own = settings.MACHINE_TIME_ZONE  # is suggested first
        zones = [(zone, "") for zone in (own, *sorted(known_zones() - {own}))]
        attrs = {"class": "", "size": 32, "spellcheck": "false", "placeholder": own}
        field.widget = SuggestedInput(zones, field.widget.attrs | attrs)
        field.help_text = format_html(
            "{} {}", field.help_text, _("That is %(zone)s.") % {"zone": own}
        )


@admin.register(Installation)
class InstallationAdmin(SettingsAdmin):
    rights = frozenset({"change"})
    form = InstallationForm
    fields = ("time_zone",)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """There is one row: its form is the page."""
        row, _is_new = Installation.objects.get_or_create(pk=Installation.ONLY)
        answer: HttpResponse = self.changeform_view(request, str(row.pk), "", extra_context)
        return answer
