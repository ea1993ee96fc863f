"""Where personas answer: one list of all places, and the links to it from chats and bots."""

from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from agent.admin.personas.form import PersonaChoiceForm
from agent.domain.persona import PersonaKind
from agent.models import Persona, PersonaChoice
from tools.admin.filters import Rows
from tools.admin.record_pages import Column
from tools.admin.settings_page import SettingsAdmin, author_of
from tools.models.row_history import record_changes


class OfPersona:
    """Rows that belong to a persona: who may change it may change them."""

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return request.user.has_perm("agent.view_persona") or self._may_change(request)

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self._may_change(request)

    has_change_permission = has_delete_permission = has_add_permission

    def _may_change(self, request: HttpRequest) -> bool:
        return any(request.user.has_perm(f"agent.{one}_persona") for one in ("add", "change"))


@admin.register(PersonaChoice)
class PersonaChoiceAdmin(OfPersona, SettingsAdmin):
    """Where personas answer, all in one list. Changes are on record with the persona."""

    form = PersonaChoiceForm
    list_display = ("where", "persona")
    list_select_related = ("persona",)
    list_filter = ("chat_kind",)
    search_fields = ("account", "peer_id", "user_id", "persona__name")
    list_per_page = 50
    fields = ("persona", "account", "chat_kind", "peer_id", "user_id")
    where = Column(_("place"), str)

    def _may_change(self, request: HttpRequest) -> bool:
        return request.user.has_perm("agent.change_persona")

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        answering = Persona.objects.filter(kind=PersonaKind.PERSONA, is_default=False)
        return super().formfield_for_foreignkey(
            db_field, request, **options | {"queryset": answering}
        )

    def save_model(self, request: HttpRequest, obj: PersonaChoice, form: Any, change: bool) -> None:
        with record_changes(author_of(request), *_owners(obj)):
            super().save_model(request, obj, form, change)

    def delete_model(self, request: HttpRequest, obj: PersonaChoice) -> None:
        with record_changes(author_of(request), *_owners(obj)):
            super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: Rows) -> None:
        owners = list(Persona.objects.filter(places__in=queryset).distinct())
        with record_changes(author_of(request), *owners):
            super().delete_queryset(request, queryset)


def _owners(choice: PersonaChoice) -> list[Persona]:
    """The persona that has ``choice``, and the one that had it."""
    had = Persona.objects.filter(places=choice.pk) if choice.pk else []
    return list({row.pk: row for row in (choice.persona, *had)}.values())
