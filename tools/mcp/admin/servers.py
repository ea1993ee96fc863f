"""x"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth.models import Permission
from django.core.exceptions import PermissionDenied
from django.db.models import F, Model, Prefetch
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from tools.admin.declared import UNESCAPED_CHARS, look_badge
from tools.admin.record_pages import Column, Rows, clamp_text, format_moment, render_badge
from tools.admin.settings_page import mask_values
from tools.mcp.admin.exchange import McpExchangeAdmin
from tools.mcp.admin.form import McpServerForm, SwitchForm, changes_command
from tools.mcp.provider import probe_mcp_server
from tools.mcp.settings import check_server_row, decrypt_field, may_run_commands, to_server_settings
from tools.models import McpServer, McpServerStatus, ToolConfig
from tools.secrets.masked import mask_command, mask_url
from tools.text.error_words import explain_network_error, tell_again
from tools.text.readable import drop_surrogates, escape_invisible_chars, shorten_text

FRESH = timedelta(seconds=60)
"""A running process reports more often than this."""
TOOLS_SHOWN = 200
ERROR_LIMIT = 2_000
FACT_LIMIT = 500
_State = McpServerStatus.ConnectionState
_COLOURS = {
    _State.CONNECTED: "delivered",
    _State.CONNECTING: "running",
    _State.WAITING: "waiting",
    _State.STOPPED: "failed",
}


@dataclass(frozen=True, slots=True)
class ServerReport:
    """The status of one server in one process; ``is_stale`` when the process has not reported for a
    while."""

    status: McpServerStatus
    badge: str
    error: str
    about: list[tuple[str, str]]
    tool_count: int
    left_out: list[tuple[str, str]]
    is_stale: bool


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool by the name that the model knows. ``url`` is the page of its row, "" where it has
    none; ``look`` the badge of one that needs a review.
    """

    name: str
    url: str = ""
    look: str = ""


def prefetch_living_statuses() -> "Prefetch[str, Any, str]":
    """For a query of servers: each gets a list ``living`` with its status in the running processes,
    in one more query."""
    rows = McpServerStatus.objects.filter(seen_at__gte=timezone.now() - FRESH).order_by(
        "process_id"
    )
    return Prefetch("statuses", queryset=rows.defer("about"), to_attr="living")


def state_badges(server: McpServer, living: Sequence[McpServerStatus]) -> str:
    """The states of a server in a list, each once with the number of processes that are in it."""
    if not server.enabled:
        return render_badge("off", gettext("switched off"))
    if not living and timezone.now() - server.updated_at < FRESH:
        return _state_badge(_State.CONNECTING)
    if not living:
        return render_badge("off", gettext("no server process runs"))
    states = [status.state for status in living]
    return format_html_join(
        " ", "{}", ((_state_badge(state, states.count(state)),) for state in dict.fromkeys(states))
    )


def _state_badge(state: str, number: int = 1) -> str:
    known = _State(state) if state in _State.values else _State.STOPPED
    return render_badge(_COLOURS[known], f"{known.label} ×{number}" if number > 1 else known.label)


def newest_error(living: Iterable[McpServerStatus]) -> tuple[str, datetime | None]:
    """The newest error and its time; ("", None) where there is none."""
    failed = [status for status in living if status.error]
    if not failed:
        return "", None
    newest = max(
        failed, key=lambda status: (status.error_at is not None, status.error_at or status.seen_at)
    )
    return format_server_error(newest.error), newest.error_at


def list_server_reports(server: McpServer) -> list[ServerReport]:
    """The status of ``server`` in every process, stale ones last."""
    limit = timezone.now() - FRESH
    found = [
        ServerReport(
            status,
            render_badge("off", gettext("gone silent"))
            if status.seen_at < limit
            else _state_badge(status.state),
            format_server_error(status.error),
            server_facts(status.about),
            len(offered_tool_names(status.tools)),
            [
                (_short(entry.get("original") or entry.get("name")), _short(entry["left_out"]))
                for entry in _objects(status.tools)
                if entry.get("left_out")
            ][:TOOLS_SHOWN],
            status.seen_at < limit,
        )
        for status in server.statuses.order_by("process_id")
    ]
    return sorted(found, key=lambda report: report.is_stale)


def listed_tools(found: Iterable[ServerReport]) -> tuple[list[ListedTool], int]:
    """The tools that living processes have of a server, with the pages of their rows; and how many
    more there are."""
    names = sorted(
        {
            name
            for report in found
            if not report.is_stale
            for name in offered_tool_names(report.status.tools)
        }
    )
    shown = names[:TOOLS_SHOWN]
    rows = ToolConfig.objects.filter(name__in=shown).only("name", "fingerprint", "looked_at")
    known = {
        row.name: ListedTool(
            row.name, reverse("admin:tools_toolconfig_change", args=(row.pk,)), look_badge(row)
        )
        for row in rows
    }
    return [known.get(name, ListedTool(name)) for name in shown], len(names) - len(shown)


def offered_tool_names(entries: object) -> list[str]:
    """The names of the tools that are offered, in the ``tools`` of a status; others stand there
    with a reason."""
    return [
        str(entry["name"])
        for entry in _objects(entries)
        if entry.get("name") and not entry.get("left_out")
    ]


