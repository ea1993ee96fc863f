"""The input for a secret, which no answer repeats, also not after an error."""

import re
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext

VALUE_LIMIT = 8_000
"""Characters of a secret, which is one line: it stands in a header or a URL."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def secret_field(**options: Any) -> forms.CharField:
    """A field whose value is sent by the browser and never sent to it."""
    widget = forms.PasswordInput(attrs={"class": "vTextField", "autocomplete": "new-password", "spellcheck": "false"})
    return forms.CharField(widget=widget, max_length=VALUE_LIMIT, validators=[refuse_control_characters], **options)


def refuse_control_characters(value: str) -> None:
    """Raise ValidationError for what no header can carry. The message does not hold the value."""
    if _CONTROL.search(value):
        raise ValidationError(gettext("The secret holds a line break or another control character: copy it again, in one line."))
