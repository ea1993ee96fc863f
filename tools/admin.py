"""Tools: the rows that the operator edits and the next message obeys."""

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from tools.admin_base import ModelAdmin
from tools.models import ToolConfig
from tools.templates import template_faults

if TYPE_CHECKING:
    _Form = forms.ModelForm[ToolConfig]
else:
    _Form = forms.ModelForm


class ToolConfigForm(_Form):
    """One tool's settings. A mock value that could not be filled in is refused, fault by fault."""

    class Meta:
        model = ToolConfig
        fields = ("enabled", "timeout_seconds", "description", "mock_enabled", "mock_value")
        widgets = {  # noqa: RUF012 - Django's own way to say it
            "description": forms.Textarea(attrs={"rows": 4, "class": "vLargeTextField"}),
            "mock_value": forms.Textarea(attrs={"rows": 4, "class": "vLargeTextField template", "spellcheck": "false"}),
        }

    def clean_mock_value(self) -> str:
        value = str(self.cleaned_data["mock_value"])
        if faults := template_faults(value, self._argument_names(value)):
            raise ValidationError(faults)
        return value

    def _argument_names(self, template: str) -> Collection[str]:
        """What may stand in braces: anything, where the tool does not say."""
        names = self.instance.parameter_names
        return names if names is not None else re.findall(r"\{([^{}]*)\}", template)


@admin.register(ToolConfig)
class ToolConfigAdmin(ModelAdmin):
    form = ToolConfigForm
    actions = None
    list_display = ("name", "enabled", "mock_enabled", "timeout_seconds", "provider_name")
    list_editable = ("enabled", "mock_enabled", "timeout_seconds")
    list_filter = ("enabled", "mock_enabled")
    show_facets = admin.ShowFacets.NEVER
    search_fields = ("name", "description")
    readonly_fields = ("name", "provider_name", "arguments", "created_at", "updated_at")
    fieldsets = (
        (None, {"fields": ("name", "provider_name", "enabled", "timeout_seconds", "description")}),
        (_("Mock"), {"fields": ("mock_enabled", "mock_value", "arguments")}),
        (_("History"), {"fields": ("created_at", "updated_at")}),
    )

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    @admin.display(description=_("arguments"))
    def arguments(self, config: ToolConfig) -> str:
        return ", ".join(f"{{{name}}}" for name in config.parameter_names or ()) or "-"

    def get_changelist_form(self, request: HttpRequest, **kwargs: Any) -> Any:
        """The list edits three fields; the form's own checks are of others."""
        return forms.ModelForm
