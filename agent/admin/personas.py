"""Personas and agents: who answers where, with what, within what; one list of all places; and what
a persona would send."""

import json
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Count, Model, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.utils.http import content_disposition_header
from django.utils.translation import gettext, gettext_lazy as _

from agent.admin.chats.session_list import session_address
from agent.admin.persona_picture import FIELDS, PictureAdmin, PictureForm, show_picture
from agent.admin.tools import run_with_own_registry
from agent.chat import history, message_run
from agent.domain import chat_state, endpoint, states, types
from agent.domain.endpoint import Endpoint, ModelRole
from agent.domain.persona import (
    ExampleError,
    PersonaKind,
    environment_persona,
    format_examples,
    parse_examples,
)
from agent.llm.client.client import RequestFormer
from agent.llm.endpoints.endpoint_book import EndpointBook
from agent.llm.requests import base, tokens
from agent.llm.requests.messages import content_text
from agent.media.pipeline import MediaText
from agent.memory import recall, relevance, service
from agent.models import ChatSession, EndpointChoice, Message, Persona, PersonaChoice
from agent.pages import persona_file
from agent.pages.run_facts import shown_note
from agent.record.chats import chat_history, sessions
from agent.record.runs.runs import OTHERS, ActiveRun
from agent.record.settings.endpoints import load_endpoint_table
from agent.record.settings.personas import load_persona
from agent.run.engine import Engine, PersonaEngines
from agent.run.services import RunServices, add_tool_reminder
from agent.runtime import serving, wiring
from agent.runtime.wiring import declared_tools
from agent.subagents.provider import PROVIDER_NAME
from tools.admin.fields import choosing, name_source
from tools.admin.record_pages import (
    Column,
    Rows,
    author_of,
    parse_row_number,
    render_badge,
    require,
)
from tools.admin.settings_page import SettingsAdmin, SettingsForm, choice_alone
from tools.contract import TOOL_NAME
from tools.models import ToolConfig
from tools.models.row_history import record_changes
from tools.registry.registry import ToolRegistry
from tools.registry.settings import load_tool_settings
from tools.text.readable import drop_surrogates, format_readable, shorten_text


def build_preview(
    row: Persona, chat: types.ChatAddress, session_pk: int, text: str
) -> dict[str, Any]:
    """What ``row`` would send if the last speaker of the chat said ``text`` now: the first request
    of a run, before any endpoint is known, and what each would be sent. ``has_server``: whether the
    tools of MCP servers, plugins and HTTP tools are among its tools.

    All that is read is read in one transaction, which is taken back.
    """
    persona = load_persona(row)
    with transaction.atomic():
        message = _build_message(chat, session_pk, text)
        kept, most = sessions.load_session_state(session_pk), persona.context_messages - OTHERS
        active = ActiveRun(
            states.Claim(0),
            chat_history.load_history(session_pk, chat, most, kept.context_after),
            state=kept.state,
            gate=kept.gate,
            discovered=kept.discovered,
            context_after=kept.context_after,
            persona=persona,
        )
        wanted = recall.RecallRequest(
            service.build_chat_viewer(message.chat, message.sender_id),
            message.text,
            settings.MEMORY_CHARS,
            session_pk if settings.SUMMARY_AFTER_MESSAGES else None,
            is_reset=True,
        )
        memory = recall.recall_notes(wanted)  # by words alone: meanings are not asked for
        book = wiring.build_endpoint_book(table=load_endpoint_table())
        transaction.set_rollback(True)

    async def work(registry: ToolRegistry) -> dict[str, Any]:
        return await _preview(registry, book, message, active, memory, session_pk)

    if serving_now := serving.get_serving():
        return serving_now.run(work) | {"has_server": True}
    return run_with_own_registry(load_tool_settings(), work)


