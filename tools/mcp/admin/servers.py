"""MCP servers: setting them up, viewing them, testing them, and reconnecting."""

import asyncio
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth.models import Permission
from django.core.exceptions import PermissionDenied
from django.db.models import F, Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from tools.admin.record_pages import clamp_text, format_moment, parse_row_number
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
from tools.mcp.commands import may_run_commands
from tools.mcp.probe import ProbeResult, probe_mcp_server
from tools.mcp.settings import to_server_settings
from tools.mcp.validation import check_server_row, decrypt_field
from tools.models import McpServer
from tools.secrets.masked import MASK
from tools.secrets.url_masking import mask_command, mask_url
from tools.text.error_words import explain_network_error, tell_again
from tools.text.readable import drop_surrogates, shorten_text

#: Tools that the result of a test shows.
TESTED_SHOWN = 200
_PROGRAM = {"classes": ("for-program",), "fields": ("command", "arguments", "environment")}
_ADDRESS = {"classes": ("for-address",), "fields": ("url", "headers")}
_TOOLS = {"fields": ("include", "exclude", "name_prefix")}
_LIMITS = {"fields": ("connect_seconds", "call_seconds")}
_HISTORY = {"fields": ("created_at", "updated_at")}

if TYPE_CHECKING:
    Rows = QuerySet[McpServer]
else:
    Rows = QuerySet


@admin.register(McpServer)
class McpServerAdmin(McpExchangeAdmin):
    """Only users who may run commands can change a row that runs a program, now or before; others
    can view it."""

    form = McpServerForm
    list_display = ("server", "enabled", "state", "tool_count", "latency", "error")
    list_display_links = ("server",)
    list_editable = ("enabled",)
    search_fields = (
        "name",
    )  # by searching addresses and arguments, users who may only view could find keys
    readonly_fields = ("created_at", "updated_at")
    change_form_template = "admin/tools/mcpserver/change_form.html"
    change_list_template = "admin/tools/mcpserver/change_list.html"

    # --- Who may do what --------------------------------------------------------

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return super().has_change_permission(request, obj) and _is_free(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return super().has_delete_permission(request, obj) and _is_free(request, obj)

    def save_model(self, request: HttpRequest, obj: McpServer, form: Any, change: bool) -> None:
        """The last wall: the forms have refused this before, with words."""
        before = McpServer.objects.get(pk=obj.pk) if change else None
        if changes_command(before, obj) and not may_run_commands(request.user):
            raise PermissionDenied
        super().save_model(request, obj, form, change)
        if before is not None:
            self.log_move(request, before, obj)

    def changeable(self, request: HttpRequest, object_id: str) -> McpServer:
        """The row, for a user who may change it. Raises PermissionDenied or Http404."""
        server: McpServer = get_object_or_404(McpServer, pk=parse_row_number(object_id))
        if not self.has_change_permission(request, server):
            raise PermissionDenied
        return server

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """None: with ``?url__startswith=`` in the address, a key could be guessed character by
        character."""
        return False

    # --- Forms ------------------------------------------------------------------

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Users who may only view see no key, neither a sealed one nor one in an address or an
        argument."""
        looks = obj is not None and not self.has_change_permission(request, obj)
        program = {"fields": ("program", "variables")} if looks else _PROGRAM
        address = {"fields": ("address", "header_names")} if looks else _ADDRESS
        connection = [
            (_("Program (stdio)"), program),
            (_("Address (streamable HTTP, SSE)"), address),
        ]
        if looks:
            connection = (
                connection[:1] if obj.transport == McpServer.Transport.STDIO else connection[1:]
            )
        first = (None, {"fields": ("name", "enabled", "transport")})
        rest = [(_("Tools"), _TOOLS), (_("Time limits"), _LIMITS)]
        return [first, *connection, *rest, *([(_("History"), _HISTORY)] if obj else [])]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        looks = obj is not None and not self.has_change_permission(request, obj)
        shown = ("program", "variables", "address", "header_names") if looks else ()
        return (*self.readonly_fields, *shown)

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any
    ) -> Any:
        form = super().get_form(request, obj, change, **options)
        form.may_run_commands = may_run_commands(request.user)  # type: ignore[attr-defined] # the class was made for this request
        return form

    def get_changelist_form(self, request: HttpRequest, **options: Any) -> Any:
        return type(
            "SwitchForm", (SwitchForm,), {"may_run_commands": may_run_commands(request.user)}
        )

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

    @admin.display(description=_("command"))
    def program(self, server: McpServer) -> str:
        return mask_command(server.command, decrypt_field(server, "arguments") or ()) or "-"

    @admin.display(description=_("URL"))
    def address(self, server: McpServer) -> str:
        return mask_url(server.url) or "-"

    @admin.display(description=_("environment variables"))
    def variables(self, server: McpServer) -> str:
        return _names(decrypt_field(server, "environment"))

    @admin.display(description=_("headers"))
    def header_names(self, server: McpServer) -> str:
        return _names(decrypt_field(server, "headers"))

    @admin.display(description=_("state"))
    def state(self, server: Any) -> str:
        return state_badges(server, server.living)

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

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        own = [
            path(f"<path:object_id>/{name}/", view(called), name=f"tools_mcpserver_{name}")
            for name, called in (
                ("test", self.test_view),
                ("refresh", self.refresh_view),
                ("reconnect", self.reconnect_view),
            )
        ]
        return [*own, *super().get_urls()]

    def test_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Connect to the server from here, ask for its tools, and show what came of it. Nothing is
        called."""
        server = self.changeable(request, object_id)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        hindrances = check_server_row(server)
        # An event loop of its own in this request's thread: an untrusted server cannot delay other
        # requests.
        tried = None if hindrances else asyncio.run(probe_mcp_server(to_server_settings(server)))
        self.log_change(
            request, server, gettext("Tested: %(outcome)s") % {"outcome": _outcome(tried)}
        )
        page = {
            "title": gettext("Test"),
            "subtitle": str(server),
            "original": server,
            "opts": self.opts,
            "obstacles": hindrances,
        }
        page |= {
            "tried": tried,
            "outcome": _outcome(tried),
            **(_tried_context(tried) if tried else {}),
        }
        return TemplateResponse(
            request,
            "admin/tools/mcpserver/test.html",
            {**self.admin_site.each_context(request), **page},
        )

    def refresh_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Make every server process list the tools again."""
        words = gettext(
            "The server is asked for its tools anew. Load this page again in a moment to see what "
            "came of it."
        )
        return self._command(request, object_id, "refreshes", gettext("Refreshed."), words)

    def reconnect_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Have every server process end its connection and make a new one, also where it had given
        up."""
        words = gettext(
            "The connection is made anew. Load this page again in a moment to see what came of it."
        )
        return self._command(request, object_id, "reconnects", gettext("Reconnected."), words)

    def _command(
        self, request: HttpRequest, object_id: str, counter: str, logged: str, words: str
    ) -> HttpResponse:
        server = self.changeable(request, object_id)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if server.enabled:
            McpServer.objects.filter(pk=server.pk).update(**{counter: F(counter) + 1})
            self.log_change(request, server, logged)
            self.message_user(request, words, messages.SUCCESS)
        else:
            self.message_user(
                request,
                gettext("The server is switched off: switch it on first."),
                messages.WARNING,
            )
        return redirect("admin:tools_mcpserver_change", server.pk)


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
