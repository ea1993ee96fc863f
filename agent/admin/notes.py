"""Notes of the memory, and what a model proposes to change of them."""

import csv
import io
import json
import re
from collections.abc import Iterable
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import BadRequest, ValidationError
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from agent.access import NOTHING, find_access
from agent.domain.notes import TEXT_LIMIT
from agent.memory import note_visibility, notes_store
from agent.memory.review import decide_proposal
from agent.models import Note, NoteProposal
from agent.pages.own_chats import OwnAccountsAdmin
from tools.admin.fields import SuggestedInput, choosing, escape_formula
from tools.admin.record_pages import (
    EXCERPT,
    HIT_LIMIT,
    Column,
    ModelForm,
    PageAdmin,
    RecordAdmin,
    RecordedSince,
    Rows,
    author_of,
    by_post,
    clamp_text,
    format_moment,
    parse_row_number,
    record_link,
    render_badge,
    require,
    with_less,
)
from tools.admin.settings_page import HistoryAdmin
from tools.text.readable import json_block, text_block
from tools.text.search_terms import search_terms

# A note as a person writes it: tags as words, a chat as it is known.

#: Chats that a form suggests, those with the newest messages.
SUGGESTED = 200
#: What separates tags: commas of both kinds, the Chinese pause mark, and lines.
SEPARATOR = re.compile(r"[,，、;；\n]")
#: A chat as people write it: ``group 30001``, ``群30001``, ``私聊：20001``.
WRITTEN_CHAT = re.compile(
    r"(group|private|群聊?|私聊)\s*(?:[:：]\s*|(?=\d))([\w-]+)", re.IGNORECASE
)


class TagsField(forms.CharField):
    """Short words with commas between them; cleaned to a list. A JSON list, as a script may send
    it, is read as well."""

    def prepare_value(self, value: object) -> Any:
        return ", ".join(map(str, value)) if isinstance(value, list) else value

    def to_python(self, value: object) -> Any:
        text = str(super().to_python(value) or "")
        if text.startswith(("[", "{")):
            try:
                return json.loads(text)  # the model says what a tag may be
            except (ValueError, RecursionError) as error:
                raise ValidationError(_("Write words with commas between them.")) from error
        return list(dict.fromkeys(tag for part in SEPARATOR.split(text) if (tag := part.strip())))

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return bool(list(initial or []) != self.to_python(data))
        except ValidationError:
            return True


def suggest_chats(user: object, name: str) -> list[tuple[str, str]]:
    """The chats with the newest messages that ``user`` may reach, each with its name, for the field
    ``chat``; for ``account`` their accounts."""
    newest = find_access(user).sessions().order_by("-last_message_at", "-pk")[:SUGGESTED]
    if name == "account":
        return [(account, account) for account in sorted({chat.account for chat in newest})]
    return [(chat.key, f"{chat.title or chat.key} ({chat.account})") for chat in newest]


