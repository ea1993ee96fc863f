"""Notes: what the bot remembers, for the operator to read, to correct, to take away and to
forget."""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db.models import Model, Q
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.html import format_html
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from agent.access import find_access
from agent.admin.notes.export import EXPORT_LIMIT, export_notes_csv, export_notes_json
from agent.admin.notes.form import NoteForm, SuggestedInput, suggest_accounts, suggest_chats
from agent.memory.full_text import search_notes
from agent.memory.notes_store import delete_note_rows, erase_person, find_person_notes
from agent.models import Note
from agent.pages.own_chats import OwnPlacesAdmin
from tools.admin.changes import HistoryAdmin
from tools.admin.filters import RecordedSince, Rows
from tools.admin.record_pages import (
    EXCERPT,
    HIT_LIMIT,
    ModelAdmin,
    RecordAdmin,
    clamp_text,
    format_moment,
    parse_row_number,
    record_link,
    render_badge,
)
from tools.text.search_terms import search_terms

#: People whose notes one action erases.
PEOPLE_LIMIT = 100


@admin.register(Note)
class NoteAdmin(OwnPlacesAdmin, HistoryAdmin, RecordAdmin):
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

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        """A chat and an account are chosen among known ones, or written."""
        known = {"chat": suggest_chats, "account": suggest_accounts}.get(db_field.name)
        if known is not None:
            options["widget"] = SuggestedInput(known(request.user))
        return super().formfield_for_dbfield(db_field, request, **options)

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any
    ) -> Any:
        form: Any = super().get_form(request, obj, change, **options)
        form.access = find_access(request.user)
        return form

    def has_add_permission(self, request: HttpRequest) -> bool:
        return ModelAdmin.has_add_permission(self, request)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Notes are not part of the record: errors in them can be corrected."""
        return ModelAdmin.has_change_permission(self, request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return ModelAdmin.has_delete_permission(self, request, obj)

    def has_erase_permission(self, request: HttpRequest) -> bool:
        """People are erased from every chat."""
        may = ModelAdmin.has_delete_permission(self, request)
        return may and find_access(request.user).is_everything

    def exact_matches(self, term: str) -> Iterable[Q]:
        if term.startswith("#"):
            yield Q(pk=parse_row_number(term))
            return
        yield Q(owner_kind__in=Note.Owner.values, owner_id=term)
        yield Q(said_by=term)
        words = search_terms(term)
        yield Q(pk__in=search_notes([[word] for word in words], words[:1], HIT_LIMIT))

    def save_model(self, request: HttpRequest, obj: Note, form: Any, change: bool) -> None:
        """A note that everyone sees counts as the operator's, not as its first author's."""
        if obj.visibility == Note.Visibility.EVERYONE:
            obj.source = Note.Source.OPERATOR
        super().save_model(request, obj, form, change)

    def delete_model(self, request: HttpRequest, obj: Note) -> None:
        """With what its changes kept of it."""
        delete_note_rows(Note.objects.filter(pk=obj.pk))

    @admin.display(description=_("recorded at"))
    def recorded(self, note: Note) -> str:
        return format_moment(note.created_at)

    @admin.display(description=_("text"))
    def excerpt(self, note: Note) -> str:
        return clamp_text(note.text[:EXCERPT])

    @admin.display(description=_("about"))
    def about(self, note: Note) -> str:
        return format_html(
            '{} <div class="quiet">{}</div>', note.owner_id or "-", note.get_owner_kind_display()
        )

    @admin.display(description=_("visible to"))
    def seen_by(self, note: Note) -> str:
        where = note.chat if note.visibility == Note.Visibility.CHAT else ""
        return format_html('{} <div class="quiet">{}</div>', note.get_visibility_display(), where)

    @admin.display(description=_("source"))
    def origin(self, note: Note) -> str:
        return render_badge(note.source, note.get_source_display())

    @admin.display(description=_("times used"))
    def used(self, note: Note) -> str:
        return format_html(
            '{} <div class="quiet">{}</div>', note.use_count, format_moment(note.last_used_at)
        )

    @admin.display(description=_("said by"))
    def speaker(self, note: Note) -> str:
        return f"{note.said_by_name} ({note.said_by})" if note.said_by_name else note.said_by or "-"

    @admin.display(description=_("said in message"))
    def said_in(self, note: Note) -> str:
        return record_link("agent_message", note.message_id, f"#{note.message_id}") or "-"

    @admin.action(description=_("Export as CSV"), permissions=["view"])
    def export_as_csv(self, request: HttpRequest, queryset: Rows) -> HttpResponse | None:
        return self._exported(request, queryset, export_notes_csv)

    @admin.action(description=_("Export as JSON"), permissions=["view"])
    def export_as_json(self, request: HttpRequest, queryset: Rows) -> HttpResponse | None:
        return self._exported(request, queryset, export_notes_json)

    def _exported(
        self, request: HttpRequest, queryset: Rows, form: Callable[[Iterable[Note]], HttpResponse]
    ) -> HttpResponse | None:
        pks = list(queryset.order_by().values_list("pk", flat=True)[: EXPORT_LIMIT + 1])
        if len(pks) > EXPORT_LIMIT:
            self.message_user(
                request,
                gettext("One file holds at most %(limit)d notes: choose fewer.")
                % {"limit": EXPORT_LIMIT},
                messages.ERROR,
            )
            return None
        return form(
            Note.objects.filter(pk__in=pks).defer("words", "signs", "embedding").order_by("pk")
        )

    @admin.action(description=_("Erase the people of these notes"), permissions=["erase"])
    def erase_people(self, request: HttpRequest, queryset: Rows) -> HttpResponse | None:
        """Show how much is known of the people, and erase it once that is confirmed."""
        people = list_note_people(queryset)
        if "confirmed" not in request.POST:
            known = [
                (platform, person, find_person_notes(platform, person).count())
                for platform, person in people
            ]
            page = {
                "title": gettext("Erase people"),
                "people": known,
                "opts": self.opts,
            }
            page |= {
                "selected": request.POST.getlist("_selected_action"),
                "across": request.POST.get("select_across", "0"),
            }
            return TemplateResponse(
                request,
                "admin/agent/note/erase.html",
                {**self.admin_site.each_context(request), **page},
            )
        count = sum(erase_person(platform, person) for platform, person in people)
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