async def _preview(
    registry: ToolRegistry,
    book: EndpointBook,
    message: types.IncomingMessage,
    active: ActiveRun,
    memory: relevance.MemoryContext,
    session_pk: int,
) -> dict[str, Any]:
    """As a run begins: see :meth:`agent.chat.conversation.ConversationHandler.answer_message`."""
    persona = active.persona
    tools = PersonaEngines(Engine(book.model(ModelRole.CHAT), registry), book).find(persona)
    services = RunServices(
        chat_state=chat_state.ChatState(session_pk, active.state), persona=persona
    )
    context = message_run.build_tool_context(message, types.DEFAULT_ACCOUNT, services)
    messages, notes = await history.open_conversation(
        message, active, context, tools.registry, media=MediaText(), memory=memory
    )
    offered = await tools.registry.offering(context.availability(), active.discovered)
    if offered.named:
        messages[0] = add_tool_reminder(messages[0], offered.named)
    request = base.LLMRequest(messages, offered.definitions, len(messages) - 1)
    choice = persona.endpoints.get(ModelRole.CHAT, ())
    return {
        "messages": [
            (one["role"], drop_surrogates(content_text(one["content"]))) for one in messages
        ],
        "tools": [(one["name"], format_readable(one)) for one in offered.definitions],
        "endpoints": [_form(one, request) for one in book.endpoints(ModelRole.CHAT, choice)],
        "notes": [shown_note(note) for note in notes],
        # messages of the history that the persona's limits have no room for
        "history_left_out": len(active.history) + 2 + memory.count - len(messages),
    }


def _form(endpoint: Endpoint, request: base.LLMRequest) -> dict[str, Any]:
    """One endpoint that would be asked, and the request in its form; messages that its window has
    no room for are ``left_out``."""
    formed = RequestFormer(endpoint, None).form(request, endpoint.refuses)
    tools = tokens.estimate_tools_tokens(formed.encoder.encode_tools(formed.sent.tools))
    words = sum(map(tokens.estimate_message_tokens, formed.messages))
    return {
        "endpoint": endpoint,
        "parameters": format_readable(formed.sent.parameters),
        "tokens": round((tools + words) * endpoint.token_factor),
        "left_out": len(request.messages) - len(formed.fitted.messages),
        "tools_left_out": len(request.tools) - len(formed.sent.tools),
        "body": format_readable(json.loads(formed.body)),
    }


def _build_message(chat: types.ChatAddress, session_pk: int, text: str) -> types.IncomingMessage:
    """``text`` as the last speaker of the chat would say it."""
    heard = Message.objects.filter(session=session_pk, direction=Message.Direction.IN)
    said_of = ("sender_id", "sender_name", "sender_role", "header")
    last: Any = heard.order_by("-pk").values(*said_of).first() or {}
    header = last.get("header")
    return types.IncomingMessage(
        chat=chat,
        sender_id=last.get("sender_id") or chat.peer_id,
        sender_name=last.get("sender_name") or "",
        text=text,
        segments=[],
        spoken_text=text,
        sender_role=last.get("sender_role") or "",
        happened_at=timezone.now(),
        header=header and {**header, "mentions": []},
    )


#: What is as the environment has it while it is empty.
NUMBERS = ("model_calls", "context_messages", "context_chars", "run_seconds")
SWITCHES = ("mention", "quote")
#: The settings of the environment that hold where a persona leaves a field empty.
VARIABLES = {
    "prompt": "SYSTEM_PROMPT",
    "model_calls": "MAX_ITERATIONS",
    "context_messages": "MAX_CONTEXT_MESSAGES",
    "context_chars": "MAX_CONTEXT_CHARS",
    "run_seconds": "RUN_TIMEOUT",
    "mention": "ENABLE_AT_IN_GROUP_MSG",
    "quote": "ENABLE_REPLY_IN_GROUP_MSG",
    "vision_mode": "VISION_MODE",
}
#: Characters of that prompt that are shown.
PROMPT_SHOWN = 300
CHATS_OFFERED = 50


def known_tool_names() -> set[str]:
    """Every tool that the program brings along or has ever listed, and agents that are tools."""
    names = set(ToolConfig.objects.values_list("name", flat=True))
    names |= set(Persona.objects.filter(as_tool=True).values_list("name", flat=True))
    return names | {spec.name for spec in declared_tools()}


