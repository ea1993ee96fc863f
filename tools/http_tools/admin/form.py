"""The form of an HTTP tool: what the row holds as JSON, written as small tables."""

import json
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from tools.admin.json_field import JSON_INPUT
from tools.admin.settings_page import SettingsForm
from tools.http_tools.admin.table_field import EntriesField, EntryColumns, ParametersField
from tools.http_tools.validation import parse_json_or_none
from tools.models import HttpTool

FORM = HttpTool.Body.FORM.value
NONE = HttpTool.Body.NONE.value
HELP = {
    "name": _("What the model calls it by, e.g. city_weather: letters, digits, _ and - only."),
    "enabled": _("A disabled tool is not offered to the model, but can be tried out here."),
    "description": _(
        "What the tool is good for and when to use it. The model decides by these words alone."
    ),
    "url": _(
        "{city} stands for the argument “city”. Host and beginning are always the same, whatever "
        "the arguments are."
    ),
    "body_kind": _("What is sent along with POST, PUT or PATCH."),
    "body": _(
        'JSON: an argument stands in quotes, also where it is a number or a list: {"city": '
        '"{city}", "days": "{days}"}.'
        " Parts whose argument was not given are left out. In JSON only texts are templates; a "
        "plain brace in one is written twice."
    ),
    "answer_kind": _(
        "The whole answer, or only the part of a JSON answer that is of use: it costs less and is "
        "understood better."
    ),
    "answer_path": _("E.g. $.current.temperature or $.items[*].title"),
    "timeout_seconds": _("A request that takes longer is stopped."),
    "max_kib": _("A larger answer is refused."),
    "cache_seconds": _(
        "The same request within this time gets the same answer without being sent again. 0: every "
        "request is sent."
    ),
}
PLACEHOLDERS = {
    "name": "city_weather",
    "url": "https://api.example.com/v1/weather/{city}",
    "answer_path": "$.current",
}


class HttpToolForm(SettingsForm):
    """One tool. What makes no sense is refused by the model, field by field."""

    parameters_schema = ParametersField(
        label=_("Arguments"),
        help_text=_("What the model has to say, or may say, when it uses the tool."),
    )
    query = EntriesField(
        EntryColumns(name_placeholder="q", template_placeholder="{city}"),
        label=_("Query"),
        help_text=_(
            "What stands behind the “?” of the URL. An entry whose argument was not given is left "
            "out."
        ),
    )
    headers = EntriesField(
        EntryColumns(
            name_placeholder="Authorization", template_placeholder="Bearer {secret:weather_key}"
        ),
        label=_("Headers"),
        help_text=_("Keys belong here or into the query as {secret:NAME}, never as they are."),
    )
    form_fields = EntriesField(
        EntryColumns(name_placeholder="city", template_placeholder="{city}"),
        label=_("Form fields"),
        help_text=_("What is sent as browsers send forms."),
    )

    class Meta:
        model = HttpTool
        fields = (
            "name",
            "enabled",
            "description",
            "method",
            "url",
            "query",
            "headers",
            "body_kind",
            "body",
            "answer_kind",
            "answer_path",
            "timeout_seconds",
            "max_kib",
            "cache_seconds",
            "parameters_schema",
        )
        help_texts = HELP
        widgets = {  # noqa: RUF012 - Django's own way to say it
            "description": forms.Textarea(attrs={"rows": 3, "class": "vLargeTextField"}),
            "url": forms.TextInput(
                attrs={"class": "vLargeTextField template", "spellcheck": "false"}
            ),
            "body": forms.Textarea(attrs=JSON_INPUT | {"rows": 6}),
            "answer_path": forms.TextInput(
                attrs={"class": "vTextField template", "spellcheck": "false"}
            ),
        }

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if self.instance.body_kind == FORM and isinstance(
            entries := parse_json_or_none(self.instance.body), dict
        ):
            self.initial.update({"form_fields": entries, "body": ""})
        for name, text in PLACEHOLDERS.items():
            self.show_unsaid(name, text)

    def clean(self) -> dict[str, Any]:
        """A form's fields are the body; a request without one has none."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if cleaned.get("body_kind") == FORM and "form_fields" in cleaned:
            cleaned["body"] = json.dumps(cleaned["form_fields"], ensure_ascii=False)
        elif cleaned.get("body_kind") == NONE:
            cleaned["body"] = ""
        return cleaned

    def _update_errors(self, errors: ValidationError) -> None:
        """What is wrong with the body of a form is shown where its fields are."""
        found = getattr(errors, "error_dict", {})
        if self.cleaned_data.get("body_kind") == FORM and "body" in found:
            found["form_fields"] = found.pop("body")
        super()._update_errors(errors)  # type: ignore[misc]
