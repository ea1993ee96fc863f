"""A form for a tool's arguments, made from the schema that it declares."""

import json
from typing import Any

from django import forms
from django.forms import BoundField
from django.utils.translation import gettext

from tools.admin.declared import (
    DeclaredParameter,
    argument_schemas,
    describe_parameter,
    list_parameters,
    strip_null,
)
from tools.admin.json_field import IndentedJSONField
from tools.text.readable import drop_surrogates, escape_invisible_chars

#: The one field of a tool that does not say what it takes: all arguments as one JSON object.
WHOLE_VALUE = ""


class ArgumentForm(forms.Form):
    """A field for each argument. What is left empty is not given.

    The form reads values and judges none: that is the registry's, whose words are to be seen.
    """

    def __init__(self, schema: Any, data: Any = None) -> None:
        super().__init__(data, prefix="argument")
        self._parameters = (
            list_parameters(schema)
            if schema
            else [DeclaredParameter(WHOLE_VALUE, "object", "", is_required=False)]
        )
        parts = argument_schemas(schema)
        self.fields.update(
            {
                parameter.name: build_argument_field(parts.get(parameter.name, {}))
                for parameter in self._parameters
            }
        )

    def rows(self) -> list[tuple[BoundField, DeclaredParameter]]:
        return [
            (self[parameter.name], describe_parameter(parameter)) for parameter in self._parameters
        ]

    def arguments(self) -> Any:
        """The arguments of a valid form, as a model would give them."""
        given = {name: value for name, value in self.cleaned_data.items() if value is not None}
        return given.get(WHOLE_VALUE, {}) if WHOLE_VALUE in self.fields else given


def build_argument_field(part: dict[str, Any]) -> forms.Field:
    """The input for one argument: what is neither a plain value nor one of a few is written as
    JSON."""
    part = strip_null(part)
    values = part.get("enum")
    if isinstance(values, list):
        texts = [
            (json.dumps(value), value if isinstance(value, str) else json.dumps(value))
            for value in values
        ]
        return _choice(
            [(value, escape_invisible_chars(drop_surrogates(text))) for value, text in texts]
        )
    match part.get("type"):
        case "string":
            text_area = forms.Textarea(attrs={"rows": 2, "class": "vLargeTextField"})
            return forms.CharField(required=False, strip=False, empty_value=None, widget=text_area)
        case "integer":
            return forms.IntegerField(required=False)
        case "number":
            return forms.FloatField(required=False, widget=forms.NumberInput(attrs={"step": "any"}))
        case "boolean":
            return _choice([("true", gettext("yes")), ("false", gettext("no"))])
        case _:
            return IndentedJSONField(required=False)


def _choice(choices: list[tuple[str, str]]) -> forms.TypedChoiceField:
    return forms.TypedChoiceField(
        choices=[("", "-"), *choices], coerce=json.loads, empty_value=None, required=False
    )