class PersonaForm(PictureForm):
    """A persona: its examples are lines of text, its tools names on lines."""

    examples = forms.CharField(
        label=_("Example dialogues"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 6, "class": "vLargeTextField"}),
        help_text=_(
            "How it speaks, shown at the end of the prompt: lines that begin with “用户：” and "
            "“你：”, or “User:” and “Bot:”, in turn."
        ),
    )

    class Meta:
        model = Persona
        exclude = ()
        widgets = {  # noqa: RUF012 - Django's own way to say it
            "prompt": forms.Textarea(attrs={"rows": 12, "class": "vLargeTextField template"}),
            "description": forms.Textarea(attrs={"rows": 2, "class": "vLargeTextField"}),
            "tools": forms.Textarea(attrs=choosing("tool", rows=5, **{"class": "template"})),
        }
        help_texts = {  # noqa: RUF012 - as above
            "description": _("What it is good at, for the model that may hand it work."),
            "as_tool": _("Offered as a tool under its own name, besides use_subagent."),
            "prompt": _(
                "Who it is and how it behaves; {date}, {time}, {weekday}, {bot_name} and values "
                "of the chat’s state are filled in."
            ),
            "tools": _("Names as the page “Tool configs” lists them, one a line."),
            **dict.fromkeys(("model_calls", "run_seconds", *SWITCHES, "vision_mode"), ""),
            "context_messages": _("System message, history and current message."),
            "context_chars": _("Approximately."),
        }

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)
        self.initial["examples"] = format_examples(self.initial.get("examples") or [])
        usual = environment_persona()
        for name, variable in VARIABLES.items():
            value = getattr(usual, name)
            words = shorten_text(value, PROMPT_SHOWN) if isinstance(value, str) else value
            self.show_unsaid(name, words, name_source(variable))

    def clean_examples(self) -> list[list[str]]:
        try:
            return parse_examples(self.cleaned_data["examples"])
        except ExampleError as error:
            raise ValidationError(str(error)) from error

    def clean_tools(self) -> str:
        """The names, one a line; those that were there before may be of tools that are gone."""
        names = list(dict.fromkeys(self.cleaned_data["tools"].replace(",", " ").split()))
        before = set(self.instance.tools.split()) if self.instance.pk else set()
        known = known_tool_names() | before
        if unknown := [name for name in names if name not in known]:
            raise ValidationError(
                gettext("There are no such tools: %(names)s.") % {"names": ", ".join(unknown)}
            )
        return "\n".join(names)

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean() or {}
        if cleaned.get("kind", self.instance.kind) == PersonaKind.AGENT:
            if not (cleaned.get("description") or "").strip():
                words = gettext("An agent needs one: by it, models choose whom to ask.")
                self.add_error("description", words)
            name = cleaned.get("name") if cleaned.get("as_tool") else None
            if name and not TOOL_NAME.fullmatch(name):
                words = gettext(
                    "An agent that is a tool of its own needs the name of a tool: at most 64 "
                    "letters a to z, digits, _ and -, beginning with a letter."
                )
                self.add_error("name", words)
            elif name and is_tool_name_taken(name):
                words = gettext("There is a tool of this name already; choose another name.")
                self.add_error("name", words)
        return cleaned


def is_tool_name_taken(name: str) -> bool:
    """Whether something else than a row of an agent is a tool called ``name``."""
    rows = ToolConfig.objects.filter(name=name).exclude(provider_name=PROVIDER_NAME)
    return rows.exists() or any(spec.name == name for spec in declared_tools())


def _chosen(kind: str, **options: Any) -> forms.TextInput:
    return forms.TextInput(attrs=choosing(kind, **options, **{"class": "vTextField"}))


class PersonaChoiceForm(SettingsForm):
    """Where a persona answers."""

    class Meta:
        model = PersonaChoice
        exclude = ()
        widgets = {  # noqa: RUF012 - Django's own way to say it
            "account": _chosen("account"),
            "peer_id": _chosen("chat", fills="account chat_kind"),
            "user_id": _chosen("person"),
        }

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean() or {}
        key = {name: cleaned.get(name) or "" for name in CHOICE_KEY}
        if key["peer_id"] and not key["chat_kind"]:
            self.add_error(
                "chat_kind", gettext("Say whether the number is a group's or a person's.")
            )
        others = PersonaChoice.objects.filter(**key).exclude(pk=self.instance.pk)
        if (persona := cleaned.get("persona")) is not None and persona.pk:
            others = others.exclude(persona=persona)
        if other := others.select_related("persona").first():
            words = gettext("Here %(persona)s answers already; take it away there first.")
            self.add_error(None, words % {"persona": other.persona})
        return cleaned


