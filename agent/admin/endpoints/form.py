"""The form of a model endpoint: what it takes, a sentence at the field for all else, and what the
presets fill in."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_lazy as _

from agent.domain.endpoint import ThinkingSwitch
from agent.llm.client.transport import is_sendable
from agent.llm.providers.presets import (
    EFFORTS,
    PRESETS,
    Preset,
    PresetModel,
    Thinks,
    thinking_parameters,
)
from agent.models import ModelEndpoint
from agent.pages.endpoints import find_address_problem
from tools.admin.fields import (
    IndentedJSONField,
    LinesField,
    SecretLinesField,
    name_source,
    refuse,
)
from tools.admin.settings_page import SettingsForm
from tools.secrets import hosts, masked

#: What the environment says of the endpoints that it names.
FROM_ENVIRONMENT = ("base_url", "model", "keys")
_OWN_FIELDS = {
    "messages": _("the messages"),
    "tools": _("the tools"),
    "model": _("the model, which has its own field"),
    "stream": _("“streamed”, which has its own field"),
}


MOST_KEYS = 100
MOST_HEADERS = 50
LONGEST_KEY = 4_000
OLLAMA_PORT = 11434
_ENDINGS = ("/chat/completions", "/completions", "/models", "/embeddings", "/audio/transcriptions")
_QUOTES = "\"'`“”‘’„«»"
_BEGIN = re.compile(r"[A-Za-z]{2,8}-")
_STORED = re.compile(rf"{masked.MASK}\s*(\d+)?")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_OWN_HEADERS = frozenset(
    {"host", "content-length", "content-type", "transfer-encoding", "connection", "expect"}
)
_OTHER_PROTOCOLS = (
    (re.compile(r"/messages\Z|/anthropic(/|\Z)"), "Anthropic"),
    (re.compile(r":(streamG|g)enerateContent\Z"), "Gemini"),
    (re.compile(r"/responses\Z"), "Responses"),
)


def normalize_base_url(text: str) -> str:
    """The base address in what was entered: without ``/chat/completions`` and the like at its end.

    A query stays. Raises ValidationError with a sentence that says what is wrong.
    """
    text = text.strip().strip(_QUOTES)
    refuse(
        re.search(r"\s", text) or not text.isprintable(),
        gettext("The address holds a space or a line break: copy it once more, in one piece."),
    )
    refuse(
        "://" not in text,
        gettext("The address begins with https:// or, in your own network, with http://."),
    )
    try:
        parts = urlsplit(text)
        host = parts.hostname if parts.port is None or parts.port else None
    except ValueError as error:
        raise ValidationError(
            gettext("This is no address: its host or port cannot be read.")
        ) from error
    refuse(
        parts.scheme.lower() not in ("http", "https"),
        gettext("The address begins with https:// or http://, with nothing else."),
    )
    refuse(
        parts.username is not None or parts.password is not None,
        gettext("The address must not hold a user or password: a key has its own field."),
    )
    refuse(
        not host or not re.fullmatch(r"[\w.-]+|[0-9A-Fa-f:.]+", host),
        gettext("The address names no host, such as api.example.com."),
    )
    path = parts.path.rstrip("/")
    for ending in _ENDINGS:
        path = path.removesuffix(ending).rstrip("/")
    if parts.port == OLLAMA_PORT and re.fullmatch(r"(/api(/\w+)?)?", path):
        path = "/v1"  # its own protocol is below /api
    return urlunsplit((parts.scheme.lower(), parts.netloc.lower(), path, parts.query, ""))


def other_protocol(url: str) -> str:
    """What is to be said of an address that is known to speak another protocol; "" for others."""
    parts = urlsplit(url)
    address = f"{parts.netloc}{parts.path}"
    name = next((name for sign, name in _OTHER_PROTOCOLS if sign.search(address)), "")
    words = gettext(
        "This is an address of the %s protocol. Enter the one of the OpenAI-compatible API (chat "
        "completions); the provider's documentation names it."
    )
    return words % name if name else ""


def clean_key(line: str) -> str:
    """The key in a line that somebody pasted: without quotes, ``Bearer`` and the like before it.

    Raises ValidationError; the key is not in its words.
    """
    key = line.strip().strip(_QUOTES).strip()
    key = re.sub(r"(?i)\A(authorization\s*:\s*)?bearer\s+", "", key).strip().strip(_QUOTES)
    key = re.sub(r"\A[A-Z][A-Z0-9_]*_KEY\s*=\s*", "", key).strip(_QUOTES)
    refuse(
        re.search(r"\s", key),
        gettext("A key holds no space and no line break inside: paste it in one piece."),
    )
    refuse(
        not is_sendable(key),
        gettext(
            "A key holds a character that no key has (Chinese, a full-width or an invisible "
            "one): copy it once more from the provider's page."
        ),
    )
    refuse(len(key) > LONGEST_KEY, gettext("This is too long for a key."))
    return key


class KeysField(LinesField):
    """Keys, one a line; ``•••• 2`` stands for the second one that is stored.

    The form sets ``stored``; None where they cannot be read any more. Cleaned to a list, or None
    where those that cannot be read stay.
    """

    stored: Sequence[str] | None = ()
    #: Once it is cleaned: what stands for stored keys that stay.
    kept: tuple[str, ...] = ()

    def shown(self) -> str:
        if self.stored is None:
            return masked.MASK
        return "\n".join(f"{masked.MASK} {number}" for number in range(1, len(self.stored) + 1))

    def clean(self, value: object) -> Any:
        lines = [line.strip() for line in super().clean(value)]
        self.kept = tuple(line for line in lines if line.startswith(masked.MASK))
        if self.stored is None and lines == [masked.MASK]:
            return None
        refuse(len(lines) > MOST_KEYS, gettext("At most %d keys.") % MOST_KEYS)
        keys = [key for line in lines if (key := self._read(line))]
        new = [key for line, key in zip(lines, keys, strict=False) if masked.MASK not in line]
        begin = _BEGIN.match(new[0]) if new else None
        refuse(
            begin and not all(key.startswith(begin[0]) for key in new),
            gettext(
                "One line begins otherwise than the first. If one key was broken over two "
                "lines, join them; several keys stand one a line."
            ),
        )
        return list(dict.fromkeys(keys))

    def _read(self, line: str) -> str:
        if masked.MASK not in line:
            return clean_key(line)
        found = _STORED.fullmatch(line)
        index = int(found[1] or 1) - 1 if found else -1
        if self.stored is None or not 0 <= index < len(self.stored):
            raise ValidationError(
                gettext("“%s” stands for no stored key: replace the whole line with a key.")
                % line[:20]
            )
        return self.stored[index]


class HeadersField(SecretLinesField):
    """Headers, ``NAME: value`` one a line or as a JSON object; cleaned to a dict."""

    def __init__(self, **options: object) -> None:
        super().__init__(":", **options)

    def clean(self, value: object) -> Any:
        found = super().clean(_as_lines(value) if isinstance(value, str) else value)
        if isinstance(found, Mapping):
            refuse(len(found) > MOST_HEADERS, gettext("At most %d headers.") % MOST_HEADERS)
            for name, entered in found.items():
                _check_header(name, entered)
        return found


def _as_lines(text: str) -> str:
    """``text``, or the lines of the JSON object that it is."""
    if not text.strip().startswith("{"):
        return text
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict) or not all(isinstance(one, str) for one in fields.values()):
        raise ValidationError(
            gettext('This is no JSON object of texts, such as {"X-Name": "value"}.'),
        )
    for name, entered in fields.items():
        _check_header(name, entered)
    return "\n".join(f"{name}: {entered}" for name, entered in fields.items())


def _check_header(name: str, value: str) -> None:
    refuse(
        not _HEADER_NAME.fullmatch(name),
        gettext("“%s” is no name of a header: letters, digits and dashes.") % name[:50],
    )
    refuse(
        name.lower() in _OWN_HEADERS,
        gettext("The header “%s” is set by the program itself.") % name,
    )
    refuse(
        not (is_sendable(value) or value == masked.MASK),
        gettext("The value of “%s” holds a line break or a sign that is no ASCII.") % name,
    )


PRICES = ("price_input", "price_cached", "price_output")


def model_facts(model: PresetModel, preset: Preset) -> dict[str, Any]:
    """The values of the form's fields that are known of ``model``."""
    price = model.price
    return {
        "can_chat": model.answers,
        "can_tools": model.tools and model.answers,
        "can_see": model.sees,
        "can_think": model.thinks is not Thinks.NO,
        "can_transcribe": model.transcribes,
        "can_embed": model.embeds,
        "window": model.window,
        "streamed": preset.streamed and model.answers,
        "thinking": _first_switch(preset) if model.answers else "",
        "price_input": price and price.input,
        "price_cached": price and price.cached,
        "price_output": price and price.output,
        "currency": price.currency if price else "",
    }


