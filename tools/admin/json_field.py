"""JSON that people write into a form."""

import json
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms.fields import InvalidJSONInput

from tools.text.storable import make_storable

JSON_INPUT = {"rows": 4, "class": "vLargeTextField template", "spellcheck": "false"}


class IndentedJSONField(forms.JSONField):
    """JSON shown as people write it; whatever cannot be read or stored is refused, never raised."""

    widget = forms.Textarea(attrs=JSON_INPUT)

    def to_python(self, value: Any) -> Any:
        if isinstance(value, str) and not value.strip():
            value = ""
        try:
            content = make_storable(super().to_python(value))
            json.dumps(content, allow_nan=False)  # no database takes NaN and Infinity
            return content
        except (
            ValueError,
            RecursionError,
        ) as error:  # numbers and nesting beyond what Python reads
            raise ValidationError(
                self.error_messages["invalid"], code="invalid", params={"value": value}
            ) from error

    def bound_data(self, data: Any, initial: Any) -> Any:
        """What was typed is shown again as it was typed."""
        return InvalidJSONInput(data or "")

    def prepare_value(self, value: Any) -> Any:
        if value is None or isinstance(value, InvalidJSONInput):
            return value
        return json.dumps(value, ensure_ascii=False, indent=2)
