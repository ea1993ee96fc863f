"""Notes as files: CSV for a spreadsheet, JSON for a program."""

import csv
import io
import json
from collections.abc import Iterable
from typing import Any

from django.http import HttpResponse

from agent.models import Note
from tools.admin.spreadsheet import escape_formula

#: Notes that one file may hold.
EXPORT_LIMIT = 10_000
EXPORT_FIELDS = (
    *(
        "id",
        "platform",
        "account",
        "owner_kind",
        "owner_id",
        "visibility",
        "chat",
        "source",
        "said_by",
        "said_by_name",
    ),
    *("message_id", "created_at", "last_used_at", "use_count", "expires_at", "tags", "text"),
)


def export_notes_json(notes: Iterable[Note]) -> HttpResponse:
    """A list of objects, times in ISO 8601."""
    rows = [{name: _plain(getattr(note, name)) for name in EXPORT_FIELDS} for note in notes]
    return _file(json.dumps(rows, ensure_ascii=False, indent=1), "application/json", "notes.json")


def export_notes_csv(notes: Iterable[Note]) -> HttpResponse:
    """A table with a head line. A cell that a spreadsheet would compute begins with an
    apostrophe."""
    table = io.StringIO()
    writer = csv.writer(table)
    writer.writerow(EXPORT_FIELDS)
    writer.writerows(
        [_cell(_plain(getattr(note, name))) for name in EXPORT_FIELDS] for note in notes
    )
    return _file("\ufeff" + table.getvalue(), "text/csv; charset=utf-8", "notes.csv")


def _plain(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value


def _cell(value: Any) -> Any:
    text = ", ".join(value) if isinstance(value, list) else value
    return escape_formula(text)


def _file(content: str, content_type: str, name: str) -> HttpResponse:
    return HttpResponse(
        content,
        content_type=content_type,
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
