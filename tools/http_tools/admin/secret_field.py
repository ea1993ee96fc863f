"""The inputs for a secret: its value, which no answer repeats, also not after an error, and its
hosts."""

import re
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from tools.secrets.hosts import SecretHosts

VALUE_LIMIT = 8_000
"""Characters of a secret, which is one line: it stands in a header or a URL."""
HOSTS_HELP = _(
    "Where the secret may be sent, one a line: api.example.com, or *.example.com for every name below it, with :8443 behind it for"
    " another port. Requests have to be https; http://192.168.1.5:8123 permits them in the clear. program:npx permits MCP servers"
    " that are started with npx. Whoever answers at one of these hosts can read the secret."
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def build_secret_field(**options: Any) -> forms.CharField:
    """A field whose value is sent by the browser and never sent to it."""
    widget = forms.PasswordInput(
        attrs={"class": "vTextField", "autocomplete": "new-password", "spellcheck": "false"}
    )
    return forms.CharField(
        widget=widget, max_length=VALUE_LIMIT, validators=[refuse_control_characters], **options
    )


class HostsField(forms.CharField):
    """The hosts of a secret, one a line; cleaned to the text that
    :class:`tools.secrets.hosts.SecretHosts` is stored as."""

    def __init__(self, **options: Any) -> None:
        widget = forms.Textarea(
            attrs={"rows": 3, "class": "vLargeTextField template", "spellcheck": "false"}
        )
        super().__init__(
            widget=widget, label=_("Hosts"), help_text=HOSTS_HELP, max_length=VALUE_LIMIT, **options
        )

    def clean(self, value: Any) -> str:
        try:
            return str(SecretHosts.parse(super().clean(value)))
        except ValueError as error:
            raise ValidationError(str(error)) from error


def refuse_control_characters(value: str) -> None:
    """Raise ValidationError for what no header can carry. The message does not hold the value."""
    if _CONTROL.search(value):
        raise ValidationError(
            gettext(
                "The secret holds a line break or another control character: copy it again, in one line."
            )
        )