def _first_switch(preset: Preset) -> str:
    if preset.starts_thinking is None:
        return ThinkingSwitch.OWN
    return ThinkingSwitch.ON if preset.starts_thinking else ThinkingSwitch.OFF


def fill_in(values: dict[str, Any], preset: Preset, *, is_new: bool) -> None:
    """Fill what is empty among ``values``, the cleaned fields of a form, with what ``preset`` knows
    of the model; of a new row the marks too, which cannot be empty."""
    known = preset.model(values.get("model") or "")
    if known is None:
        if is_new:
            values["thinking"] = values.get("thinking") or _first_switch(preset)
            values["streamed"] = values.get("streamed") or preset.streamed
        return
    facts = model_facts(known, preset)
    has_prices = any(values.get(name) is not None for name in PRICES)
    for name, value in facts.items():
        is_mark = isinstance(value, bool) or name == "thinking"
        if name in (*PRICES, "currency"):
            if not has_prices and facts["price_input"] is not None:
                values[name] = value
        elif is_new if is_mark else values.get(name) is None:
            values[name] = value


def describe_presets() -> dict[str, Any]:
    """The presets as JSON for the page's script."""
    return {
        one.id: {
            "url": one.base_url,
            "keyUrl": one.key_url,
            "needsKey": one.needs_key,
            "hint": str(one.hint),
            "title": str(one.title),
            "thinking": _first_switch(one),
            "streamed": one.streamed,
            "others": [
                {"title": str(other.title), "url": other.base_url, "keyUrl": other.key_url}
                for other in one.others
            ],
            "models": {
                model.name: {
                    name: value if isinstance(value, bool | str | int | None) else str(value)
                    for name, value in model_facts(model, one).items()
                }
                for model in one.models
            },
        }
        for one in PRESETS.values()
    }


