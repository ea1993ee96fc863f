"""Form fields that hold JSON, or one thing a line: arguments, and named values that are never
shown again; and cells that no spreadsheet takes for a formula."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.forms.fields import InvalidJSONInput
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _, gettext_lazy

from tools.secrets.masked import MASK
from tools.text.storable import make_storable

#: What a spreadsheet takes for a formula, also behind what is not seen; in Chinese ones full-width
#: signs compute as well.
FORMULA = re.compile(
    r"[\s\x00-\x1f\x7f-\x9f\xad\u180e\u200b-\u200f\u2060-\u206f\ufeff]*[-=+@\u2212\ufe62\ufe63\ufe66\ufe6b\uff0b\uff0d\uff1d\uff20]"
    r"|[\t\r\n]"
)


def escape_formula(value: object) -> Any:
    """``value``, behind an apostrophe where it is a text that a spreadsheet would compute."""
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) else value


def refuse(is_wrong: object, words: str) -> None:
    """Raises ValidationError, for what somebody has entered."""
    if is_wrong:
        raise ValidationError(words)


JSON_INPUT = {"rows": 4, "class": "vLargeTextField template", "spellcheck": "false"}


class IndentedJSONField(forms.JSONField):
    """JSON shown as people write it; whatever cannot be read or stored is refused, never raised."""

    widget = forms.Textarea(attrs=JSON_INPUT)

    def to_python(self, value: object) -> Any:
        if isinstance(value, str) and not value.strip():
            value = ""
        try:
            content = make_storable(super().to_python(value))
            json.dumps(content, allow_nan=False)  # no database takes NaN and Infinity
            return content
        except (
            ValueError,
            RecursionError,
        ) as error:  # numbers and nesting beyond what Python reads
            raise ValidationError(
                self.error_messages["invalid"], code="invalid", params={"value": value}
            ) from error

    def bound_data(self, data: object, initial: object) -> Any:
        """What was typed is shown again as it was typed."""
        return InvalidJSONInput(data or "")

    def prepare_value(self, value: object) -> Any:
        if value is None or isinstance(value, InvalidJSONInput):
            return value
        return json.dumps(value, ensure_ascii=False, indent=2)


#: Characters that such a field takes.
MAX_FIELD_CHARS = 100_000


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


def choosing(
    kind: str = "",
    takes: str = "number",
    *,
    by: str = "",
    fills: str = "",
    then: str = "",
    **attrs: object,
) -> dict[str, Any]:
    """Attributes of a text field, or of one with one id a line, whose ids are found by name where
    scripts run. ``kind`` is what is looked for, such as ``chat`` or ``person``, or ``by`` names the
    field of the same form that says it; ``takes`` is the form in which an id is written: its
    ``number``, ``chat`` (``group:123``), or the ``subject`` of sums. ``fills`` names fields that
    are filled in along with it where they are empty, and ``then`` is what stands behind the first
    id of a line. The search lists only what its reader may see."""
    own = {"data-choose": kind, "data-choose-by": by, "data-takes": takes, "data-fills": fills}
    own["data-then"] = then
    return {name: value for name, value in own.items() if value} | {"autocomplete": "off"} | attrs


#: Where a setting of the environment can stand.
SOURCES = {
    "file": gettext_lazy("%(name)s in .env"),
    "process": gettext_lazy("%(name)s in the environment"),
}


def name_source(variable: str) -> str:
    """From where the setting ``variable`` of the environment has its value."""
    found = settings.SETTING_SOURCES.get(variable, "")
    return SOURCES[found] % {"name": variable} if found else _("default")


class LinesField(forms.CharField):
    """Texts, one a line; cleaned to a list without the empty ones."""

    def __init__(self, **options: Any) -> None:
        widget = forms.Textarea(
            attrs={"rows": 4, "class": "vLargeTextField template", "spellcheck": "false"}
        )
        super().__init__(strip=False, max_length=MAX_FIELD_CHARS, **{"widget": widget} | options)

    def prepare_value(self, value: object) -> Any:
        return "\n".join(map(str, value)) if isinstance(value, list) else value

    def clean(self, value: object) -> Any:
        return split_lines(super().clean(self.prepare_value(value)))

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Browsers send other line ends than they were given."""
        return split_lines(self.prepare_value(initial) or "") != split_lines(data or "")


class SecretLinesField(LinesField):
    """Named values, one a line with ``sign`` between name and value, shown as ``NAME=••••`` and
    cleaned to a dict.

    The form has to set ``stored``: the values there are, or None when they cannot be read any more.
    Those are shown as one line of dots, and as long as it stays the result is None.
    """

    stored: Mapping[str, str] | None = {}
    #: Once it is cleaned: the names whose stored values stay, as dots stand behind them.
    kept: tuple[str, ...] = ()

    def __init__(self, sign: str, **options: object) -> None:
        self.sign = sign
        super().__init__(**options)

    def shown(self) -> str:
        """The field's text for what is stored."""
        return (
            MASK
            if self.stored is None
            else "\n".join(f"{name}{self._joint}{MASK}" for name in self.stored)
        )

    def clean(self, value: object) -> Any:
        lines: list[str] = super().clean(value)
        self.kept = ()
        if self.stored is None and [line.strip() for line in lines] == [MASK]:
            self.kept = (MASK,)
            return None
        found: dict[str, str] = {}
        for line in lines:
            name, entered = self._read(line)
            refuse(
                name.lower() in (known.lower() for known in found),
                _("“%s” stands here twice.") % name,
            )
            found[name] = entered
        return found

    @property
    def _joint(self) -> str:
        return ": " if self.sign == ":" else self.sign

    def _read(self, line: str) -> tuple[str, str]:
        name, sign, value = line.partition(self.sign)
        name, value = name.strip(), value.strip() if self.sign == ":" else value
        refuse(
            not sign or not name,
            _("Each line must be %(form)s. Look at the one that begins with “%(begin)s”.")
            % {"form": _("NAME") + self._joint + _("value"), "begin": name[:20]},
        )
        if MASK not in value:
            return name, value
        refuse(
            value.strip() != MASK,
            _(
                "The dots behind “%s” stand for the whole stored value: leave them alone, or "
                "replace all of it."
            )
            % name,
        )
        if self.stored is None or name not in self.stored:
            raise ValidationError(_("There is no stored value of “%s”: enter it.") % name)
        self.kept += (name,)
        return name, self.stored[name]


def split_lines(text: str) -> list[str]:
    """The lines of ``text`` that hold anything."""
    return [
        line
        for line in (part.rstrip("\r") for part in str(make_storable(text)).split("\n"))
        if line.strip()
    ]
