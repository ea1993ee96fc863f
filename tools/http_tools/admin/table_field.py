"""Small tables in a form: rows of texts that can be added and removed, also without scripts; and of
a tool's parameters, with JSON Schema for what a table cannot express."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _

from tools.admin.fields import JSON_INPUT
from tools.schemas.arguments import parse_strict_json
from tools.text.storable import make_storable

SPARE_ROWS = 3
"""Empty rows below the filled ones; what is written there is added."""
MAX_ROWS = 200

TableRow = dict[str, str]


class TableRows(list[TableRow]):
    """Rows as a browser sent them, or as they are shown; any other list is invalid input."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column. ``kind`` is text, area, choice, tick, or more, which is folded away while it is
    empty."""

    name: str
    label: Any
    kind: str = "text"
    choices: tuple[tuple[str, Any], ...] = ()
    placeholder: Any = ""
    suggestions: str = ""
    """The id of a ``datalist`` of the page."""


@dataclass(frozen=True, slots=True)
class TableCell:
    """One input: its column, the name under which it is sent, and its text."""

    column: TableColumn
    name: str
    value: str


class TableWidget(forms.Widget):
    """The rows as a table. A row whose first column is left empty is not there."""

    template_name = "admin/tools/httptool/table.html"

    def __init__(self, columns: Iterable[TableColumn], add_label: object = None) -> None:
        super().__init__()
        self.columns, self.add_label = tuple(columns), add_label or _("Add a row")

    def value_from_datadict(
        self, data: Mapping[str, object], files: object, name: str
    ) -> TableRows:
        """The rows in the order of their numbers, those that are wholly empty left out."""
        pattern = re.compile(
            rf"{re.escape(name)}-(\d{{1,6}})-({'|'.join(column.name for column in self.columns)})"
        )
        rows: dict[int, TableRow] = {}
        for key in data:
            if found := pattern.fullmatch(key):
                rows.setdefault(int(found[1]), {})[found[2]] = str(data.get(key) or "").replace(
                    "\0", ""
                )
        written = [
            column.name for column in self.columns if column.kind in ("text", "area", "more")
        ]
        return TableRows(
            row
            for _number, row in sorted(rows.items())
            if any(row.get(one, "").strip() for one in written)
        )

    def value_omitted_from_data(self, data: Mapping[str, object], files: object, name: str) -> bool:
        return name not in data and not self.value_from_datadict(data, files, name)

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        rows = [*(value or ()), *({} for _ in range(SPARE_ROWS))]
        context = {
            "name": name,
            "columns": self.columns,
            "rows": [self._cells(f"{name}-{number}", row) for number, row in enumerate(rows)],
            "blank": self._cells(f"{name}-__number__", {}),
            "count": len(rows),
            "add_label": self.add_label,
        }
        return SafeString(render_to_string(self.template_name, context))

    def _cells(self, prefix: str, row: Mapping[str, str]) -> list[TableCell]:
        return [
            TableCell(column, f"{prefix}-{column.name}", row.get(column.name, ""))
            for column in self.columns
        ]


def check_row_count(rows: list[TableRow]) -> None:
    """Raise ValidationError for more rows than a table may have."""
    if len(rows) > MAX_ROWS:
        raise ValidationError(gettext("At most %(limit)d rows.") % {"limit": MAX_ROWS})


class EntriesField(forms.Field):
    """Names and their templates as an object: ``{name: template}``, a list of templates for a name
    that stands more than once."""

    def __init__(self, name_placeholder: str, template_placeholder: str, **options: Any) -> None:
        columns = (
            TableColumn("name", _("name"), placeholder=name_placeholder),
            TableColumn(
                "template",
                _("value"),
                placeholder=template_placeholder,
                suggestions="placeholders",
            ),
        )
        super().__init__(widget=TableWidget(columns), required=False, **options)

    def bound_data(self, data: object, initial: object) -> Any:
        """What was typed is shown again."""
        return data

    def clean(self, value: Any) -> dict[str, Any]:
        rows: list[TableRow] = value or []
        check_row_count(rows)
        read: dict[str, list[str]] = {}
        for number, row in enumerate(rows, 1):
            if not (name := row.get("name", "").strip()):
                raise ValidationError(
                    gettext("Row %(number)d: the name is missing.") % {"number": number}
                )
            read.setdefault(name, []).append(row.get("template", "").strip())
        return {
            name: templates if len(templates) > 1 else templates[0]
            for name, templates in read.items()
        }

    def prepare_value(self, value: object) -> Any:
        if isinstance(value, dict):
            return entry_rows(value)
        return value if isinstance(value, TableRows) else TableRows()

    def has_changed(self, initial: Any, data: Any) -> bool:
        rows = entry_rows(initial) if isinstance(initial, dict) else []
        return [_stripped(row) for row in rows] != [_stripped(row) for row in data or ()]


def entry_rows(entries: dict[str, Any]) -> TableRows:
    """The rows that stand for ``entries``; a number, true and false stand there as their texts."""
    return TableRows(
        {"name": name, "template": _text(value)}
        for name, values in entries.items()
        for value in (values if isinstance(values, list) else [values])
    )


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _stripped(row: TableRow) -> tuple[str, str]:
    return row.get("name", "").strip(), row.get("template", "").strip()


# A tool's parameters as rows of a small form, and back to JSON Schema without loss. Pure.

ParameterRow = Mapping[str, str]
"""The texts of one row: name, kind, description, required ("on" or ""), default, choices and more.