def effort_warning(preset_id: str, effort: str, model: str) -> str:
    """What happens to an ``effort`` that the provider does not know; "" where it does, or where
    none is wished."""
    preset = PRESETS.get(preset_id)
    if not effort or preset is None:
        return ""
    sent = thinking_parameters(preset.thinking, True, effort, model)
    if effort in _texts(sent):
        words = gettext("The effort “%s” is not known here. It is sent as it is.")
        return "" if effort in EFFORTS else words % effort
    others = [text for text in _texts(sent) if text not in ("enabled", "disabled")]
    if others:
        return gettext(
            "This model does not know the effort “%(effort)s”: “%(sent)s” is sent instead."
        ) % {"effort": effort, "sent": others[0]}
    return gettext("This provider takes no effort for this model: “%s” is not sent.") % effort


def _texts(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for part in value.values() for text in _texts(part)]
    return [value] if isinstance(value, str) else []


class EndpointForm(SettingsForm):
    """One endpoint."""

    sealed = ("keys", "headers")

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
    #: The page's script has filled in what the preset knows, and the person has seen it.
    filled = forms.BooleanField(required=False, widget=forms.HiddenInput)

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
            "timeout_seconds": _("For one call."),
            "base_url": _(
                "Of an OpenAI-compatible API; most end in /v1. A model on this machine or in your "
                "own network is as good, for example http://127.0.0.1:11434/v1. When scheme, host "
                "or port change, keys and headers have to be entered again."
            ),
            "model": _("As the provider writes it."),
            "name": _("What you call it. Empty: provider and model."),
        }

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)
        if "name" in self.fields:  # not on a page that is only looked at
            self.fields["name"].required = False
        self.show_unsaid("timeout_seconds", f"{settings.LLM_TIMEOUT:g}", name_source("LLM_TIMEOUT"))
        if "preset" in self.fields:
            presets = [(one.id, str(one.title)) for one in PRESETS.values()]
            self.fields["preset"].choices = [("", gettext("choose one")), *presets]  # type: ignore[attr-defined]

    def locked(self) -> Collection[str]:
        return FROM_ENVIRONMENT if self.instance.environment else ()

    # --- Fields -----------------------------------------------------------------

    def clean_base_url(self) -> str:
        text: str = self.cleaned_data["base_url"]
        if self.instance.environment:
            return text
        preset = PRESETS.get(self.cleaned_data.get("preset") or "")
        if not text.strip() and preset:
            text = preset.base_url
        refuse(
            not text.strip(),
            gettext("Choose a provider, or enter the address that its documentation names."),
        )
        url = normalize_base_url(text)
        if words := other_protocol(url):
            raise ValidationError(words)
        if url != self.instance.base_url and (words := find_address_problem(self.user, url)):
            raise ValidationError(words)
        return url

    def clean_model(self) -> str:
        name = str(self.cleaned_data["model"]).strip()
        refuse(
            not name and not self.instance.environment and "_fetch" not in self.data,
            gettext("Which model? “Fetch models” shows what the provider has."),
        )
        return name

    def clean_extra_body(self) -> dict[str, Any]:
        value = self.cleaned_data["extra_body"]
        if value in (None, ""):
            return {}
        if not isinstance(value, dict):
            raise ValidationError(gettext('This must be a JSON object, such as {"seed": 1}.'))
        for name, words in _OWN_FIELDS.items():
            refuse(
                name in value,
                gettext("“%(name)s” cannot stand here: the program itself sends %(words)s.")
                % {"name": name, "words": words},
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
        old, new = hosts.parse_host(before), hosts.parse_host(url)
        if old == new and old is not None:
            return
        words = gettext(
            "The address has changed, and what is stored is not sent elsewhere: enter it again."
        )
        self.refuse_kept(dict.fromkeys(self.sealed, words))

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
        """What the environment names keeps no key of its own."""
        if self.instance.environment:
            self.cleaned_data.pop("keys", None)
        super()._post_clean()
