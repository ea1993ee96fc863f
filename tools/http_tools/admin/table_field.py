"""Small tables in a form: rows of texts that can be added and removed, also without scripts."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _

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

    def __init__(self, columns: Iterable[TableColumn], add_label: Any = None) -> None:
        super().__init__()
        self.columns, self.add_label = tuple(columns), add_label or _("Add a row")

    def value_from_datadict(self, data: Mapping[str, Any], files: Any, name: str) -> TableRows:
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
        return TableRows(row for _number, row in sorted(rows.items()) if self._is_filled(row))

    def value_omitted_from_data(self, data: Mapping[str, Any], files: Any, name: str) -> bool:
        return name not in data and not self.value_from_datadict(data, files, name)

    def _is_filled(self, row: TableRow) -> bool:
        return any(
            row.get(column.name, "").strip()
            for column in self.columns
            if column.kind in ("text", "area", "more")
        )

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


class TableField(forms.Field):
    """A field that reads rows; subclasses say what they stand for. ``bound_data`` shows what was
    typed again."""

    def __init__(self, columns: Iterable[TableColumn], **options: Any) -> None:
        super().__init__(widget=TableWidget(columns), required=False, **options)

    def bound_data(self, data: Any, initial: Any) -> Any:
        return data


def check_row_count(rows: list[TableRow]) -> None:
    """Raise ValidationError for more rows than a table may have."""
    if len(rows) > MAX_ROWS:
        raise ValidationError(gettext("At most %(limit)d rows.") % {"limit": MAX_ROWS})


@dataclass(frozen=True, slots=True)
class EntryColumns:
    """How a table of names and templates is labelled."""

    name: Any = field(default=_("name"))
    template: Any = field(default=_("value"))
    name_placeholder: Any = ""
    template_placeholder: Any = ""


class EntriesField(TableField):
    """Names and their templates as an object: ``{name: template}``, a list of templates for a name
    that stands more than once."""

    def __init__(self, words: EntryColumns, **options: Any) -> None:
        columns = (
            TableColumn("name", words.name, placeholder=words.name_placeholder),
            TableColumn(
                "template",
                words.template,
                placeholder=words.template_placeholder,
                suggestions="places",
            ),
        )
        super().__init__(columns, **options)

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

    def prepare_value(self, value: Any) -> Any:
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


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _stripped(row: TableRow) -> tuple[str, str]:
    return row.get("name", "").strip(), row.get("template", "").strip()