``more`` is a JSON object with what the other columns have no place for.
"""
CHOICE = "choice"
OTHER = "other"
KINDS = (
    ("string", _("plain text")),
    ("integer", _("whole number")),
    ("number", _("decimal number")),
    ("boolean", _("yes or no")),
    (CHOICE, _("one of a list")),
    (OTHER, _("other (JSON)")),
)
PLAIN = frozenset({"string", "integer", "number", "boolean"})
_SEPARATORS = re.compile(r"[,，、;；\n]")
_WORDS = {
    "true": True,
    "yes": True,
    "on": True,
    "是": True,
    "false": False,
    "no": False,
    "off": False,
    "否": False,
}


def schema_to_rows(schema: Any) -> list[dict[str, str]] | None:
    """``schema`` as rows; None when rows cannot express all of it."""
    if schema in (None, {}):
        return []
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or not all(
        isinstance(part, dict) for part in properties.values()
    ):
        return None
    required = schema.get("required", [])
    if not isinstance(required, list):
        return None
    rows = [_row(name, part, is_required=name in required) for name, part in properties.items()]
    try:
        again, problems = rows_to_schema(rows)
    except RecursionError:
        return None
    return rows if not problems and _sorted(again) == _sorted(schema) else None


def rows_to_schema(rows: Sequence[ParameterRow]) -> tuple[dict[str, Any], list[str]]:
    """The JSON Schema of ``rows``, and a translated line for each error in them."""
    properties: dict[str, Any] = {}
    problems = []
    for number, row in enumerate(rows, 1):
        name = row.get("name", "").strip()
        part, wrong = _property(row)
        if not name:
            wrong = [gettext("the name is missing")]
        elif name in properties:
            wrong = [gettext("“%(name)s” stands twice") % {"name": name}, *wrong]
        problems += [
            gettext("Row %(number)d: %(fault)s.") % {"number": number, "fault": line}
            for line in wrong
        ]
        properties.setdefault(name, part)
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required := [
        name for row in rows if row.get("required") and (name := row.get("name", "").strip())
    ]:
        schema["required"] = required
    return schema, problems


def _property(row: ParameterRow) -> tuple[dict[str, Any], list[str]]:
    kind = row.get("kind") or "string"
    part: dict[str, Any] = {} if kind == OTHER else {"type": "string" if kind == CHOICE else kind}
    problems = [] if kind in dict(KINDS) else [gettext("there is no such type")]
    choices = [
        choice for text in _SEPARATORS.split(row.get("choices", "")) if (choice := text.strip())
    ]
    if kind == CHOICE:
        part["enum"] = list(dict.fromkeys(choices))
        if not choices:
            problems.append(gettext("write the values to choose from, separated by commas"))
    elif choices:
        problems.append(gettext("values to choose from need the type “one of a list”"))
    if description := row.get("description", "").strip():
        part["description"] = description
    if default := row.get("default", "").strip():
        _set_default(part, kind, default, problems)
    _add_more(part, row.get("more", ""), problems)
    return part, problems


def _set_default(part: dict[str, Any], kind: str, text: str, problems: list[str]) -> None:
    try:
        part["default"] = _value(kind, text)
    except (ValueError, RecursionError):
        problems.append(
            gettext("the default “%(text)s” does not fit the type") % {"text": text[:60]}
        )
        return
    if kind == CHOICE and text not in part["enum"]:
        problems.append(
            gettext("the default “%(text)s” is none of the values") % {"text": text[:60]}
        )


def _value(kind: str, text: str) -> Any:
    """Raises ValueError for a text that is no value of that kind."""
    match kind:
        case "string" | "choice":
            return text
        case "boolean":
            if text.lower() not in _WORDS:
                raise ValueError(text)
            return _WORDS[text.lower()]
        case "integer" | "number":
            value = parse_strict_json(text)
            if isinstance(value, bool) or not isinstance(
                value, int if kind == "integer" else int | float
            ):
                raise ValueError(text)
            return value
        case _:
            return parse_strict_json(text)


def _add_more(part: dict[str, Any], text: str, problems: list[str]) -> None:
    if not text.strip():
        return
    try:
        more = make_storable(parse_strict_json(text))
    except (ValueError, RecursionError):
        more = None
    if isinstance(more, dict):
        part.update(more)
    else:
        problems.append(gettext("“more rules” is no JSON object"))


def _row(name: str, part: dict[str, Any], *, is_required: bool) -> dict[str, str]:
    rest = dict(part)
    row = {
        "name": name,
        "kind": OTHER,
        "description": "",
        "required": "on" if is_required else "",
        "default": "",
        "choices": "",
    }
    if _is_list_of_choices(rest):
        row |= {"kind": CHOICE, "choices": ", ".join(rest.pop("enum"))}
        del rest["type"]
    elif isinstance(rest.get("type"), str) and rest["type"] in PLAIN:
        row["kind"] = rest.pop("type")
    if isinstance(words := rest.get("description"), str) and words and words == words.strip():
        row["description"] = rest.pop("description")
    if "default" in rest and (text := _default_text(row["kind"], rest["default"])):
        row["default"] = text
        del rest["default"]
    return row | {"more": json.dumps(rest, ensure_ascii=False) if rest else ""}


def _default_text(kind: str, value: object) -> str:
    """How ``value`` is written into its column; "" where it cannot be."""
    text = (
        value if isinstance(value, str) and kind != OTHER else json.dumps(value, ensure_ascii=False)
    )
    try:
        read = _value(kind, text)
    except ValueError:
        return ""
    is_same = type(read) is type(value) and read == value
    return text if is_same and text == text.strip() else ""


def _is_list_of_choices(part: dict[str, Any]) -> bool:
    values = part.get("enum")
    if (
        part.get("type") != "string"
        or not isinstance(values, list)
        or not values
        or len({*map(str, values)}) < len(values)
    ):
        return False
    return all(
        isinstance(value, str)
        and value
        and value == value.strip()
        and not _SEPARATORS.search(value)
        for value in values
    )


def _sorted(schema: Any) -> str:
    """``schema`` as text in which the order of names, and that of what is required, does not count;
    1 and 1.0 differ."""
    known = dict(schema)
    if isinstance(required := known.get("required"), list):
        known["required"] = sorted(map(str, required))
    return json.dumps(known, sort_keys=True)


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
        self, data: Mapping[str, object], files: object, name: str
    ) -> ParametersInput:
        way = JSON if data.get(f"{name}-as") == JSON else ROWS
        rows = self.table.value_from_datadict(data, files, f"{name}-row")
        return ParametersInput(way, rows, str(data.get(f"{name}-json") or ""))

    def value_omitted_from_data(self, data: Mapping[str, object], files: object, name: str) -> bool:
        return f"{name}-as" not in data

    def render(
        self, name: str, value: object, attrs: object = None, renderer: object = None
    ) -> SafeString:
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

    def bound_data(self, data: object, initial: object) -> Any:
        return data

    def prepare_value(self, value: object) -> Any:
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

    def has_changed(self, initial: object, data: object) -> bool:
        try:
            cleaned = self.clean(data)
        except ValidationError:
            return True
        return json.dumps(cleaned, sort_keys=True) != json.dumps(initial or {}, sort_keys=True)


def to_parameters_input(schema: object) -> ParametersInput:
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
        return make_storable(parse_strict_json(text))
    except RecursionError as error:
        raise ValidationError(gettext("The JSON is nested too deep.")) from error
    except ValueError as error:
        raise ValidationError(
            gettext("This cannot be read as JSON: %(error)s") % {"error": error}
        ) from error