class NoteForm(ModelForm):
    """The model refuses a note that no viewer could see, and one too many."""

    tags = TagsField(
        label=_("Tags"), required=False, help_text=_("Short words with commas between them.")
    )

    class Meta:
        model = Note
        fields = (
            *("text", "tags", "visibility", "platform", "account", "chat"),
            *("owner_kind", "owner_id", "expires_at"),
        )
        widgets = {  # noqa: RUF012 - Django's own form
            "text": forms.Textarea(
                attrs={"rows": 5, "class": "vLargeTextField", "maxlength": TEXT_LIMIT}
            ),
            "owner_id": forms.TextInput(attrs=choosing(by="owner_kind", **{"class": "vTextField"})),
        }

    #: What the writer may reach; set for each of them.
    access = NOTHING

    def clean(self) -> dict[str, Any]:
        """Who may not see every chat writes notes of his own ones, for them alone."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if self.access.is_everything or self.errors:
            return cleaned
        chat = (cleaned["account"], cleaned["chat"])
        if chat[0] not in self.access.accounts and chat not in self.access.chats:
            self.add_error("chat", gettext("Choose one of your own chats and its account."))
        if cleaned["visibility"] != Note.Visibility.CHAT:
            self.add_error("visibility", gettext("Your notes are for the chat that they name."))
        return cleaned

    def clean_chat(self) -> str:
        """A chat as the record names it."""
        chat = str(self.cleaned_data["chat"]).strip()
        if (written := WRITTEN_CHAT.fullmatch(chat)) is None:
            return chat
        kind = "group" if written[1].lower() in ("group", "群", "群聊") else "private"
        return f"{kind}:{written[2]}"


#: People whose notes one action erases.
PEOPLE_LIMIT = 100


@admin.register(Note)
class NoteAdmin(OwnAccountsAdmin, HistoryAdmin, RecordAdmin):
    rights = PageAdmin.rights  # errors in what it remembers can be corrected
    chat_field = "chat"
    form = NoteForm
    actions = ("export_as_csv", "export_as_json", "erase_people")  # type: ignore[assignment]
    list_display = ("recorded", "excerpt", "about", "seen_by", "origin", "used")
    list_filter = (RecordedSince, "source", "visibility", "owner_kind")
    list_defer = ("words", "signs", "embedding")
    indexed_lookups = frozenset({"source__exact"})
    search_help_text: ClassVar = _(
        "Words of the notes, the id of a person, a group or a chat, or #number of a note."
    )
    change_form_template = "admin/change_form.html"
    readonly_fields = ("source", "speaker", "said_in", "created_at", "use_count", "last_used_at")
    fieldsets = (
        (None, {"fields": ("text", "tags")}),
        (_("Who may see it"), {"fields": ("visibility", "chat", "account")}),
        (_("What it is about"), {"fields": ("owner_kind", "owner_id", "expires_at")}),
        (_("Where it comes from"), {"fields": readonly_fields}),
        (_("Platform"), {"fields": ("platform",), "classes": ("collapse",)}),
    )

    columns: ClassVar = {
        "recorded": Column(_("recorded at"), lambda note: format_moment(note.created_at)),
        "excerpt": Column(_("text"), lambda note: clamp_text(note.text[:EXCERPT])),
        "about": Column(
            _("about"),
            lambda note: with_less(note.owner_id or "-", note.get_owner_kind_display()),
        ),
        "seen_by": Column(
            _("visible to"),
            lambda note: with_less(
                note.get_visibility_display(),
                note.chat if note.visibility == Note.Visibility.CHAT else "",
            ),
        ),
        "origin": Column(
            _("source"), lambda note: render_badge(note.source, note.get_source_display())
        ),
        "used": Column(
            _("times used"),
            lambda note: with_less(note.use_count, format_moment(note.last_used_at)),
        ),
        "speaker": Column(
            _("said by"),
            lambda note: (
                f"{note.said_by_name} ({note.said_by})"
                if note.said_by_name
                else note.said_by or "-"
            ),
        ),
        "said_in": Column(
            _("said in message"),
            lambda note: (
                record_link("agent_message", note.message_id, f"#{note.message_id}") or "-"
            ),
        ),
    }

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        """A chat and an account are chosen among known ones, or written."""
        if db_field.name in ("chat", "account"):
            chosen = choosing("account")
            if db_field.name == "chat":
                chosen = choosing("chat", "chat", fills="account")
            options["widget"] = SuggestedInput(suggest_chats(request.user, db_field.name), chosen)
        return super().formfield_for_dbfield(db_field, request, **options)

    def get_form(
        self, request: HttpRequest, obj: object = None, change: bool = False, **options: object
    ) -> Any:
        form: Any = super().get_form(request, obj, change, **options)
        form.access = find_access(request.user)
        return form

    def has_erase_permission(self, request: HttpRequest) -> bool:
        """People are erased from every chat."""
        return self.has_delete_permission(request) and find_access(request.user).is_everything

    def exact_matches(self, term: str) -> Iterable[Q]:
        if term.startswith("#"):
            yield Q(pk=parse_row_number(term))
            return
        yield Q(owner_kind__in=Note.Owner.values, owner_id=term)
        yield Q(said_by=term)
        words = search_terms(term)
        yield Q(
            pk__in=note_visibility.search_notes([[word] for word in words], words[:1], HIT_LIMIT)
        )

    def save_model(self, request: HttpRequest, obj: Note, form: Any, change: bool) -> None:
        """A note that everyone sees counts as the operator's, not as its first author's."""
        if obj.visibility == Note.Visibility.EVERYONE:
            obj.source = Note.Source.OPERATOR
        super().save_model(request, obj, form, change)

    def delete_model(self, request: HttpRequest, obj: Note) -> None:
        """With what its changes kept of it."""
        notes_store.delete_note_rows(Note.objects.filter(pk=obj.pk))

    @admin.action(description=_("Export as CSV"), permissions=["view"])
    def export_as_csv(self, request: HttpRequest, queryset: Rows) -> HttpResponse | None:
        return self._exported(request, queryset, "csv")

    @admin.action(description=_("Export as JSON"), permissions=["view"])
    def export_as_json(self, request: HttpRequest, queryset: Rows) -> HttpResponse | None:
        return self._exported(request, queryset, "json")

    def _exported(self, request: HttpRequest, queryset: Rows, form: str) -> HttpResponse | None:
        pks = list(queryset.order_by().values_list("pk", flat=True)[: EXPORT_LIMIT + 1])
        if len(pks) > EXPORT_LIMIT:
            self.message_user(
                request,
                gettext("One file holds at most %(limit)d notes: choose fewer.")
                % {"limit": EXPORT_LIMIT},
                messages.ERROR,
            )
            return None
        notes = Note.objects.filter(pk__in=pks).defer("words", "signs", "embedding")
        return export_notes(notes.order_by("pk"), form)

    @admin.action(description=_("Erase the people of these notes"), permissions=["erase"])
    def erase_people(self, request: HttpRequest, queryset: Rows) -> HttpResponse | None:
        """Show how much is known of the people, and erase it once that is confirmed."""
        people = list_note_people(queryset)
        if "confirmed" not in request.POST:
            page: dict[str, Any] = {
                "people": [
                    (platform, person, notes_store.find_person_notes(platform, person).count())
                    for platform, person in people
                ],
                "selected": request.POST.getlist("_selected_action"),
                "across": request.POST.get("select_across", "0"),
            }
            return self.show_page(request, "erase", gettext("Erase people"), **page)
        count = sum(notes_store.erase_person(platform, person) for platform, person in people)
        words = ngettext("%(count)d note was erased.", "%(count)d notes were erased.", count) % {
            "count": count
        }
        self.message_user(request, words, messages.SUCCESS)
        return None


def list_note_people(notes: Rows) -> list[tuple[str, str]]:
    """Platform and id of the first people that ``notes`` are about or come from."""
    rows = notes.order_by().values_list("platform", "owner_kind", "owner_id", "said_by")[
        :EXPORT_LIMIT
    ]
    people = {(row[0], row[3]) for row in rows} | {
        (row[0], row[2]) for row in rows if row[1] == Note.Owner.PERSON
    }
    return sorted(person for person in people if person[1])[:PEOPLE_LIMIT]


# Notes as files: CSV for a spreadsheet, JSON for a program.

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


def export_notes(notes: Iterable[Note], form: str) -> HttpResponse:
    """As ``json`` a list of objects, times in ISO 8601; as ``csv`` a table with a head line, in
    which a cell that a spreadsheet would compute begins with an apostrophe."""
    values = ([getattr(note, name) for name in EXPORT_FIELDS] for note in notes)
    rows = [
        [one.isoformat() if hasattr(one, "isoformat") else one for one in row] for row in values
    ]
    headers = {"Content-Disposition": f'attachment; filename="notes.{form}"'}
    if form == "json":
        found = [dict(zip(EXPORT_FIELDS, row, strict=True)) for row in rows]
        content = json.dumps(found, ensure_ascii=False, indent=1)
        return HttpResponse(content, content_type="application/json", headers=headers)
    table = io.StringIO("\ufeff")
    table.seek(0, io.SEEK_END)
    csv.writer(table).writerows(
        [
            [escape_formula(", ".join(one) if isinstance(one, list) else one) for one in row]
            for row in (EXPORT_FIELDS, *rows)
        ]
    )
    return HttpResponse(table.getvalue(), content_type="text/csv; charset=utf-8", headers=headers)


@admin.register(NoteProposal)
class NoteProposalAdmin(RecordAdmin):
    addresses = (("decide", "<int:pk>/decide/"),)
    actions = ("accept", "reject")  # type: ignore[assignment]
    list_display = ("recorded", "outcome", "kind", "notes", "result", "decided_by")
    list_filter = ("state", "kind")
    list_defer = ()
    indexed_lookups = frozenset({"state__exact"})
    text_fields = ("text", "decided_by")
    change_form_template = "admin/agent/noteproposal/change_form.html"
    fields = (
        "kind",
        "outcome",
        "notes",
        "result",
        "tags_json",
        "model",
        "created_at",
        "decided_by",
        "decided_at",
        "before_json",
    )

    columns: ClassVar = {
        "recorded": Column(_("recorded at"), lambda row: format_moment(row.created_at)),
        # the notes as they were, each linked to what it is now
        "notes": Column(
            _("memory notes"),
            lambda row: (
                format_html_join(
                    "",
                    "{} {}",
                    (
                        (
                            record_link("agent_note", note["pk"], f"#{note['pk']}"),
                            clamp_text(note["text"]),
                        )
                        for note in row.before
                    ),
                )
                or "-"
            ),
        ),
        "result": Column(_("text"), lambda row: text_block(row.text)),
        "tags_json": Column(_("tags"), lambda row: ", ".join(map(str, row.tags)) or "-"),
        "before_json": Column(_("before"), lambda row: json_block(row.before)),
    }

    def has_decide_permission(self, request: HttpRequest) -> bool:
        """Users who may change and delete notes may apply proposals."""
        return request.user.has_perms(("agent.change_note", "agent.delete_note"))

    @admin.action(description=_("Do what is proposed"), permissions=["decide"])
    def accept(self, request: HttpRequest, queryset: Rows) -> None:
        self._decided(request, queryset, accept=True)

    @admin.action(description=_("Leave the notes as they are"), permissions=["decide"])
    def reject(self, request: HttpRequest, queryset: Rows) -> None:
        self._decided(request, queryset, accept=False)

    def page_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """Where the page's two buttons lead while the proposal waits."""
        if (obj.state == NoteProposal.State.WAITING) and self.has_decide_permission(request):
            return {"decide_url": reverse("admin:agent_noteproposal_decide", args=(obj.pk,))}
        return {}

    @by_post
    def decide_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Decide one proposal, and show it with what came of it."""
        require(self.has_decide_permission(request) and self.has_view_permission(request))
        decision = request.POST.get("decision")
        if decision not in ("accept", "reject"):
            raise BadRequest
        proposal = get_object_or_404(self.get_queryset(request), pk=pk)
        self._decided(
            request, self.model.objects.filter(pk=proposal.pk), accept=decision == "accept"
        )
        return redirect("admin:agent_noteproposal_change", proposal.pk)

    def _decided(self, request: HttpRequest, queryset: Rows, *, accept: bool) -> None:
        by = author_of(request).get_username()
        states = [
            decide_proposal(pk, by=by, accept=accept)
            for pk in queryset.order_by("pk").values_list("pk", flat=True)
        ]
        State = NoteProposal.State  # noqa: N806 - a class
        if count := sum(state in (State.APPLIED, State.REJECTED) for state in states):
            words = ngettext(
                "%(count)d proposal was decided.", "%(count)d proposals were decided.", count
            ) % {"count": count}
            self.message_user(request, words, messages.SUCCESS)
        if State.STALE in states:
            words = gettext(
                "Some notes have changed since they were reviewed, and were left as they are."
            )
            self.message_user(request, words, messages.WARNING)
        if None in states:
            words = gettext("What was decided before, or is no more, was left as it is.")
            self.message_user(request, words, messages.WARNING)
