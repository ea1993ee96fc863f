"""A form field for a tool's parameters: a small table, or JSON Schema for what a table cannot
express."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from tools.admin.json_field import JSON_INPUT
from tools.http_tools.admin.parameter_rows import KINDS, rows_to_schema, schema_to_rows
from tools.http_tools.admin.table_field import TableColumn, TableRow, TableWidget, check_row_count
from tools.text.storable import make_storable

ROWS = "rows"
JSON = "json"
COLUMNS = (
    TableColumn("name", _("name"), placeholder="city"),
    TableColumn("kind", _("type"), "choice", choices=KINDS),
    TableColumn(
        "description", _("description for the model"), "area", placeholder=_("The city, e.g. 北京")
    ),
    TableColumn("required", _("required"), "tick"),
    TableColumn("choices", _("values"), placeholder=_("sunny, rainy")),
    TableColumn("default", _("default")),
    TableColumn("more", _("more rules"), "more", placeholder='{"minimum": 1}'),
)


@dataclass(frozen=True, slots=True)
class ParametersInput:
    """What the field shows or was sent: ``way`` says which of the two counts."""

    way: str = ROWS
    rows: list[TableRow] = field(default_factory=list)
    text: str = ""
    fits_rows: bool = True
    """Whether a table can express all of it."""


class ParametersWidget(forms.Widget):
    """The table and the text, of which the one that is chosen counts."""

    def __init__(self) -> None:
        super().__init__()
        self.table = TableWidget(COLUMNS, _("Add an argument"))

    def value_from_datadict(
        self, data: Mapping[str, Any], files: Any, name: str
    ) -> ParametersInput:
        way = JSON if data.get(f"{name}-as") == JSON else ROWS
        rows = self.table.value_from_datadict(data, files, f"{name}-row")
        return ParametersInput(way, rows, str(data.get(f"{name}-json") or ""))

    def value_omitted_from_data(self, data: Mapping[str, Any], files: Any, name: str) -> bool:
        return f"{name}-as" not in data

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        shown = value if isinstance(value, ParametersInput) else to_parameters_input(value)
        text = forms.Textarea(
            attrs=JSON_INPUT | {"rows": 14, "id": f"id_{name}-json", "aria-label": "JSON Schema"}
        )
        context = {
            "name": name,
            "shown": shown,
            "table": self.table.render(f"{name}-row", shown.rows),
            "text": text.render(f"{name}-json", shown.text),
        }
        return SafeString(render_to_string("admin/tools/httptool/parameters.html", context))


class ParametersField(forms.Field):
    """The JSON Schema that was written, one way or the other."""

    widget = ParametersWidget

    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, **options)

    def bound_data(self, data: Any, initial: Any) -> Any:
        return data

    def prepare_value(self, value: Any) -> Any:
        return value if isinstance(value, ParametersInput) else to_parameters_input(value)

    def clean(self, value: Any) -> Any:
        given: ParametersInput = value or ParametersInput()
        if given.way == JSON:
            return _parsed(given.text)
        check_row_count(given.rows)
        schema, problems = rows_to_schema(given.rows)
        if problems:
            raise ValidationError(problems)
        return schema if schema["properties"] else {}

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            cleaned = self.clean(data)
        except ValidationError:
            return True
        return json.dumps(cleaned, sort_keys=True) != json.dumps(initial or {}, sort_keys=True)


def to_parameters_input(schema: Any) -> ParametersInput:
    """``schema`` in both forms; as JSON where a table cannot express all of it."""
    rows = schema_to_rows(schema)
    text = json.dumps(schema, ensure_ascii=False, indent=2) if schema else ""
    return ParametersInput(
        JSON if rows is None else ROWS, rows or [], text, fits_rows=rows is not None
    )


def _parsed(text: str) -> Any:
    if not text.strip():
        return {}
    try:
        return make_storable(json.loads(text, parse_constant=_refused))
    except RecursionError as error:
        raise ValidationError(gettext("The JSON is nested too deep.")) from error
    except ValueError as error:
        raise ValidationError(
            gettext("This cannot be read as JSON: %(error)s") % {"error": error}
        ) from error


def _refused(word: str) -> None:
    raise ValueError(f"{word} is not JSON")
