"""Forms for MCP servers. A form refuses the same values from the same users on the page and in the
list."""

from collections.abc import Collection
from typing import Any

from django import forms
from django.conf import settings
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_lazy as _

from tools.admin.fields import LinesField, SecretLinesField
from tools.admin.settings_page import SettingsForm
from tools.mcp.settings import (
    CHECKED_FIELDS,
    STORED,
    check_server,
    decrypt_field,
    may_run_commands,
    server_values,
)
from tools.models import McpServer
from tools.secrets.hosts import parse_host
from tools.secrets.masked import MASK

PROGRAM = ("command", "arguments", "environment")
"""The fields that a program is run with. Only users who may run commands can change them."""
LABELS = {
    "environment": capfirst(_("environment variables")),
    "headers": capfirst(_("headers")),
    "arguments": capfirst(_("arguments")),
}


def server_field_label(name: str) -> str:
    """What people call a field of a server."""
    return str(capfirst(LABELS.get(name) or McpServer._meta.get_field(name).verbose_name))  # type: ignore[union-attr]


def is_other_origin(before: McpServer, url: str) -> bool:
    """Whether ``url`` leads to another server than ``before``: another scheme, host or port."""
    old, new = parse_host(before.url), parse_host(url)
    return old != new if old and new else before.url != url


def is_other_program(before: McpServer, command: str, arguments: list[str] | None) -> bool:
    """Whether this is not what ``before`` runs, with exactly its arguments."""
    return before.command != command or decrypt_field(before, "arguments") != arguments


def find_moved_secrets(
    before: McpServer, url: str, command: str, arguments: list[str] | None
) -> dict[str, str]:
    """The sealed fields of ``before`` whose stored values may not be taken along to this address or
    program, with the reason."""
    found = {}
    if is_other_origin(before, url):
        found["headers"] = gettext(
            "The address has changed, and what is stored is not sent elsewhere: enter again: %s"
        )
    if is_other_program(before, command, arguments):
        found["environment"] = gettext(
            "The program has changed, and what is stored is not handed to another: enter again: %s"
        )
    return found


def changes_command(before: McpServer | None, after: McpServer) -> bool:
    """Whether the change from ``before``, None for a new row, to ``after`` is one of what is run on
    this machine."""
    before = before or McpServer(transport=McpServer.Transport.STREAMABLE_HTTP)
    if McpServer.Transport.STDIO in (before.transport, after.transport):
        return True
    if decrypt_field(before, "arguments") != decrypt_field(after, "arguments"):
        return True
    return any(
        getattr(before, name) != getattr(after, name) for name in ("command", "sealed_environment")
    )


