"""A chat as a file: JSONL for a program, CSV for a spreadsheet, Markdown for reading."""

import csv
import io
import json
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any, ClassVar

from asgiref.sync import sync_to_async
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.utils.decorators import method_decorator
from django.utils.translation import gettext, gettext_lazy as _
from django.views.decorators.http import require_POST

from agent.access import find_access
from agent.domain.states import ActKind
from agent.models import ChatSession, Message
from agent.record.chats.person_names import find_names
from agent.record.waiting.operator_acts import record_act
from tools.admin.record_pages import Addresses, ModelAdmin, author_of, parse_row_number
from tools.admin.spreadsheet import escape_formula
from tools.local_time import find_zone

#: Messages that are read at a time.
BATCH = 500
FIELDS = (
    *("id", "at", "direction", "sender_id", "sender_name", "text", "media_text", "state"),
    *("reason", "message_id", "quoted_id", "run", "author", "recalled_at"),
)

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ExportForm:
    """One kind of file. ``head`` is written once; ``write`` makes the text of some rows."""

    content_type: str
    suffix: str
    head: Callable[[ChatSession], str]
    write: Callable[[Iterable[Row]], str]


async def stream_chat(session: ChatSession, form: ExportForm, zone: tzinfo) -> AsyncIterator[str]:
    """The file in pieces, from the oldest message to the newest, read as it is sent: a large chat
    takes no more memory than a small one. Times are those of ``zone``."""
    yield form.head(session)
    after = 0
    while rows := await sync_to_async(_load_rows)(session.pk, after, zone):
        after = rows[-1]["id"]
        yield form.write(rows)


def _load_rows(session_pk: int, after: int, zone: tzinfo) -> list[Row]:
    found = Message.objects.filter(session=session_pk, pk__gt=after).order_by("pk")
    messages = list(found.defer("segments", "raw", "header")[:BATCH])
    nameless = [one.sender_id for one in messages if one.direction == "in" and not one.sender_name]
    names = find_names(nameless, Q(session=session_pk))
    return [_row(message, zone, names.get(message.sender_id, "")) for message in messages]


def _row(message: Message, zone: tzinfo, known_name: str) -> Row:
    values = (
        *(message.pk, message.created_at.astimezone(zone).isoformat(), message.direction),
        *(message.sender_id, message.sender_name or known_name, message.text, message.media_text),
        *(message.state, message.reason, message.message_id, message.quoted_id or ""),
        *(message.run_id, message.author or ""),
        message.recalled_at.astimezone(zone).isoformat() if message.recalled_at else "",
    )
    return dict(zip(FIELDS, values, strict=True))


def _write_csv(rows: Iterable[Row]) -> str:
    table = io.StringIO()
    csv.writer(table).writerows([escape_formula(value) for value in row.values()] for row in rows)
    return table.getvalue()


def _markdown_message(row: Row) -> str:
    at = datetime.fromisoformat(row["at"])
    who = row["sender_name"] or row["sender_id"] if row["direction"] == "in" else gettext("bot")
    if row["author"]:
        who = f"{who} ({row['author']})"
    # Quoted, so that nothing in the words is a heading, a picture or HTML of the file itself.
    said = "\n".join(f">     {line}" for line in f"{row['text']}{row['media_text']}".splitlines())
    return f"\n**{_plain(str(who))}** {at:%Y-%m-%d %H:%M:%S}\n\n{said}\n"


def _plain(text: str) -> str:
    """``text`` without what Markdown would read as more than words."""
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]()<>#+-.!|~&" else sign for sign in text)


FORMS = {
    "jsonl": ExportForm(
        "application/x-ndjson",
        "jsonl",
        lambda session: "",
        lambda rows: "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows),
    ),
    "csv": ExportForm(
        "text/csv; charset=utf-8",
        "csv",
        lambda session: "\ufeff" + ",".join(FIELDS) + "\r\n",
        _write_csv,
    ),
    "markdown": ExportForm(
        "text/markdown; charset=utf-8",
        "md",
        lambda session: f"# {_plain(str(session))}\n\n{session.account} · {session.key}\n",
        lambda rows: "".join(map(_markdown_message, rows)),
    ),
}


# The address where a chat is taken away as a file.

EXPORT = "agent.export_chatsession"
#: The forms of :data:`FORMS`, as buttons say them.
EXPORT_FORMS = (
    ("markdown", _("Markdown, to read")),
    ("csv", _("CSV, for a spreadsheet")),
    ("jsonl", _("JSONL, for programs")),
)


class SessionExport(ModelAdmin):
    """For the pages of chats: ``POST <chat>/export/<form>/``. Each is on record as an act."""

    addresses: ClassVar[Addresses] = (("export", "<path:object_id>/export/<slug:form>/"),)

    @method_decorator(require_POST)
    def export_view(self, request: HttpRequest, object_id: str, form: str) -> StreamingHttpResponse:
        wanted = FORMS.get(form)
        session = get_object_or_404(ChatSession, pk=parse_row_number(object_id))
        if wanted is None or not find_access(request.user).covers(session):
            raise Http404
        if not request.user.has_perms((EXPORT, "agent.view_message")):
            raise PermissionDenied
        record_act(ActKind.EXPORT, session.pk, author_of(request), detail=form)
        name = f"{session.account}-{session.kind}-{session.peer_id}.{wanted.suffix}"
        return StreamingHttpResponse(
            stream_chat(session, wanted, find_zone()),
            content_type=wanted.content_type,
            headers={
                "Content-Disposition": f'attachment; filename="{name}"',
                "Cache-Control": "no-store",
            },
        )
