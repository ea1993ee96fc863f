"""MCP servers in and out: the pages that read and write the ``mcpServers`` JSON of other
programs."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from tools.admin.record_pages import author_of, require
from tools.admin.settings_page import SettingsAdmin
from tools.mcp.admin.form import (
    changes_command,
    find_moved_secrets,
    is_other_origin,
    is_other_program,
    server_field_label,
)
from tools.mcp.config_json import (
    ConfigUnreadable,
    ServerConfig,
    find_placeholders,
    parse_mcp_servers,
    render_mcp_servers,
)
from tools.mcp.settings import (
    ENCRYPTED_FIELDS,
    STORED,
    check_server,
    decrypt_field,
    may_run_commands,
    server_values,
)
from tools.models import McpServer
from tools.models.row_history import record_changes
from tools.secrets.encryption import DecryptionError, decrypt, encrypt
from tools.secrets.masked import (
    MASK,
    export_arguments,
    export_placeholder,
    export_url,
    mask_command,
    mask_url,
)

# What an import would create, and what prevents that. Nothing is saved here.

PLAIN = ("transport", "command", "arguments", "url", "enabled")
SETTINGS = ("connect_seconds", "call_seconds", "include", "exclude", "name_prefix")
SHOWN = (*PLAIN, *SETTINGS, *ENCRYPTED_FIELDS)
HIDDEN = (*STORED, "url")
"""Of which the new value may look as the old one did."""


class ImportAction(StrEnum):
    MAKE = "make"
    REPLACE = "replace"
    SKIP = "skip"
    NOTHING = "nothing"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class ImportRights:
    """What the person who imports may do; ``changes`` is asked about each row that is there."""

    runs_commands: bool
    changes: Callable[[McpServer], bool]


@dataclass(frozen=True, slots=True)
class PlannedServer:
    """The plan for one server of the text: ``row`` as it would be saved, and ``differences``, what
    is new in it."""

    name: str
    action: ImportAction
    row: McpServer
    differences: list[tuple[str, str, str]]
    problems: list[str]
    notes: list[str]

    @property
    def is_saved(self) -> bool:
        return self.action in (ImportAction.MAKE, ImportAction.REPLACE)


def plan_import(
    configs: Iterable[ServerConfig], rights: ImportRights, *, replaces: bool
) -> list[PlannedServer]:
    """What importing ``configs`` would do. Those whose name is taken are skipped, or replace what
    is there."""
    configs = list(configs)
    known = {
        row.name: row
        for row in McpServer.objects.filter(name__in=[config.name for config in configs])
    }
    return [_planned(config, known.get(config.name), rights, replaces) for config in configs]


def _planned(
    config: ServerConfig, before: McpServer | None, rights: ImportRights, replaces: bool
) -> PlannedServer:
    if config.problems:
        return PlannedServer(
            config.name,
            ImportAction.REFUSE,
            McpServer(name=config.name),
            [],
            list(config.problems),
            [],
        )
    if before is not None and not replaces:
        return PlannedServer(
            config.name,
            ImportAction.SKIP,
            before,
            [],
            [],
            [gettext("A server of this name is there already and stays as it is.")],
        )
    row = McpServer(name=config.name) if before is None else McpServer.objects.get(pk=before.pk)
    values, dropped = (config.values, []) if before is None else _kept(config.values, before)
    notes = [*config.notes, *_filled_in(row, values)]
    problems = [*_problems(row, before, rights), *dropped]
    differences = _differences(before, row)
    if problems:
        action = ImportAction.REFUSE
    elif before is None:
        action = ImportAction.MAKE
    else:
        action = ImportAction.REPLACE if differences else ImportAction.NOTHING
    return PlannedServer(config.name, action, row, differences, problems, notes)


def _kept(values: Mapping[str, Any], before: McpServer) -> tuple[dict[str, Any], list[str]]:
    """``values`` with what is stored wherever they have the placeholder that an export puts in its
    place.

    Not where they lead elsewhere: that is a fault, for values that are only stored are not taken
    along.
    """
    found, problems = dict(values), []
    if found["url"] == export_url(before.url):
        found["url"] = before.url
    if found["command"] == before.command and (arguments := decrypt_field(before, "arguments")):
        handed = [
            export_arguments(before.command, arguments, names_package=is_named)
            for is_named in (True, False)
        ]
        found["arguments"] = arguments if found["arguments"] in handed else found["arguments"]
    reasons = find_moved_secrets(before, found["url"], found["command"], found["arguments"])
    for name in ENCRYPTED_FIELDS:
        stored = decrypt_field(before, name) or {}
        kept = [
            key
            for key, given in found[name].items()
            if key in stored and given == export_placeholder(key)
        ]
        if kept and name in reasons:
            problems.append(f"{server_field_label(name)}: {reasons[name] % ', '.join(kept)}")
        else:
            found[name] = found[name] | {key: stored[key] for key in kept}
    return found, problems


def _filled_in(row: McpServer, values: dict[str, Any]) -> list[str]:
    """Give ``row`` its ``values``; returns what the person should know about that."""
    for name, value in values.items():
        if name not in STORED or value != decrypt_field(row, name):
            setattr(row, name, value)
    missing = find_placeholders(values)
    if not missing:
        return []
    row.enabled = False
    words = gettext(
        "Placeholders stay as they are written, and the server is imported switched off. Enter on "
        "its page what belongs there: %s"
    )
    return [words % ", ".join(missing)]


def _problems(row: McpServer, before: McpServer | None, rights: ImportRights) -> list[str]:
    if before is not None and not rights.changes(before):
        return [gettext("You may not change the server of this name.")]
    if changes_command(before, row) and not rights.runs_commands:
        return [
            gettext(
                "It is a program. Only superusers with the permission to run commands may set up "
                "one."
            )
        ]
    found: dict[str, list[str]] = {}
    try:
        row.full_clean(exclude=[f"sealed_{name}" for name in STORED])
    except ValidationError as error:
        found = error.message_dict
    for name, lines in check_server(server_values(row)).items():
        found[name] = [*found.get(name, []), *lines]
    return [
        f"{server_field_label(name)}: {line}" for name, lines in found.items() for line in lines
    ]


def _differences(before: McpServer | None, after: McpServer) -> list[tuple[str, str, str]]:
    """Each field that is not as it was: what it is called, and both values without keys."""
    old, found = before or McpServer(), []
    for name in SHOWN:
        if _value(old, name) != _value(after, name):
            was, now = format_server_field(old, name), format_server_field(after, name)
            if now == was and name in HIDDEN:
                now = gettext("%s (new values)") % now
            found.append((server_field_label(name), was, now))
    return found


def _value(row: McpServer, name: str) -> Any:
    return decrypt_field(row, name) if name in STORED else getattr(row, name)


def format_server_field(row: McpServer, name: str) -> str:
    """One field of ``row`` in words, without any key in it; "-" for an empty one."""
    value = _value(row, name)
    if name in ENCRYPTED_FIELDS:
        return (
            ", ".join(f"{key} = {MASK}" for key in value) if value else "-" if value == {} else MASK
        )
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    if name == "transport":
        return row.get_transport_display()
    if name == "url":
        return mask_url(value) or "-"
    if name == "arguments":
        return MASK if value is None else mask_command("", value).strip() or "-"
    return " ".join(str(value).split()) or "-"


# --- The pages ---------------------------------------------------------------------

MAX_IMPORT_BYTES = 1 << 20
"""Bytes of a text that is imported."""


class ImportForm(forms.Form):
    """A text with servers, typed or in a file; ``configs`` holds them once the form is valid.

    After the preview the text comes back ``sealed``: a page does not contain keys that were entered
    before.
    """

    text = forms.CharField(
        label=_("JSON"),
        required=False,
        strip=False,
        widget=forms.Textarea(
            attrs={"rows": 16, "class": "vLargeTextField", "spellcheck": "false"}
        ),
    )
    file = forms.FileField(label=_("or a file"), required=False)
    taken = forms.ChoiceField(
        label=_("Servers whose name is taken"),
        choices=(("skip", _("leave what is there")), ("replace", _("replace what is there"))),
        initial="skip",
        widget=forms.RadioSelect,
        help_text=_(
            "A placeholder as the export writes it keeps the value that is stored. Limits and "
            "patterns that the text does not name stay."
        ),
    )
    sealed = forms.CharField(required=False, widget=forms.HiddenInput)

    configs: tuple[ServerConfig, ...] = ()
    whole: str = ""

    def clean(self) -> dict[str, Any]:
        """Read the text, from wherever it comes."""
        cleaned = super().clean() or self.cleaned_data
        if self.errors:
            return cleaned
        try:
            self.whole = _text(cleaned)
            self.configs = tuple(parse_mcp_servers(self.whole))
        except (ConfigUnreadable, ValidationError) as error:
            self.add_error("text", error if isinstance(error, ValidationError) else str(error))
        return cleaned


def _text(cleaned: dict[str, Any]) -> str:
    """What is to be imported. Raises ValidationError."""
    if cleaned["sealed"]:
        try:
            return decrypt(cleaned["sealed"])
        except DecryptionError as error:
            raise ValidationError(gettext("Enter the text once more.")) from error
    file, text = cleaned["file"], cleaned["text"]
    if bool(file) == bool(text.strip()):
        raise ValidationError(gettext("Enter a text or choose a file, one of the two."))
    if (file.size if file else len(text.encode())) > MAX_IMPORT_BYTES:
        raise ValidationError(gettext("This is too large: at most 1 MiB."))
    try:
        return str(file.read().decode("utf-8-sig")) if file else str(text)
    except UnicodeDecodeError as error:
        raise ValidationError(gettext("The file is not UTF-8 text.")) from error


class McpExchangeAdmin(SettingsAdmin):
    """The pages for import and export."""

    list_pages = ("import", "export")

    def import_view(self, request: HttpRequest) -> HttpResponse:
        """Ask for a text, show what would come of it and, once that is confirmed, save it: all of
        it or nothing."""
        require(self.has_add_permission(request))
        form = ImportForm(request.POST or None, request.FILES or None)
        page: dict[str, Any] = {"form": form, "may_run": may_run_commands(request.user)}
        if form.is_valid():
            rights = ImportRights(
                may_run_commands(request.user), lambda row: self.has_change_permission(request, row)
            )
            replaces = form.cleaned_data["taken"] == "replace"
            with transaction.atomic():
                planned = plan_import(form.configs, rights, replaces=replaces)
                has_problems = any(one.problems for one in planned)
                if "confirmed" in request.POST and not has_problems:
                    self._save(request, planned)
                    return redirect("admin:tools_mcpserver_changelist")
            page |= {
                "planned": planned,
                "has_problems": has_problems,
                "saves": any(one.is_saved for one in planned),
            }
            page |= {"sealed": encrypt(form.whole), "taken": form.cleaned_data["taken"]}
        return self.show_page(request, "import", gettext("Import"), **page)

    def _save(self, request: HttpRequest, planned: list[PlannedServer]) -> None:
        saved = [one for one in planned if one.is_saved]
        for one in saved:
            is_new = one.row.pk is None
            before = None if is_new else McpServer.objects.get(pk=one.row.pk)
            with record_changes(author_of(request), *([] if is_new else [one.row])):
                one.row.save()
            if before is None:
                self.log_addition(request, one.row, [{"added": {}}])
            else:
                self.log_change(request, one.row, gettext("Replaced by an import."))
                self.log_move(request, before, one.row)
        words = ngettext(
            "%(count)d server was imported.", "%(count)d servers were imported.", len(saved)
        ) % {"count": len(saved)}
        self.message_user(request, words, messages.SUCCESS if saved else messages.INFO)

    def log_move(self, request: HttpRequest, before: McpServer, after: McpServer) -> None:
        """That a server is reached elsewhere, or is another program, is an event of its own in its
        history."""
        if is_other_origin(before, after.url):
            addresses = {"before": mask_url(before.url) or "-", "after": mask_url(after.url) or "-"}
            self.log_change(
                request, after, gettext("Address changed from %(before)s to %(after)s.") % addresses
            )
        if is_other_program(before, after.command, decrypt_field(after, "arguments")):
            names = {
                name: mask_command(row.command, ()) or "-"
                for name, row in (("before", before), ("after", after))
            }
            self.log_change(
                request,
                after,
                gettext("Program or arguments changed: %(before)s before, %(after)s now.") % names,
            )

    def export_view(self, request: HttpRequest) -> HttpResponse:
        """All servers as JSON, with placeholders in place of keys: as a page or as a file."""
        require(self.has_view_permission(request))
        rows = list(McpServer.objects.order_by("pk"))
        text = render_mcp_servers(
            [
                export_server(row, names_package=self.has_change_permission(request, row))
                for row in rows
            ]
        )
        if "file" in request.GET:
            headers = {"Content-Disposition": 'attachment; filename="mcp-servers.json"'}
            return HttpResponse(
                text, content_type="application/json; charset=utf-8", headers=headers
            )
        unreadable = [
            row.name for row in rows if None in (decrypt_field(row, name) for name in STORED)
        ]
        page: dict[str, Any] = {"text": text, "unreadable": ", ".join(unreadable)}
        return self.show_page(request, "export", gettext("Export"), **page)


def export_server(row: McpServer, *, names_package: bool) -> ServerConfig:
    """A server as it may be exported. Only users who may see arguments see the package that a
    runner runs."""
    names = (
        "transport",
        "command",
        "enabled",
        "connect_seconds",
        "call_seconds",
        "include",
        "exclude",
        "name_prefix",
    )
    values = {name: getattr(row, name) for name in names}
    values |= {
        name: {key: export_placeholder(key) for key in decrypt_field(row, name) or ()}
        for name in ENCRYPTED_FIELDS
    }
    arguments = export_arguments(
        row.command, decrypt_field(row, "arguments") or (), names_package=names_package
    )
    values |= {"url": export_url(row.url), "arguments": arguments}
    return ServerConfig(row.name, values)
