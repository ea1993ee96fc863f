"""Chats: the list, the page of one with its settings, and a chat as a file."""

import csv
import io
import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import partial
from math import isfinite
from operator import getitem
from typing import Any, ClassVar

from asgiref.sync import sync_to_async
from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.utils.functional import SimpleLazyObject
from django.utils.translation import gettext, gettext_lazy as _

from agent.access import find_access
from agent.admin.chats import panel, session_list
from agent.admin.chats.acts import SessionActs, describe_acts
from agent.admin.chats.stream import SessionStream, load_stream
from agent.domain.chat_state import (
    SIZE_LIMIT,
    TEMPORARY,
    StateChange,
    diff_states,
    is_same_json,
    is_value_name,
    stored_state_size,
)
from agent.domain.states import ActKind
from agent.models import ChatSession, Manners, Message, Reminder
from agent.models.manners import LIMITS
from agent.models.reminder import OPEN_STATES
from agent.pages.own_chats import OwnChatsAdmin
from agent.record.chats.person_names import find_names
from agent.record.chats.sessions import save_changes
from agent.record.settings import chat_manners, manners
from agent.record.waiting.operator_acts import record_act
from tools.admin.fields import IndentedJSONField, escape_formula
from tools.admin.record_pages import (
    LISTED_WINDOW,
    WORD_LIMIT,
    RecordAdmin,
    Rows,
    author_of,
    by_post,
    listed_floor,
    parse_row_number,
    require,
)
from tools.admin.settings_page import HistoryAdmin, SettingsForm
from tools.local_time import find_zone
from tools.models.row_history import record_changes
from tools.text.readable import escape_direction_chars

#: Messages that are read at a time.
BATCH = 500
FIELDS = (
    *("id", "at", "direction", "sender_id", "sender_name", "text", "media_text", "state"),
    *("reason", "message_id", "quoted_id", "run", "author", "recalled_at"),
)

#: The direction of what is still to be said.
REMINDER = "reminder"
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
    if rows := await sync_to_async(_load_reminders)(session.pk, zone):
        yield form.write(rows)


def _load_reminders(session_pk: int, zone: tzinfo) -> list[Row]:
    """What is still to be said, at the time at which it is due; ``reason`` is its rule."""
    is_open = Reminder.objects.filter(session=session_pk, state__in=OPEN_STATES)
    return [
        dict.fromkeys(FIELDS, "")
        | {
            "id": row.pk,
            "at": row.due_at.astimezone(zone).isoformat(),
            "direction": REMINDER,
            "sender_id": row.set_by,
            "text": row.text,
            "state": row.state,
            "reason": row.repeat,
        }
        for row in is_open.order_by("due_at", "pk")
    ]


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
    if row["direction"] == REMINDER:
        who = f"{gettext('reminder')} #{row['id']}"
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


# What an operator may set of a chat: its state, which the persona's prompt shows, its timing
# gate, and the limits of answers in its own row of manners.

#: Characters of a wrong name that its fault repeats.
NAME_SHOWN = 64


def _own_limit(name: str, label: object) -> Any:
    column: Any = Manners._meta.get_field(name)
    words = _("In this chat. 0: no limit. Empty: as other rows of manners say.")
    return column.formfield(label=label, help_text=words)


class StateForm(SettingsForm):
    """The state as JSON. What the page showed is sent along, so that only what was changed there is
    saved."""

    person_per_minute = _own_limit("person_per_minute", _("answers to one person a minute"))
    person_per_day = _own_limit("person_per_day", _("answers to one person a day"))
    chat_per_minute = _own_limit("chat_per_minute", _("answers in this chat a minute"))
    chat_per_day = _own_limit("chat_per_day", _("answers in this chat a day"))

    state = IndentedJSONField(
        label=_("state"),
        required=False,
        show_hidden_initial=True,
        help_text=_(
            'What {placeholders} in the persona\'s prompt stand for in this chat: {"name": '
            '"value"}. The program itself knows'
            " bot_name, chat_kind, date, time and weekday. Tools may read and change these values."
        ),
    )

    class Meta:
        model = ChatSession
        fields = ("timing_gate", "state")

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)
        # asked for by the panel of settings alone, which few pages show
        limits = SimpleLazyObject(lambda: own_limits(self.instance))
        self.initial.update((name, partial(getitem, limits, name)) for name in LIMITS)
        if gate := self.fields.get("timing_gate"):  # a page that only shows has none
            gate.widget = forms.NullBooleanSelect()
            gate.widget.choices = [
                ("unknown", _("as the bot's page says")),
                ("true", _("yes")),
                ("false", _("no")),
            ]
            gate.help_text = _("Whether a small model call decides first if and when to answer.")

    def changed_values(self, *names: str) -> dict[str, Any]:
        """The fields among ``names`` that were changed on the page; what a request leaves out, as a
        script's may, stays as it is."""
        return {name: self.cleaned_data[name] for name in names if name in self.changed_data}

    def clean_state(self) -> dict[str, Any]:
        """A request that leaves the field out, as a script's may, changes nothing; an emptied one
        empties the state."""
        state = self.cleaned_data["state"]
        if problems := list(state_messages({} if state is None else state, self._stored)):
            raise ValidationError(problems)
        return state or {}

    def change(self) -> StateChange:
        """What was changed on the page, of a form that is valid."""
        return diff_states(self.instance.pk, self._shown(), self.cleaned_data["state"])

    @property
    def _stored(self) -> dict[str, Any]:
        state = self.initial.get("state")
        return state if isinstance(state, dict) else {}

    def _shown(self) -> dict[str, Any]:
        """The state when the page was made: a tool may have changed it since."""
        try:
            shown = self.fields["state"].clean(self.data.get(self.add_initial_prefix("state")))
        except ValidationError:
            shown = None
        return shown if isinstance(shown, dict) else self._stored


