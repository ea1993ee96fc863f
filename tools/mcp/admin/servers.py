"""MCP servers: setting them up, viewing them, testing them, and reconnecting."""

import asyncio
from typing import Any, ClassVar

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth.models import Permission
from django.core.exceptions import PermissionDenied
from django.db.models import F, Model
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from tools.admin.filters import Rows
from tools.admin.record_pages import Column, clamp_text, format_moment
from tools.mcp.admin.exchange import McpExchangeAdmin
from tools.mcp.admin.form import McpServerForm, SwitchForm, changes_command
from tools.mcp.admin.status import (
    format_server_error,
    list_server_reports,
    listed_tools,
    newest_error,
    offered_tool_names,
    prefetch_living_statuses,
    server_facts,
    state_badges,
)
from tools.mcp.provider import ProbeResult, probe_mcp_server
from tools.mcp.settings import check_server_row, decrypt_field, may_run_commands, to_server_settings
from tools.models import McpServer
from tools.secrets.masked import MASK, mask_command, mask_url
from tools.text.error_words import explain_network_error, tell_again
from tools.text.readable import drop_surrogates, shorten_text

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

    def get_changelist_form(self, request: HttpRequest, **options: Any) -> Any:
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
        _("environment variables"), lambda row: _names(decrypt_field(row, "environment"))
    )
    header_names = Column(_("headers"), lambda row: _names(decrypt_field(row, "headers")))
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
        outcome = _outcome(tried)
        self.log_change(request, server, gettext("Tested: %(outcome)s") % {"outcome": outcome})
        page = {"obstacles": hindrances, "tried": tried, "outcome": outcome}
        page |= _tried_context(tried) if tried else {}
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


def _names(values: dict[str, str] | None) -> str:
    if values is None:
        return gettext("cannot be read: sealed under another secret key")
    return ", ".join(f"{name} = {MASK}" for name in values) or "-"


def _outcome(tried: ProbeResult | None) -> str:
    if tried is None or tried.error:
        return gettext("failed")
    return ngettext("%(count)d tool", "%(count)d tools", len(tried.tools)) % {
        "count": len(tried.tools)
    }


def _tried_context(tried: ProbeResult) -> dict[str, Any]:
    """The result of a test as a page shows it, for any data from the server."""
    tools = [
        (spec.name, drop_surrogates(shorten_text(spec.description, 500)))
        for spec in tried.tools[:TESTED_SHOWN]
    ]
    return {
        "tools": tools,
        "more_tools": len(tried.tools) - len(tools),
        "left_out": [
            (drop_surrogates(one.name), drop_surrogates(one.reason))
            for one in tried.left_out[:TESTED_SHOWN]
        ],
        "error": format_server_error(tried.error),
        "about": server_facts(tried.about),
    }
