"""Form fields that hold one thing a line: arguments, and named values that are never shown
again."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from tools.secrets.masked import MASK
from tools.text.storable import make_storable

#: Characters that such a field takes.
MAX_FIELD_CHARS = 100_000


class LinesField(forms.CharField):
    """Texts, one a line; cleaned to a list without the empty ones."""

    def __init__(self, **options: Any) -> None:
        widget = forms.Textarea(
            attrs={"rows": 4, "class": "vLargeTextField template", "spellcheck": "false"}
        )
        super().__init__(strip=False, max_length=MAX_FIELD_CHARS, **{"widget": widget} | options)

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(map(str, value)) if isinstance(value, list) else value

    def clean(self, value: Any) -> Any:
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

    def __init__(self, sign: str, **options: Any) -> None:
        self.sign = sign
        super().__init__(**options)

    def shown(self) -> str:
        """The field's text for what is stored."""
        return (
            MASK
            if self.stored is None
            else "\n".join(f"{name}{self._joint}{MASK}" for name in self.stored)
        )

    def clean(self, value: Any) -> Any:
        lines: list[str] = super().clean(value)
        self.kept = ()
        if self.stored is None and [line.strip() for line in lines] == [MASK]:
            self.kept = (MASK,)
            return None
        found: dict[str, str] = {}
        for line in lines:
            name, entered = self._read(line)
            if name.lower() in (known.lower() for known in found):
                raise ValidationError(_("“%s” stands here twice.") % name)
            found[name] = entered
        return found

    @property
    def _joint(self) -> str:
        return ": " if self.sign == ":" else self.sign

    def _read(self, line: str) -> tuple[str, str]:
        name, sign, value = line.partition(self.sign)
        name, value = name.strip(), value.strip() if self.sign == ":" else value
        if not sign or not name:
            raise ValidationError(
                _("Each line must be %(form)s. Look at the one that begins with “%(begin)s”.")
                % {"form": _("NAME") + self._joint + _("value"), "begin": name[:20]}
            )
        if MASK not in value:
            return name, value
        if value.strip() != MASK:
            raise ValidationError(
                _(
                    "The dots behind “%s” stand for the whole stored value: leave them alone, or "
                    "replace all of it."
                )
                % name
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
