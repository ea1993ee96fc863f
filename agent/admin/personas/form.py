"""The form of a persona or agent: what its fields accept, and what they show while they are
empty."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.utils.translation import gettext, gettext_lazy as _

from agent.domain.persona import (
    ExampleError,
    PersonaKind,
    environment_persona,
    format_examples,
    parse_examples,
)
from agent.models import ChatSession, Persona, PersonaChoice
from agent.runtime.wiring import declared_tools
from agent.subagents.provider import PROVIDER_NAME
from tools.admin.record_pages import parse_row_number
from tools.admin.settings_page import SettingsForm
from tools.contract import TOOL_NAME
from tools.models import ToolConfig

#: What is as the environment has it while it is empty.
NUMBERS = ("model_calls", "context_messages", "context_chars", "run_seconds")
SWITCHES = ("mention", "quote")
CHATS_OFFERED = 50


def known_tool_names() -> set[str]:
    """Every tool that the program brings along or has ever listed, and agents that are tools."""
    names = set(ToolConfig.objects.values_list("name", flat=True))
    names |= set(Persona.objects.filter(as_tool=True).values_list("name", flat=True))
    return names | {spec.name for spec in declared_tools()}


class PersonaForm(SettingsForm):
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
            "tools": forms.Textarea(attrs={"rows": 5, "class": "template"}),
        }
        help_texts = {  # noqa: RUF012 - as above
            "description": _("What it is good at, for the model that may hand it work."),
            "as_tool": _("Offered as a tool under its own name, besides use_subagent."),
            "prompt": _(
                "Who it is and how it behaves; {date}, {time}, {weekday}, {bot_name} and values "
                "of the chat’s state are filled in. Empty: the text in grey, SYSTEM_PROMPT of .env."
            ),
            "tools": _("Names as the page “Tool configs” lists them, one a line."),
            "model_calls": _("Empty: the number in grey, MAX_ITERATIONS of .env."),
            "context_messages": _(
                "System message, history and current message. Empty: the number in grey, "
                "MAX_CONTEXT_MESSAGES of .env."
            ),
            "context_chars": _(
                "Approximately. Empty: the number in grey, MAX_CONTEXT_CHARS of .env."
            ),
            "run_seconds": _("Empty: the number in grey, RUN_TIMEOUT of .env."),
            "mention": _("The program’s setting: ENABLE_AT_IN_GROUP_MSG of .env."),
            "quote": _("The program’s setting: ENABLE_REPLY_IN_GROUP_MSG of .env."),
            "vision_mode": _("The program’s setting: VISION_MODE of .env."),
        }

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.initial["examples"] = format_examples(self.initial.get("examples") or [])
        usual = environment_persona()
        for name in ("prompt", *NUMBERS):
            self.show_unsaid(name, getattr(usual, name))
        for name in (*SWITCHES, "vision_mode"):
            words = gettext("as the program is set: %(value)s")
            self.show_unsaid(name, getattr(usual, name), words)

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
            if cleaned.get("as_tool") and (name := cleaned.get("name")):
                self._check_tool_name(name)
        return cleaned

    def _check_tool_name(self, name: str) -> None:
        if not TOOL_NAME.fullmatch(name):
            words = gettext(
                "An agent that is a tool of its own needs the name of a tool: at most 64 letters "
                "a to z, digits, _ and -, beginning with a letter."
            )
            self.add_error("name", words)
        elif is_tool_name_taken(name):
            words = gettext("There is a tool of this name already; choose another name.")
            self.add_error("name", words)


def is_tool_name_taken(name: str) -> bool:
    """Whether something else than a row of an agent is a tool called ``name``."""
    rows = ToolConfig.objects.filter(name=name).exclude(provider_name=PROVIDER_NAME)
    return rows.exists() or any(spec.name == name for spec in declared_tools())


class PersonaChoiceForm(SettingsForm):
    """Where a persona answers."""

    class Meta:
        model = PersonaChoice
        exclude = ()

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
        widget=forms.TextInput(attrs={"list": "chats", "autocomplete": "off"}),
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