class PreviewForm(forms.Form):
    """The chat of a preview, by its number or by that of its group or person, and a message."""

    session = forms.CharField(
        label=_("Which chat"),
        max_length=64,
        widget=forms.TextInput(attrs=choosing("chat", list="chats")),
        help_text=_("The number of a group or person, or # and the number of the chat's row."),
    )
    text = forms.CharField(
        label=_("message"),
        required=False,
        initial="你好",
        max_length=20_000,
        widget=forms.Textarea(attrs={"rows": 2, "class": "vLargeTextField"}),
    )

    def clean_session(self) -> ChatSession:
        term = self.cleaned_data["session"].strip()
        rows = ChatSession.objects.order_by("-last_message_at")
        is_row = Q(pk=parse_row_number(term)) if term.startswith("#") else Q(peer_id=term)
        if (session := rows.filter(is_row).first()) is None:
            raise ValidationError(gettext("There is no such chat on record."))
        return session

    @property
    def latest(self) -> list[ChatSession]:
        """The chats that are offered while somebody types."""
        return list(ChatSession.objects.order_by("-last_message_at", "-pk")[:CHATS_OFFERED])


CHOICE_KEY = ("account", "chat_kind", "peer_id", "user_id")


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
    columns: ClassVar = {"where": Column(_("place"), str)}

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
class PersonaAdmin(PictureAdmin):
    form = PersonaForm
    inlines = (EndpointChoices, PersonaChoices)
    list_display = ("name", "state", "kind", "where", "endpoints", "tool_count", "changed")
    list_filter = ("kind", "enabled")
    search_fields = ("name", "description", "prompt")
    change_form_template = "admin/agent/persona/change_form.html"
    row_pages = ("preview",)
    addresses = (("export", "<int:pk>/export/"),)
    first_fields = ("name", "enabled", "kind", "prompt", "language", "tool_choice", "tools")
    more_fields: ClassVar = (
        (_("What it says"), ("examples",)),
        (_("Picture"), FIELDS),
        (_("Only for an agent"), ("description", "as_tool")),
        (_("How it answers in chats"), (*SWITCHES, "vision_mode")),
        (_("Limits"), NUMBERS),
    )
    columns: ClassVar = {
        "state": Column(
            _("state"),
            lambda row: (
                render_badge("succeeded", _("the default one") if row.is_default else _("on"))
                if row.enabled
                else render_badge("off", _("off"))
            ),
        ),
        "picture": Column(_("picture"), show_picture),
        "where": Column(_("where it answers"), lambda row: _where(row)),
        "endpoints": Column(_("endpoints"), lambda row: str(row.endpoint_choice_count or "-")),
        "tool_count": Column(
            _("tools"),
            lambda row: (
                row.get_tool_choice_display()
                + (f" ({len(row.tools.split())})" if row.tool_choice != "all" else "")
            ),
        ),
    }

    def get_queryset(self, request: HttpRequest) -> Rows:
        places, choices = (Count(name, distinct=True) for name in ("places", "choices"))
        rows: Rows = super().get_queryset(request)
        counted: Rows = rows.annotate(persona_choice_count=places, endpoint_choice_count=choices)
        return counted

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """The default persona answers where no other does."""
        is_default = isinstance(obj, Persona) and obj.is_default
        return not is_default and super().has_delete_permission(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: Rows) -> None:
        super().delete_queryset(request, queryset.filter(is_default=False))

    def get_readonly_fields(self, request: HttpRequest, obj: object = None) -> Any:
        own = ("enabled", "kind") if isinstance(obj, Persona) and obj.is_default else ()
        return (*own, *super().get_readonly_fields(request, obj))

    def left_out(self, request: HttpRequest, obj: object) -> Collection[str]:
        is_default = isinstance(obj, Persona) and obj.is_default
        return ("description", "as_tool") if is_default else () if obj else ("remove",)

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

    def export_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """The persona as a file, which another installation imports."""
        row = get_object_or_404(self.get_queryset(request), pk=pk)
        require(self.has_view_permission(request, row))
        response = HttpResponse(persona_file.write_persona(row), content_type="application/json")
        name = "".join(char if char.isalnum() else "_" for char in row.name)
        header = content_disposition_header(True, f"persona-{name}.json")
        response["Content-Disposition"] = header or "attachment"
        return response

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


def _where(row: Any) -> str:
    if row.kind == PersonaKind.AGENT:
        return gettext("tool of its own") if row.as_tool else "use_subagent"
    return gettext("everywhere else") if row.is_default else str(row.persona_choice_count)


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