class McpServerForm(SettingsForm):
    """One server. Only users who may run commands can set up programs."""

    sealed = STORED
    arguments = LinesField(
        label=LABELS["arguments"],
        required=False,
        help_text=_(
            "One a line, without quotes: no shell reads them. For example -y, and below it the "
            "name of a package."
            " {secret:NAME} stands for a secret that names program: and the command among its "
            "hosts."
            " Every user of this machine can read the arguments of a running program: a key is "
            "safer in a variable."
        ),
    )
    environment = SecretLinesField(
        "=",
        label=LABELS["environment"],
        required=False,
        help_text=_(
            "NAME=value, one a line, without quotes. The program gets these and little else. "
            "Values are stored encrypted and never"
            " shown again: •••• stands for a stored one and keeps it; deleting a line takes the "
            "variable away."
        ),
    )
    headers = SecretLinesField(
        ":",
        label=LABELS["headers"],
        required=False,
        help_text=_(
            "NAME: value, one a line, for example Authorization: Bearer …. Values are stored "
            "encrypted and never shown again:"
            " •••• stands for a stored one and keeps it; deleting a line takes the header away."
        ),
    )

    class Meta:
        model = McpServer
        fields = "__all__"
        help_texts = {  # noqa: RUF012 - Django's own way to say it
            "name": _(
                "What you call it. The model is told it when tools of the server are not there."
            ),
            "enabled": _(
                "A server that is switched off is not connected to, and its tools are not "
                "offered. It may be incomplete."
            ),
            "transport": _(
                "stdio: a program on this machine. streamable HTTP and SSE (older servers): a "
                "server with a URL."
            ),
            "command": _("The program alone: a name that is found in PATH, or an absolute path."),
            "url": _(
                "With http:// or https://. Addresses that are not public have to be listed in "
                "FETCH_ALLOW in .env."
                " A key in it is best written as {secret:NAME}, as in headers. When scheme, host "
                "or port change, the values of"
                " headers have to be entered again."
            ),
            "include": _(
                "Names of tools as the server calls them, * for anything, one a line. Empty: all "
                "of them."
            ),
            "exclude": _("In the same manner; what stands here is left out in any case."),
            "name_prefix": _(
                "Put before the name of each tool, for servers whose tools have the same names as "
                "others."
            ),
            "connect_seconds": _(
                "Starting the program or reaching the server, and asking for its tools. 1 to 600."
            ),
            "call_seconds": _("One call of a tool. 1 to 3600."),
        }
        widgets = {  # noqa: RUF012 - as above
            "command": forms.TextInput(attrs={"class": "vLargeTextField", "spellcheck": "false"}),
            "url": forms.TextInput(
                attrs={"class": "vLargeTextField", "spellcheck": "false", "inputmode": "url"}
            ),
            "include": forms.Textarea(
                attrs={"rows": 3, "class": "vLargeTextField template", "spellcheck": "false"}
            ),
            "exclude": forms.Textarea(
                attrs={"rows": 3, "class": "vLargeTextField template", "spellcheck": "false"}
            ),
        }

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)
        known = decrypt_field(self.instance, "arguments")
        self.initial["arguments"] = [MASK] if known is None else known
        if not self.instance.pk and not may_run_commands(self.user):
            self.initial.setdefault("transport", McpServer.Transport.STREAMABLE_HTTP)
        allowed = ", ".join(settings.MCP_ALLOWED_COMMANDS)
        if allowed and "command" in self.fields:  # not on a read-only page
            self.fields["command"].help_text = " ".join(
                (str(self.fields["command"].help_text), gettext("Allowed: %s") % allowed)
            )

    def locked(self) -> Collection[str]:
        return () if may_run_commands(self.user) else PROGRAM

    def clean(self) -> dict[str, Any]:
        """Validate the fields together. Commands that are not allowed are refused here for every
        user."""
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("transport") == McpServer.Transport.STDIO and not may_run_commands(
            self.user
        ):
            self.add_error(
                "transport",
                gettext("You may not set up servers that are programs: see the note on this page."),
            )
        elif cleaned.keys() >= {*CHECKED_FIELDS, *STORED}:
            values = dict(cleaned)
            if self.instance.pk:
                # Whoever changes the address of a server, superusers too, enters again what is sent
                # there: no stored secret goes to a new address.
                there = values["url"], values["command"], values["arguments"]
                self.refuse_kept(find_moved_secrets(self.instance, *there))
            has_new_command = bool({"command", "arguments", "transport"} & set(self.changed_data))
            for name, lines in check_server(values, has_new_command=has_new_command).items():
                self.add_error(name, lines)
        return cleaned

    def clean_arguments(self) -> list[str] | None:
        """What cannot be read any more, and is left so, is None."""
        lines: list[str] = self.cleaned_data["arguments"]
        return (
            None if lines == [MASK] and decrypt_field(self.instance, "arguments") is None else lines
        )


class SwitchForm(SettingsForm):
    """A line of the list: whether the server is on. ``runs_commands``: whether the person at it
    may run commands, asked once for all lines."""

    runs_commands = False

    def locked(self) -> Collection[str]:
        is_program = self.instance.transport == McpServer.Transport.STDIO
        return ("enabled",) if is_program and not self.runs_commands else ()

    def clean(self) -> dict[str, Any]:
        """A server that cannot work as it is is not switched on."""
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("enabled") and "enabled" in self.changed_data:
            for name, lines in check_server(
                server_values(self.instance) | {"enabled": True}
            ).items():
                for line in lines:
                    self.add_error("enabled", f"{server_field_label(name)}: {line}")
        return cleaned
