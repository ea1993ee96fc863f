"""Personas and agents: who answers where, with what, within what."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib import admin, messages
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy as _

from agent.admin.chats.session_manners import session_address
from agent.admin.personas.choices import OfPersona
from agent.admin.personas.form import (
    NUMBERS,
    PersonaChoiceForm,
    PersonaForm,
    PreviewForm,
    is_tool_name_taken,
    known_tool_names,
)
from agent.admin.personas.prompt_preview import build_preview
from agent.domain import chat_state, endpoint
from agent.domain.persona import PersonaKind
from agent.models import EndpointChoice, Persona, PersonaChoice
from tools.admin.filters import Rows
from tools.admin.record_pages import Column, render_badge
from tools.admin.settings_page import SettingsAdmin, choice_alone

if TYPE_CHECKING:
    TabularInline = admin.TabularInline[Any, Any]
else:
    TabularInline = admin.TabularInline


class OwnRows(OfPersona, TabularInline):
    """Rows of a persona on its page."""

    extra = 0

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        return choice_alone(super().formfield_for_dbfield(db_field, request, **options))


class EndpointChoices(OwnRows):
    model = EndpointChoice
    fields = ("role", "position", "endpoint")

    def get_formset(self, request: HttpRequest, obj: Any = None, **options: Any) -> Any:
        formset = super().get_formset(request, obj, **options)
        if "role" in formset.form.base_fields:  # not where it is only shown
            choices = [(role.value, role.label) for role in chosen_roles(obj)]
            formset.form.base_fields["role"].choices = choices  # type: ignore[attr-defined]
        return formset


def chosen_roles(persona: Persona | None) -> tuple[endpoint.ModelRole, ...]:
    """The roles that ``persona`` can choose endpoints for: the default one all of them, for it
    chooses where others do not; None: one that is still to be made."""
    if persona is None or not (persona.is_default or persona.kind == PersonaKind.AGENT):
        return endpoint.PERSONA_ROLES
    return tuple(endpoint.ModelRole) if persona.is_default else (endpoint.ModelRole.CHAT,)


class PersonaChoices(OwnRows):
    model = PersonaChoice
    form = PersonaChoiceForm
    fields = ("account", "chat_kind", "peer_id", "user_id")


@admin.register(Persona)
class PersonaAdmin(SettingsAdmin):
    form = PersonaForm
    inlines = (EndpointChoices, PersonaChoices)
    list_display = ("name", "state", "kind", "where", "endpoints", "tool_count", "changed")
    list_filter = ("kind", "enabled")
    search_fields = ("name", "description", "prompt")
    change_form_template = "admin/agent/persona/change_form.html"
    row_pages = ("preview",)
    fieldsets = (
        (None, {"fields": ("name", "enabled", "kind")}),
        (_("What it says"), {"fields": ("prompt", "examples", "language")}),
        (_("Only for an agent"), {"fields": ("description", "as_tool")}),
        (_("Tools"), {"fields": ("tool_choice", "tools")}),
        (_("How it answers in chats"), {"fields": ("mention", "quote", "vision_mode")}),
        (_("Limits"), {"classes": ("collapse",), "fields": NUMBERS}),
    )

    def get_queryset(self, request: HttpRequest) -> Rows:
        rows: Rows = super().get_queryset(request)
        counts = {name: Count(name, distinct=True) for name in ("places", "choices")}
        counted: Rows = rows.annotate(
            persona_choice_count=counts["places"], endpoint_choice_count=counts["choices"]
        )
        return counted

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """The default persona answers where no other does."""
        is_default = isinstance(obj, Persona) and obj.is_default
        return not is_default and super().has_delete_permission(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: Rows) -> None:
        super().delete_queryset(request, queryset.filter(is_default=False))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ("enabled", "kind") if isinstance(obj, Persona) and obj.is_default else ()

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        shown = super().get_fieldsets(request, obj)
        is_default = isinstance(obj, Persona) and obj.is_default
        return [one for one in shown if not (is_default and "as_tool" in one[1]["fields"])]

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        """The default persona answers everywhere else, an agent nowhere."""
        only_asked = obj is not None and (obj.is_default or obj.kind == PersonaKind.AGENT)
        return (EndpointChoices,) if only_asked else self.inlines

    def save_model(self, request: HttpRequest, obj: Persona, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        for line in prompt_warnings(obj):
            self.message_user(request, line, messages.WARNING)

    def page_context(self, request: HttpRequest, obj: Persona | None) -> dict[str, Any]:
        if obj is None or not obj.pk:
            return {}
        page: dict[str, Any] = {"warnings": list(persona_warnings(obj))}
        if obj.kind == PersonaKind.PERSONA and may_preview(request):
            page["preview_url"] = reverse("admin:agent_persona_preview", args=(obj.pk,))
        return page

    def may_open(self, request: HttpRequest, row: Persona) -> bool:
        return self.has_view_permission(request, row) and may_preview(request)

    def preview_view(self, request: HttpRequest, row: Persona) -> HttpResponse:
        """The whole request as it would be sent in a chosen chat. Nothing is asked or kept."""
        form = PreviewForm(request.POST if request.method == "POST" else None)
        page: dict[str, Any] = {"form": form}
        if form.is_valid():
            page["session"] = session = form.cleaned_data["session"]
            said, chat = form.cleaned_data["text"], session_address(session)
            page["preview"] = build_preview(row, chat, session.pk, said)
        return self.show_page(request, "preview", gettext("Preview"), row, **page)

    # --- The list ---------------------------------------------------------------------

    state = Column(
        _("state"),
        lambda row: (
            render_badge("succeeded", _("the default one") if row.is_default else _("on"))
            if row.enabled
            else render_badge("off", _("off"))
        ),
    )

    @admin.display(description=_("where it answers"))
    def where(self, row: Any) -> str:
        if row.kind == PersonaKind.AGENT:
            return gettext("tool of its own") if row.as_tool else "use_subagent"
        return gettext("everywhere else") if row.is_default else str(row.persona_choice_count)

    endpoints = Column(_("endpoints"), lambda row: str(row.endpoint_choice_count or "-"))

    tool_count = Column(
        _("tools"),
        lambda row: (
            row.get_tool_choice_display()
            + (f" ({len(row.tools.split())})" if row.tool_choice != "all" else "")
        ),
    )


def may_preview(request: HttpRequest) -> bool:
    """A preview shows what is said in a chat, and what runs send."""
    names = ("view_chatsession", "view_message", "view_run")
    return all(request.user.has_perm(f"agent.{name}") for name in names)


def persona_warnings(row: Persona) -> Iterator[str]:
    """What does not keep ``row`` from being saved, but will not do what somebody may expect."""
    yield from prompt_warnings(row)
    if row.kind == PersonaKind.AGENT and row.as_tool and is_tool_name_taken(row.name):
        yield gettext(
            "Another tool has this name by now: that one is called. Give the agent another name."
        )
    if gone := [name for name in row.tools.split() if name not in known_tool_names()]:
        yield gettext("There are no such tools: %(names)s.") % {"names": ", ".join(gone)}


def prompt_warnings(row: Persona) -> Iterator[str]:
    """The placeholders of the prompt that the program knows nothing for."""
    known = chat_state.program_values(settings.BOT_NAME, "group", timezone.localtime())
    wanted = chat_state.parse_prompt_placeholders(row.prompt)
    values = [
        one.written for one in wanted if not (one.is_tool or one.is_optional or one.name in known)
    ]
    if values:
        yield gettext(
            "The prompt shows values that each chat has of its own: %(names)s. Give them in the "
            "state on the chat's page, or write {name?} where one may be missing."
        ) % {"names": ", ".join(dict.fromkeys(values))}
    names = known_tool_names() if any(one.is_tool for one in wanted) else set()
    tools = [one.written for one in wanted if one.is_tool and one.name not in names]
    if tools:
        yield gettext("The prompt names tools that there are not: %(names)s.") % {
            "names": ", ".join(dict.fromkeys(tools))
        }
