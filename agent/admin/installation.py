"""The page of the one row of the installation."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from agent.models import Installation
from tools.admin.settings_page import SettingsAdmin, SettingsForm
from tools.local_time import known_zones


class ZoneInput(forms.TextInput):
    """A name that is typed, or chosen from all there are; the machine's is the first."""

    def render(
        self, name: str, value: Any, attrs: dict[str, Any] | None = None, renderer: Any = None
    ) -> SafeString:
        listed = {"list": "zones", "autocomplete": "off", "spellcheck": "false"}
        shown = super().render(name, value, (attrs or {}) | listed, renderer)
        own = settings.MACHINE_TIME_ZONE
        options = format_html_join(
            "", '<option value="{}">', ((zone,) for zone in (own, *sorted(known_zones() - {own})))
        )
        return format_html('{}<datalist id="zones">{}</datalist>', shown, options)


class InstallationForm(SettingsForm):
    class Meta:
        model = Installation
        fields = ("time_zone",)
        widgets = {"time_zone": ZoneInput(attrs={"size": 32})}  # noqa: RUF012 - Django's own form

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        field = self.fields.get("time_zone")
        if field is None:  # who may only look
            return
        field.widget.attrs["placeholder"] = settings.MACHINE_TIME_ZONE
        field.help_text = format_html(
            "{} {}",
            field.help_text,
            _("That is %(zone)s.") % {"zone": settings.MACHINE_TIME_ZONE},
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