def own_limits(session: ChatSession) -> dict[str, int | None]:
    """The limits that the row of manners for this chat alone says."""
    row = (
        chat_manners.find_chat_manners(session_list.session_address(session))
        if session.pk
        else None
    )
    return {name: getattr(row, name, None) for name in LIMITS}


def state_messages(state: object, stored: Mapping[str, object]) -> Iterator[str]:
    """The reasons why ``state`` cannot be saved, one translated line each.

    Values that people write are flat, as placeholders show them; a value that a tool stored may
    have any shape, and is accepted while it is unchanged.
    """
    if not isinstance(state, dict):
        yield gettext('Write an object: {"name": "value"}.')
        return
    written = {
        name: value
        for name, value in state.items()
        if name not in stored or not is_same_json(value, stored[name])
    }
    problems = [problem for name, value in written.items() if (problem := _problem(name, value))]
    yield from problems
    if not problems and (over := stored_state_size(state)) > SIZE_LIMIT:
        yield gettext("A state has room for %(limit)d bytes; this one has %(size)d.") % {
            "limit": SIZE_LIMIT,
            "size": over,
        }


def _problem(name: str, value: object) -> str:
    """The error in one entry that a person wrote; "" if there is none."""
    if name.startswith(TEMPORARY):
        problem = gettext(
            "“%(name)s”: what begins with temp: is never stored; only tools set it, for one run."
        )
    elif not is_value_name(name):
        problem = gettext(
            "“%(name)s” is no name: write letters, digits and _, at most with app: or user: "
            "before them."
        )
    elif isinstance(value, dict | list) or (isinstance(value, float) and not isfinite(value)):
        problem = gettext("“%(name)s” needs a text, a number, true, false or null.")
    else:
        problem = ""
    return problem % {"name": name[:NAME_SHOWN]}


#: Characters of words that are searched.
LONGEST_SEARCH = 200