def _objects(entries: object) -> list[dict[str, Any]]:
    return (
        [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    )


def _short(text: object) -> str:
    return escape_invisible_chars(
        drop_surrogates(shorten_text(str(text or ""), FACT_LIMIT)), keep=UNESCAPED_CHARS
    )


def format_server_error(text: str) -> str:
    """An error of a server as a page shows it."""
    return escape_invisible_chars(
        drop_surrogates(shorten_text(text, ERROR_LIMIT)), keep=UNESCAPED_CHARS
    )


def server_facts(about: object) -> list[tuple[str, str]]:
    """The server's description of itself, as far as it has one."""
    known = about if isinstance(about, dict) else {}
    labels = {
        "title": gettext("display name"),
        "name": gettext("name"),
        "version": gettext("version"),
        "protocol": gettext("protocol"),
        "left_out": gettext("tools left out"),
        "instructions": gettext("instructions"),
    }
    return [(label, _short(known[key])) for key, label in labels.items() if known.get(key)]


#: Tools that the result of a test shows.
TESTED_SHOWN = 200
_PROGRAM: Any = {"classes": ("for-program",), "fields": ("command", "arguments", "environment")}
_ADDRESS: Any = {"classes": ("for-address",), "fields": ("url", "headers")}


@admin.register(McpServer)
class McpServerAdmin(McpExchangeAdmin):
    """Only users who may run commands can change a row that runs a program, now or before; others
    can view it."""

    form = McpServerForm
    list_form = SwitchForm
    show_full_result_count = True
    list_display = ("server", "enabled", "state", "tool_count", "latency", "error")
    list_display_links = ("server",)
    list_editable = ("enabled",)
    search_fields = (
        "name",
    )  # by searching addresses and arguments, users who may only view could find keys
    change_form_template = "admin/tools/mcpserver/change_form.html"
    change_list_template = "admin/tools/mcpserver/change_list.html"
    buttons = ("test", "refresh", "reconnect")
    facts = ("created_at", "updated_at")
    # Users who may only view see no key, neither a sealed one nor one in an address or an argument.
    unseen: ClassVar = {
        "command": "program",
        "arguments": "program",
        "environment": "variables",
        "url": "address",
        "headers": "header_names",
    }
    fieldsets = (
        (None, {"fields": ("name", "enabled", "transport")}),
        (_("Program (stdio)"), _PROGRAM),
        (_("Address (streamable HTTP, SSE)"), _ADDRESS),
        (_("Tools"), {"fields": ("include", "exclude", "name_prefix")}),
        (_("Time limits"), {"fields": ("connect_seconds", "call_seconds")}),
        (_("History"), {"fields": facts}),
    )

    # --- Who may do what --------------------------------------------------------

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return super().has_change_permission(request, obj) and _is_free(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return super().has_delete_permission(request, obj) and _is_free(request, obj)

    def save_model(self, request: HttpRequest, obj: McpServer, form: object, change: bool) -> None:
        """The last wall: the forms have refused this before, with words."""
        before = McpServer.objects.get(pk=obj.pk) if change else None
        if changes_command(before, obj) and not may_run_commands(request.user):
            raise PermissionDenied
        super().save_model(request, obj, form, change)
        if before is not None:
            self.log_move(request, before, obj)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """None: with ``?url__startswith=`` in the address, a key could be guessed character by
        character."""
        return False

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Users who may only view see what the transport needs alone."""
        shown = super().get_fieldsets(request, obj)
        if self.looks(request, obj):
            del shown[2 if obj.transport == McpServer.Transport.STDIO else 1]
        return shown

    def get_changelist_form(self, request: HttpRequest, **options: object) -> Any:
        form = super().get_changelist_form(request, **options)
        form.runs_commands = may_run_commands(request.user)
        return form

    # --- What is shown ----------------------------------------------------------

    def get_queryset(self, request: HttpRequest) -> Rows:
        rows: Rows = super().get_queryset(request).prefetch_related(prefetch_living_statuses())
        return rows

    @admin.display(description=_("server"), ordering="name")
    def server(self, server: McpServer) -> str:
        what = (
            self.program(server)
            if server.transport == McpServer.Transport.STDIO
            else self.address(server)
        )
        words = f"{server.get_transport_display()} · {what}"
        return format_html('{}<div class="quiet clamped">{}</div>', server.name, words)

    program = Column(
        _("command"),
        lambda row: mask_command(row.command, decrypt_field(row, "arguments") or ()) or "-",
    )
    address = Column(_("URL"), lambda row: mask_url(row.url) or "-")
    variables = Column(
        _("environment variables"), lambda row: mask_values(decrypt_field(row, "environment"))
    )
    header_names = Column(_("headers"), lambda row: mask_values(decrypt_field(row, "headers")))
    state = Column(_("state"), lambda row: state_badges(row, row.living))

    @admin.display(description=_("tools"))
    def tool_count(self, server: Any) -> str:
        return (
            str(max((len(offered_tool_names(status.tools)) for status in server.living), default=0))
            if server.enabled
            else "-"
        )

    @admin.display(description=_("latency"))
    def latency(self, server: Any) -> str:
        measured = [status.latency_ms for status in server.living if status.latency_ms is not None]
        return f"{max(measured):.0f}\xa0ms" if measured and server.enabled else "-"

    @admin.display(description=_("last error"))
    def error(self, server: Any) -> str:
        text, at = newest_error(server.living) if server.enabled else ("", None)
        if not text:
            return "-"
        told = explain_network_error(text) or tell_again(text)
        shown = clamp_text(told.sentence, is_foreign=told.is_foreign)
        return format_html("{}{}", shown, format_moment(at) if at else "")

    def page_context(self, request: HttpRequest, obj: McpServer | None) -> dict[str, Any]:
        page: dict[str, Any] = {
            "command_note": _command_note(request, obj),
            "may_run": may_run_commands(request.user),
        }
        if obj is None:
            return page
        found = list_server_reports(obj)
        listed, more = listed_tools(found)
        page |= {
            "reports": found,
            "listed": listed,
            "more_tools": more,
            "obstacles": check_server_row(obj),
        }
        return page

    # --- Buttons ----------------------------------------------------------------

    def test_view(self, request: HttpRequest, server: McpServer) -> HttpResponse:
        """Connect to the server from here, ask for its tools, and show what came of it. Nothing is
        called."""
        hindrances = check_server_row(server)
        # An event loop of its own in this request's thread: an untrusted server cannot delay other
        # requests.
        tried = None if hindrances else asyncio.run(probe_mcp_server(to_server_settings(server)))
        outcome = gettext("failed")
        if tried and not tried.error:
            count = len(tried.tools)
            outcome = ngettext("%(count)d tool", "%(count)d tools", count) % {"count": count}
        self.log_change(request, server, gettext("Tested: %(outcome)s") % {"outcome": outcome})
        page: dict[str, Any] = {"obstacles": hindrances, "tried": tried, "outcome": outcome}
        if tried:  # made harmless, whatever came from the server
            tools = [
                (spec.name, drop_surrogates(shorten_text(spec.description, 500)))
                for spec in tried.tools[:TESTED_SHOWN]
            ]
            page |= {
                "tools": tools,
                "more_tools": len(tried.tools) - len(tools),
                "left_out": [
                    (drop_surrogates(one.name), drop_surrogates(one.reason))
                    for one in tried.left_out[:TESTED_SHOWN]
                ],
                "error": format_server_error(tried.error),
                "about": server_facts(tried.about),
            }
        return self.show_page(request, "test", gettext("Test"), server, **page)

    def refresh_view(self, request: HttpRequest, server: McpServer) -> HttpResponse:
        """Make every server process list the tools again."""
        words = gettext(
            "The server is asked for its tools anew. Load this page again in a moment to see what "
            "came of it."
        )
        return self._command(request, server, "refreshes", gettext("Refreshed."), words)

    def reconnect_view(self, request: HttpRequest, server: McpServer) -> HttpResponse:
        """Have every server process end its connection and make a new one, also where it had given
        up."""
        words = gettext(
            "The connection is made anew. Load this page again in a moment to see what came of it."
        )
        return self._command(request, server, "reconnects", gettext("Reconnected."), words)

    def _command(
        self, request: HttpRequest, server: McpServer, counter: str, logged: str, words: str
    ) -> HttpResponse:
        if not server.enabled:
            off = gettext("The server is switched off: switch it on first.")
            return self.tell_done(request, server, off, level=messages.WARNING)
        McpServer.objects.filter(pk=server.pk).update(**{counter: F(counter) + 1})
        return self.tell_done(request, server, words, logged)


def _is_free(request: HttpRequest, server: Any) -> bool:
    """Whether a user who may not run commands can change ``server``."""
    return (
        server is None
        or server.transport != McpServer.Transport.STDIO
        or may_run_commands(request.user)
    )


def _command_note(request: HttpRequest, server: McpServer | None) -> str:
    """What the person at the page has to know about programs, as HTML; "" where there is nothing to
    do."""
    if server is not None and server.transport != McpServer.Transport.STDIO:
        return ""
    if may_run_commands(request.user):
        words = gettext(
            "No program may be run yet: list those that may in MCP_ALLOWED_COMMANDS in .env, and "
            "restart the server."
        )
        return "" if settings.MCP_ALLOWED_COMMANDS else words
    permission = Permission.objects.filter(
        content_type__app_label="tools", codename="run_commands"
    ).first()
    words = gettext(
        "Servers that are programs on this machine (stdio) are set up by superusers alone, to "
        "whom the permission “%(permission)s”"
        " was given besides: to the account or to a group of it, as being a superuser is not "
        "enough."
    ) % {"permission": gettext(permission.name) if permission else "tools.run_commands"}
    account = reverse("admin:auth_user_change", args=(request.user.pk,))
    give = gettext("Give it to your account here")
    link = (
        format_html(' <a href="{}#id_user_permissions_from">{}</a>', account, give)
        if getattr(request.user, "is_superuser", False)
        else ""
    )
    return format_html("{}{}", words, link)
