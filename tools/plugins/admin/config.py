"""A form for a plugin's configuration, made from the schema in its manifest. Secrets go in and
never come out."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from django import forms
from django.utils.translation import gettext, gettext_lazy as _
from jsonschema.exceptions import ValidationError

from tools.admin.declared import (
    argument_schemas,
    build_argument_field,
    list_parameters,
    strip_null,
)
from tools.admin.fields import LinesField
from tools.plugins.rows import (
    SEALED,
    decrypt_config,
    encrypt_config,
    is_encrypted,
    is_secret_schema,
    undecryptable_names,
)
from tools.schemas.arguments import UNUSABLE_SCHEMA, build_validator
from tools.schemas.patterns import TooMuchText, limit_matching
from tools.text.storable import make_storable

FORGET_PREFIX = "forget-"
"""How the names of the boxes begin with which a secret is taken away."""
#: Characters from which on a text has more than a line.
LONG_TEXT = 200


class TextListField(LinesField):
    """A list of texts, one on each line, without the spaces around them."""

    def clean(self, value: object) -> Any:
        return [line.strip() for line in super().clean(value)]


class SecretField(forms.CharField):
    """A secret: what is typed replaces it, and nothing that is kept or was typed is shown again."""

    widget = forms.PasswordInput(
        render_value=False, attrs={"autocomplete": "new-password", "class": "vTextField"}
    )

    def __init__(self, *, is_text: bool) -> None:
        super().__init__(required=False, strip=False)
        self._is_text = is_text

    def clean(self, value: object) -> Any:
        """What was typed, as the schema means it; None where nothing was."""
        text = super().clean(value)
        if not text or self._is_text:
            return text or None
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise forms.ValidationError(gettext("Write this as JSON.")) from error


class PluginConfigForm(forms.Form):
    """A field for each value that ``schema`` names; ``kept`` is what the row holds.

    A text or a list that is emptied is empty, where its default is not; everything else
    that is left empty is not given.
    """

    def __init__(self, schema: Any, kept: Any, data: Any = None) -> None:
        super().__init__(data, prefix="config")
        self._schema = schema
        self._kept: dict[str, Any] = kept if isinstance(kept, dict) else {}
        self._parts = {name: strip_null(part) for name, part in argument_schemas(schema).items()}
        self._secrets = {
            name
            for name, part in self._parts.items()
            if is_secret_schema(part) or is_encrypted(self._kept.get(name))
        }
        self._broken = set(undecryptable_names(self._kept, schema))
        for name in self._parts:
            self.fields[name] = self._field(name)
            if name in self._secrets and name in self._kept:
                self.fields[FORGET_PREFIX + name] = forms.BooleanField(
                    required=False, label=_("take it away")
                )

    def rows(self) -> list[dict[str, Any]]:
        """What the page shows of each value: its field, what the schema says, and whether a secret
        is there."""
        return [self._row(parameter) for parameter in list_parameters(self._schema)]

    def find_problems(self, *, is_enabled: bool) -> bool:
        """Look for faults and put them at their fields; whether there are any.

        A plugin that is disabled may lack what it needs, and be as it is where nothing was changed.
        """
        if self.is_valid() and (is_enabled or self.has_changed()):
            for name, words in self._problems(is_enabled=is_enabled):
                self.add_error(name if name in self.fields else None, words)
        return bool(self.errors)

    def stored(self) -> dict[str, Any]:
        """What the row is to hold, of a valid form; what the schema does not name stays as it
        is."""
        unknown = {name: value for name, value in self._kept.items() if name not in self._parts}
        return unknown | encrypt_config(self._given(), {"properties": self._parts})

    def changed_names(self) -> list[str]:
        """The values that were changed, by name."""
        return list(dict.fromkeys(name.removeprefix(FORGET_PREFIX) for name in self.changed_data))

    def _field(self, name: str) -> forms.Field:
        part = self._parts[name]
        if name in self._secrets:
            return SecretField(is_text=part.get("type", "string") == "string")
        field = _field(part)
        value = self._kept.get(name, part.get("default"))
        field.initial = (
            json.dumps(value)
            if isinstance(field, forms.TypedChoiceField) and value is not None
            else value
        )
        return field

    def _row(self, parameter: dict[str, Any]) -> dict[str, Any]:
        name, is_secret = parameter["key"], parameter["key"] in self._secrets
        return {
            "field": self[name],
            "parameter": parameter,
            "label": str(self._parts[name].get("title") or name),
            "is_secret": is_secret,
            "forget": self[FORGET_PREFIX + name] if FORGET_PREFIX + name in self.fields else None,
            "is_broken": name in self._broken,
            "default": "" if is_secret else parameter["default"],
        }

    def _given(self) -> dict[str, Any]:
        """The submitted values, by name; a secret that was not entered again keeps its sealed
        value."""
        given = {}
        for name, part in self._parts.items():
            value = self.cleaned_data.get(name)
            if name in self._secrets and value is None:
                value = (
                    None if self.cleaned_data.get(FORGET_PREFIX + name) else self._kept.get(name)
                )
            elif not part.get("default") and (
                value == "" or (value == [] and isinstance(self.fields[name], TextListField))
            ):
                value = None
            if value is not None:
                given[name] = make_storable(value)
        return given

    def _problems(self, *, is_enabled: bool) -> list[tuple[str, str]]:
        config = self._given()
        marked = [
            name
            for name, value in config.items()
            if name not in self._secrets and is_encrypted(value)
        ]
        problems = [
            (name, gettext("“%(mark)s” has a meaning of its own here.") % {"mark": SEALED})
            for name in marked
        ]
        lost = [name for name in undecryptable_names(config, self._schema) if name not in marked]
        words = gettext(
            "The secret key of this installation has changed, so this cannot be read any more: "
            "type it anew."
        )
        problems += [(name, words) for name in lost]
        return problems or check_plugin_config(
            self._schema, decrypt_config(config, self._schema), is_complete=is_enabled
        )


def _field(part: dict[str, Any]) -> forms.Field:
    if isinstance(part.get("enum"), list):
        return build_argument_field(part)
    if part.get("type") == "string":
        return forms.CharField(required=False, strip=False, widget=_text_input(part))
    items = part.get("items")
    if (
        part.get("type") == "array"
        and isinstance(items, dict)
        and items.get("type") == "string"
        and "enum" not in items
    ):
        return TextListField(required=False, widget=_text_area(3))
    return build_argument_field(part)


def _text_area(rows: int) -> forms.Widget:
    return forms.Textarea(attrs={"rows": rows, "class": "vLargeTextField"})


def _text_input(part: dict[str, Any]) -> forms.Widget:
    length = part.get("maxLength")
    is_long = "\n" in str(part.get("default") or "") or (
        isinstance(length, int) and length > LONG_TEXT
    )
    if is_long or part.get("format") in ("textarea", "multiline"):
        return _text_area(4)
    return forms.TextInput(attrs={"class": "vTextField"})


# What is wrong with a configuration, field by field, in words that repeat no value: one may be a
# secret.

#: Characters of what a plugin has written that a fault repeats.
SHOWN = 100

FieldMessage = tuple[str, str]
"""The name of a value ("" for the configuration as a whole), and a translated sentence."""


def check_plugin_config(
    schema: object, config: dict[str, Any], *, is_complete: bool
) -> list[FieldMessage]:
    """What ``schema`` finds wrong with ``config``, in which secrets are opened; with
    ``is_complete`` also what is missing."""
    if not isinstance(schema, dict):
        return []
    try:
        with limit_matching():
            found = list(build_validator(schema).iter_errors(config))
    except TooMuchText:
        return [
            ("", gettext("The texts are too long to be matched against the plugin's patterns."))
        ]
    except UNUSABLE_SCHEMA as error:
        return [
            (
                "",
                gettext("The plugin's config_schema cannot be used: %(reason)s")
                % {"reason": str(error)[:SHOWN]},
            )
        ]
    problems = [fault for error in found for fault in _problems(error, is_complete=is_complete)]
    return list(dict.fromkeys(problems))


def _problems(error: ValidationError, *, is_complete: bool) -> Iterator[FieldMessage]:
    path = [str(step) for step in error.absolute_path]
    if error.validator == "required" and not path:
        wanted: Any = error.validator_value
        given: Any = error.instance
        missing = [str(name) for name in wanted if name not in given] if is_complete else []
        yield from ((name, gettext("The plugin needs this.")) for name in dict.fromkeys(missing))
        return
    rule = str(error.validator)
    unknown = gettext("The plugin does not take this (%(rule)s).") % {"rule": rule}
    words = _WORDS[rule](error.validator_value) if rule in _WORDS else unknown
    yield path[0] if path else "", f"{' → '.join(path[1:])}: {words}" if path[1:] else words


def _kinds(wanted: Any) -> str:
    names = {
        "string": gettext("text"),
        "integer": gettext("a whole number"),
        "number": gettext("a number"),
        "boolean": gettext("yes or no"),
        "array": gettext("a list"),
        "object": gettext("an object"),
        "null": gettext("nothing"),
    }
    kinds = wanted if isinstance(wanted, list) else [wanted]
    return gettext("This has to be: %(kinds)s.") % {
        "kinds": ", ".join(names.get(kind, str(kind)) for kind in kinds)
    }


_WORDS: dict[str, Callable[[Any], str]] = {
    "type": _kinds,
    "required": lambda names: (
        gettext("Needed in it: %(names)s.") % {"names": ", ".join(map(str, names))[:SHOWN]}
    ),
    "enum": lambda _: gettext("This is none of the values that the plugin takes."),
    "const": lambda _: gettext("This is none of the values that the plugin takes."),
    "pattern": lambda pattern: (
        gettext("This has to match the pattern %(pattern)s.") % {"pattern": str(pattern)[:SHOWN]}
    ),
    "uniqueItems": lambda _: gettext("Nothing may be listed twice."),
    "minLength": lambda limit: gettext("At least %(limit)s characters.") % {"limit": limit},
    "maxLength": lambda limit: gettext("At most %(limit)s characters.") % {"limit": limit},
    "minItems": lambda limit: gettext("At least %(limit)s entries.") % {"limit": limit},
    "maxItems": lambda limit: gettext("At most %(limit)s entries.") % {"limit": limit},
    "minimum": lambda limit: gettext("Not less than %(limit)s.") % {"limit": limit},
    "maximum": lambda limit: gettext("Not more than %(limit)s.") % {"limit": limit},
    "exclusiveMinimum": lambda limit: gettext("More than %(limit)s.") % {"limit": limit},
    "exclusiveMaximum": lambda limit: gettext("Less than %(limit)s.") % {"limit": limit},
    "multipleOf": lambda limit: gettext("A multiple of %(limit)s.") % {"limit": limit},
}