@admin.register(ChatSession)
class ChatSessionAdmin(OwnChatsAdmin, SessionStream, SessionActs, HistoryAdmin, RecordAdmin):
    addresses = (("export", "<path:object_id>/export/<slug:form>/"),)
    chat_prefix = ""
    list_filter = (
        session_list.RecentlyActive,
        "kind",
        session_list.AccountFilter,
        session_list.SpeakingFilter,
    )
    ordering = ("-last_message_at", "-id")
    search_help_text: ClassVar = _(
        "The id of a group or a person, words of a title, and words and names in the newest "
        "100,000 messages."
    )
    text_fields = ("title",)
    exact_lookups: ClassVar = {
        "pk": parse_row_number,
        "peer_id": lambda term: term.rpartition(":")[2],
    }
    free_lookups = frozenset({"since", "last_message_at__lte"})
    list_defer = ("state", "discovered_tools")
    change_list_template = "admin/agent/chatsession/change_list.html"
    change_form_template = "admin/agent/chatsession/change_form.html"
    form = StateForm
    are_few = True
    rights = frozenset({"change"})  # of its state, its timing gate and its limits

    def get_fields(self, request: HttpRequest, obj: ChatSession | None = None) -> Any:
        """Only chats of a platform that has manners have limits."""
        has_limits = obj is not None and obj.platform == manners.ONEBOT
        return "timing_gate", *(LIMITS if has_limits else ()), "state"

    def save_model(
        self, request: HttpRequest, obj: ChatSession, form: StateForm, change: bool
    ) -> None:
        """Store only what was changed on the page: the server may write the rest of the row
        meanwhile."""
        with record_changes(author_of(request), obj):
            save_changes([form.change()])
            if changes := form.changed_values("timing_gate"):
                ChatSession.objects.filter(pk=obj.pk).update(**changes)
        if limits := form.changed_values(*LIMITS):
            chat_manners.change_chat_manners(
                session_list.session_address(obj), author_of(request), **limits
            )

    # --- The list -------------------------------------------------------------------

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        session_list.draw_rows(rows, request, manners.load_manners_table())

    def beyond(self, row: ChatSession) -> dict[str, object]:
        return {"last_message_at__lte": row.last_message_at.isoformat()}

    def hits(self, term: str, rows: Rows, floor: int, *, is_filtered: bool) -> set[int]:
        """Also chats in which it was said, or by whose people."""
        found = super().hits(term, rows, floor, is_filtered=is_filtered)
        said = rows.filter(pk__in=session_list.find_sessions_by_words(term))
        return found | set(said.values_list("pk", flat=True))

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """The list; its rows alone for a page that has the rest."""
        page = {"layout": _layout(request, "bench", "rows"), **(extra_context or {})}
        return super().changelist_view(request, page)

    @by_post
    def export_view(self, request: HttpRequest, object_id: str, form: str) -> StreamingHttpResponse:
        """A chat as a file. Each is on record as an act."""
        wanted = FORMS.get(form)
        session = get_object_or_404(ChatSession, pk=parse_row_number(object_id))
        if wanted is None or not find_access(request.user).covers(session):
            raise Http404
        require(request.user.has_perms((EXPORT, "agent.view_message")))
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

    # --- The page of one chat -------------------------------------------------------

    def page_context(self, request: HttpRequest, obj: ChatSession) -> dict[str, Any]:
        layout = _layout(request, "bench", "chat", "head", "panel")
        wanted = "settings" if request.method == "POST" else request.GET.get("panel", "")
        context: dict[str, Any] = {
            "layout": layout,
            "title": escape_direction_chars(str(obj.title or obj.key)),
            "export_forms": EXPORT_FORMS,
            **panel.describe_panel(obj, request, wanted),
        }
        if layout == _PART.format("panel"):
            return context
        table = manners.load_manners_table()
        context |= {
            "is_paused": session_list.has_pause(obj),
            "pause": obj.get_pause_reason_display(),
            **session_list.describe_silence(obj, table),
            **describe_acts(obj, request),
        }
        if layout == _PART.format("head"):
            return context
        if layout == _PART.format("bench"):
            context["rows"] = session_list.list_beside(request, table, obj.pk, *self.list_defer)
        if not request.user.has_perm("agent.view_message"):
            return context
        term = request.GET.get("find", "")[:LONGEST_SEARCH].strip()
        return context | {
            "stream": load_stream(obj, request),
            "term": term,
            "hits": search_chat(obj, term) if term else None,
            "day": request.GET.get("date", ""),
        }


#: The templates that a page and its parts are laid out by.
_PART = "admin/agent/chatsession/part_{}.html"


def _layout(request: HttpRequest, *parts: str) -> str:
    """The template of the part that a script asks for, one of ``parts``; else that of the first,
    which is the whole page."""
    part = request.headers.get("X-Part", "")
    return _PART.format(part if part in parts else parts[0])


# Words inside one chat: where they were said, the newest first.

#: Messages that a search shows; characters before and after the first word that was found.
MOST_HITS, AROUND = 50, 60
#: The newest messages of the chat that are searched.
SEARCHED = LISTED_WINDOW


def search_chat(session: ChatSession, term: str) -> list[dict[str, Any]]:
    """The newest messages of ``session`` that hold every word of ``term``, in their text or their
    sender's name, or that are of the person with that id. The ``parts`` of each are its words
    around the first of them, those that were searched for marked True."""
    words = term.replace("\0", "").split()[:WORD_LIMIT]
    if not words:
        return []
    rows = Message.objects.filter(session=session)
    said = Q(*(Q(text__icontains=word) | Q(sender_name__icontains=word) for word in words))
    found: Any = rows.filter(said | Q(sender_id=term.strip()), pk__gte=listed_floor(rows))
    shown = found.only("direction", "sender_id", "sender_name", "created_at", "text", "session_id")
    return [
        {
            "message": message,
            "name": escape_direction_chars(message.sender_name or message.sender_id),
            "parts": mark_words(escape_direction_chars(message.text), words),
        }
        for message in shown.order_by("-pk")[:MOST_HITS]
    ]


def mark_words(text: str, words: list[str]) -> list[tuple[str, bool]]:
    """The part of ``text`` around the first of ``words``, cut where they begin and end. Pure."""
    pattern = re.compile("|".join(map(re.escape, words)), re.IGNORECASE)
    first = pattern.search(text)
    begin = max(0, first.start() - AROUND) if first else 0
    shown = text[begin : begin + 4 * AROUND]
    parts = list(_cut(shown, pattern))
    if begin:
        parts.insert(0, ("…", False))
    if begin + len(shown) < len(text):
        parts.append(("…", False))
    return parts


def _cut(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[str, bool]]:
    at = 0
    for found in pattern.finditer(text):
        if found.start() > at:
            yield text[at : found.start()], False
        yield found[0], True
        at = found.end()
    if at < len(text):
        yield text[at:], False
