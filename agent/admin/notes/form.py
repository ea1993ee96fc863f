"""A note as a person writes it: tags as words, a chat as it is known."""

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agent.access import NOTHING, find_access
from agent.domain.notes import TEXT_LIMIT
from agent.models import ChatSession, Note

#: Chats that a form suggests, those with the newest messages.
SUGGESTED = 200
#: What separates tags: commas of both kinds, the Chinese pause mark, and lines.
SEPARATOR = re.compile(r"[,，、;；\n]")
#: A chat as people write it: ``group 30001``, ``群30001``, ``私聊：20001``.
WRITTEN_CHAT = re.compile(r"(group|private|群聊?|私聊)\s*[:：]?\s*(\d+)", re.IGNORECASE)

if TYPE_CHECKING:
    _Form = forms.ModelForm[Note]
else:
    _Form = forms.ModelForm


class TagsField(forms.CharField):
    """Short words with commas between them; cleaned to a list. A JSON list, as a script may send
    it, is read as well."""

    def prepare_value(self, value: Any) -> Any:
        return ", ".join(map(str, value)) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
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


class SuggestedInput(forms.TextInput):
    """A line of text with values to choose from, each with the name that people know it by."""

    def __init__(self, suggested: Iterable[tuple[str, str]] = (), attrs: Any = None) -> None:
        super().__init__({"class": "vTextField", "autocomplete": "off", **(attrs or {})})
        self.suggested = list(suggested)

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        known = f"{(attrs or {}).get('id', name)}_known"
        shown = super().render(name, value, {**(attrs or {}), "list": known}, renderer)
        options = format_html_join("", '<option value="{}">{}</option>', self.suggested)
        return format_html('{}<datalist id="{}">{}</datalist>', shown, known, options)


def suggest_chats(user: Any) -> list[tuple[str, str]]:
    """The chats with the newest messages that ``user`` may reach, each with its name."""
    return [(chat.key, f"{chat.title or chat.key} ({chat.account})") for chat in _newest(user)]


def suggest_accounts(user: Any) -> list[tuple[str, str]]:
    """The accounts of these chats."""
    return [(account, account) for account in sorted({chat.account for chat in _newest(user)})]


def _newest(user: Any) -> list[ChatSession]:
    return list(find_access(user).sessions().order_by("-last_message_at", "-pk")[:SUGGESTED])


class NoteForm(_Form):
    """The model refuses a note that no viewer could see, and one too many."""

    tags = TagsField(
        label=_("tags"), required=False, help_text=_("Short words with commas between them.")
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
            )
        }

    #: What the writer may reach; set for each of them.
    access = NOTHING

    def clean(self) -> dict[str, Any]:
        """Who may not see every chat writes notes of his own ones, for them alone."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if self.access.is_everything or self.errors:
            return cleaned
        place = (cleaned["account"], cleaned["chat"])
        if place[0] not in self.access.accounts and place not in self.access.chats:
            self.add_error("chat", gettext("Choose one of your own chats and its account."))
        if cleaned["visibility"] != Note.Visibility.CHAT:
            self.add_error("visibility", gettext("Your notes are for the chat that they name."))
        return cleaned

    def clean_chat(self) -> str:
        """A chat as the record names it."""
        chat = str(self.cleaned_data["chat"]).strip()
        written = WRITTEN_CHAT.fullmatch(chat)
        if written is None:
            return chat
        kind = "group" if written[1].lower() in ("group", "群", "群聊") else "private"
        return f"{kind}:{written[2]}"
