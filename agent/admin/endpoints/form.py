"""The form of a model endpoint: what it takes, and a sentence at the field for all else."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agent.admin.endpoints.fields import (
    HeadersField,
    KeysField,
    normalize_base_url,
    other_protocol,
)
from agent.llm.providers.presets import PRESETS
from agent.models import ModelEndpoint
from agent.pages.endpoints.address import find_address_problem
from agent.pages.endpoints.presets import fill_in, preset_choices
from tools.admin.json_field import IndentedJSONField
from tools.secrets.encryption import DecryptionError
from tools.secrets.hosts import parse_host

if TYPE_CHECKING:
    _Form = forms.ModelForm[ModelEndpoint]
else:
    _Form = forms.ModelForm

FROM_ENVIRONMENT = ("base_url", "model", "keys")
"""What the environment says of the endpoints that it names."""
_OWN_FIELDS = {
    "messages": _("the messages"),
    "tools": _("the tools"),
    "model": _("the model, which has its own field"),
    "stream": _("“streamed”, which has its own field"),
}


def stored_secrets(row: ModelEndpoint, name: str) -> Any:
    """The ``keys`` or ``headers`` of ``row``; None where they cannot be read any more."""
    try:
        return getattr(row, name)
    except DecryptionError:
        return None


class EndpointForm(_Form):
    """One endpoint. ``user`` is who fills it in."""

    user: User | None = None

    preset = forms.ChoiceField(
        label=capfirst(_("provider")),
        required=False,
        help_text=_(
            "Choose it, paste the key, fetch the models, choose one, press “Save and test”. All "
            "below the model may stay as it is."
        ),
    )
    keys = KeysField(
        label=capfirst(_("keys")),
        required=False,
        help_text=_(
            "One a line; several are used in turn. Stored encrypted and never shown again: •••• 1 "
            "stands for the first stored one and keeps it; deleting its line deletes the key."
        ),
    )
    headers = HeadersField(
        label=capfirst(_("headers")),
        required=False,
        help_text=_(
            "NAME: value, one a line, or a JSON object; for gateways that want more than a key. "
            "Stored encrypted and never shown again, as keys."
        ),
    )
    extra_body = IndentedJSONField(
        label=_("Further parameters (extra_body)"),
        required=False,
        help_text=_("Further keys of the request, as a JSON object. They come last and win."),
    )
    filled = forms.BooleanField(required=False, widget=forms.HiddenInput)
    """The page's script has filled in what the preset knows, and the person has seen it."""

    class Meta:
        model = ModelEndpoint
        fields = "__all__"
        widgets = {  # noqa: RUF012 - Django's own way to say it
            "base_url": forms.TextInput(
                attrs={"class": "vLargeTextField", "spellcheck": "false", "inputmode": "url"}
            ),
            "model": forms.TextInput(
                attrs={
                    "class": "vLargeTextField",
                    "spellcheck": "false",
                    "list": "endpoint-models",
                    "autocomplete": "off",
                }
            ),
        }
        labels = {  # noqa: RUF012 - as above
            "temperature": _("Chance (temperature)"),
            "top_p": _("Range of words (top_p)"),
            "max_tokens": _("Longest answer (max_tokens)"),
        }
        help_texts = {  # noqa: RUF012 - as above
            "temperature": _("0 to 2: low is sober, high is imaginative. Empty: not sent."),
            "top_p": _("0 to 1: low keeps to likely words. Empty: not sent."),
            "timeout_seconds": _(
                "For one call. Empty: what LLM_TIMEOUT in .env says, else its default."
            ),
            "base_url": _(
                "Of an OpenAI-compatible API; most end in /v1. A model on this machine or in your "
                "own network is as good, for example http://127.0.0.1:11434/v1. When scheme, host "
                "or port change, keys and headers have to be entered again."
            ),
            "model": _("As the provider writes it."),
            "name": _("What you call it. Empty: provider and model."),
        }

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if "name" in self.fields:  # not on a page that is only looked at
            self.fields["name"].required = False
        if "preset" in self.fields:
            self.fields["preset"].choices = preset_choices()  # type: ignore[attr-defined]
        for name in ("keys", "headers"):
            if name in self.fields:
                field: Any = self.fields[name]
                field.stored = stored_secrets(self.instance, name)
                self.initial[name] = field.shown()
        if self.instance.environment:
            for name in FROM_ENVIRONMENT:
                if name in self.fields:
                    self.fields[name].disabled = True

    # --- Fields -----------------------------------------------------------------

    def clean_base_url(self) -> str:
        text: str = self.cleaned_data["base_url"]
        if self.instance.environment:
            return text
        preset = PRESETS.get(self.cleaned_data.get("preset") or "")
        if not text.strip() and preset:
            text = preset.base_url
        if not text.strip():
            raise ValidationError(
                gettext("Choose a provider, or enter the address that its documentation names.")
            )
        url = normalize_base_url(text)
        if words := other_protocol(url):
            raise ValidationError(words)
        if url != self.instance.base_url and (words := find_address_problem(self.user, url)):
            raise ValidationError(words)
        return url

    def clean_model(self) -> str:
        name = str(self.cleaned_data["model"]).strip()
        if not name and not self.instance.environment and "_fetch" not in self.data:
            raise ValidationError(
                gettext("Which model? “Fetch models” shows what the provider has.")
            )
        return name

    def clean_extra_body(self) -> dict[str, Any]:
        value = self.cleaned_data["extra_body"]
        if value in (None, ""):
            return {}
        if not isinstance(value, dict):
            raise ValidationError(gettext('This must be a JSON object, such as {"seed": 1}.'))
        for name, words in _OWN_FIELDS.items():
            if name in value:
                raise ValidationError(
                    gettext("“%(name)s” cannot stand here: the program itself sends %(words)s.")
                    % {"name": name, "words": words}
                )
        return value

    def clean_currency(self) -> str:
        return str(self.cleaned_data["currency"]).strip().upper()

    # --- All of them ------------------------------------------------------------

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if preset := PRESETS.get(cleaned.get("preset") or ""):
            self._follow(preset.id, cleaned)
        if "base_url" in cleaned:
            self._refuse_moved(cleaned["base_url"])
        if not cleaned.get("name") and "name" not in self.errors:
            cleaned["name"] = self._own_name(cleaned)
        window, most = cleaned.get("window"), cleaned.get("max_tokens")
        if window and most and most >= window:
            self.add_error(
                "max_tokens",
                gettext("One answer would fill the whole window of %d tokens.") % window,
            )
        has_price = any(cleaned.get(f"price_{name}") for name in ("input", "output"))
        if has_price and cleaned.get("currency") == "":
            self.add_error("currency", gettext("In which currency are the prices?"))
        return cleaned

    def _follow(self, preset_id: str, cleaned: dict[str, Any]) -> None:
        """Fill in what the provider's preset knows, and ask for a key where it needs one."""
        preset = PRESETS[preset_id]
        is_new = self.instance.pk is None or not self.instance.model
        fill_in(cleaned, preset, is_new=is_new and not cleaned.get("filled"))
        lacks = preset.needs_key and "keys" in cleaned and cleaned["keys"] == []
        if lacks and not self.instance.environment and not cleaned.get("headers"):
            words = gettext("%(provider)s wants a key. Get one at %(url)s")
            self.add_error("keys", words % {"provider": preset.title, "url": preset.key_url})

    def _refuse_moved(self, url: str) -> None:
        """No stored secret goes to a new place: whoever changes the address enters them again."""
        before = self.instance.base_url
        if self.instance.pk is None or self.instance.environment or url == before:
            return
        old, new = parse_host(before), parse_host(url)
        if old == new and old is not None:
            return
        for name in ("keys", "headers"):
            if getattr(self.fields[name], "kept", ()):
                self.add_error(
                    name,
                    gettext(
                        "The address has changed, and what is stored is not sent elsewhere: enter "
                        "it again."
                    ),
                )

    def _own_name(self, cleaned: dict[str, Any]) -> str:
        preset = PRESETS.get(cleaned.get("preset") or "")
        provider = str(preset.title) if preset and preset.base_url else ""
        parts = [provider, cleaned.get("model") or ""]
        base = " ".join(filter(None, parts))[:80] or gettext("model endpoint")
        taken = ModelEndpoint.objects.exclude(pk=self.instance.pk)
        names = [base, *(f"{base} ({number})" for number in range(2, 100))]
        used = set(taken.filter(name__in=names).values_list("name", flat=True))
        return next((name for name in names if name not in used), base)

    def _post_clean(self) -> None:
        """The sealed values are no fields of the model, so that Django does not carry them over."""
        super()._post_clean()  # type: ignore[misc]
        if self.instance.environment:
            self.cleaned_data.pop("keys", None)
        for name in ("keys", "headers"):
            value = self.cleaned_data.get(name)
            if value is not None and value != stored_secrets(self.instance, name):
                setattr(self.instance, name, value)
