"""Tools: the rows that operators edit and the next message obeys, and what lists say of them."""

from collections.abc import Collection
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.db import transaction
from django.db.models.functions import Right
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _

from tools.admin.counted_lists import CappedPaginator, CountedList
from tools.admin.declared import (
    LOOK_NEEDED,
    MOST_AT_ONCE,
    LookFilter,
    compare_declaration,
    declared_title,
    look_badge,
    look_state,
    readable_declaration,
    shown_text,
)
from tools.admin.fields import JSON_INPUT, IndentedJSONField, choosing
from tools.admin.record_pages import (
    EXCERPT,
    Column,
    Rows,
    author_of,
    by_post,
    choice_filter,
    label_of,
    parse_row_number,
    require,
)
from tools.admin.settings_page import SettingsAdmin, SettingsForm
from tools.models import McpServer, ToolConfig
from tools.models.row_history import record_changes, record_look
from tools.models.tool_config import AllowedCallers, ApprovalMode, ToolScope, ToolVisibility
from tools.registry.catalogue import covers_fingerprint, declaration_fingerprint, source_mark
from tools.text.readable import escape_direction_chars, fill, text_block

#: A switch of the list: what it sets, of which row, to what; conditions in force, whether it is on,
#: what it is called, and which calls ask.
_SWITCH = (
    '<button class="switch" id="{0}-{1}" name="{0}" value="{2}" formaction="{1}/switch/?{3}" '
    'hx-post="{1}/switch/?{3}" aria-pressed="{4}" aria-label="{5}: {6}"{7}></button>'
)
PRESSED = {True: "true", False: "false", None: "mixed"}

# Where tools come from: the program, a plugin, or one of several MCP servers.

#: What the program's own providers are called; the others have names that people gave them.
PROVIDERS = {
    "maisaka_builtin": _("built in"),
    "samples": _("examples"),
    "mcp": _("MCP servers"),
    "http": _("HTTP tools"),
    "plugin_runtime": _("plugins"),
}


def provider_words(name: str) -> str:
    """Who provides a tool, as people call it."""
    return escape_direction_chars(str(PROVIDERS.get(name, name)))


def source_key(provider: str, fingerprint: str) -> str:
    """What stands for the source of a tool in addresses: its provider, and of MCP servers, which
    have one provider, the mark of the server."""
    mark = source_mark(fingerprint) if provider == "mcp" else ""
    return f"{provider}@{mark}" if mark else provider


def rows_of_source(rows: Rows, key: str) -> Rows:
    """Of ``rows``, those with the :func:`source_key`; with that of a provider, all of it."""
    provider, _at, mark = key.replace("\0", "").partition("@")
    rows = rows.filter(provider_name=provider)
    return rows.filter(fingerprint__endswith=f"@{mark}") if mark else rows


def sources_of(request: Any) -> dict[str, dict[str, Any]]:
    """The sources of all tools, by key: the ``name`` of each, how many tools it has in all
    (``total``), how many are ``enabled``, and how many are ``closed`` to people other than owners,
    because nobody has looked at them or their rows say so. Loaded once for a request: by one query,
    and another where there are MCP servers."""
    found: dict[str, dict[str, Any]] = getattr(request, "tool_sources", {})
    if not found:
        request.tool_sources = found
        columns = ("provider_name", "fingerprint", "looked_at", "enabled", "allowed")
        rows = ToolConfig.objects.order_by("provider_name").values_list(*columns)
        for provider, mark, looked, enabled, allowed in rows:
            key, name = source_key(provider, mark), provider_words(provider)
            none = {"key": key, "name": name, "total": 0, "enabled": 0, "closed": 0}
            source = found.setdefault(key, none)
            source["total"] += 1
            source["enabled"] += enabled
            is_new = mark and not covers_fingerprint(looked, mark)
            source["closed"] += bool(is_new or allowed != AllowedCallers.EVERYONE)
        if any("@" in key for key in found):
            for name in McpServer.objects.values_list("name", flat=True):
                if server := found.get(source_key("mcp", declaration_fingerprint({}, name))):
                    server["name"] = f"MCP · {escape_direction_chars(name)}"
    return found


def own_description(config: ToolConfig) -> str:
    """What the tool says of itself."""
    return shown_text(config.declaration.get("description") or "")


def asks_first(config: ToolConfig) -> bool | None:
    """Whether calls wait for an owner, by the operator's choice or as the tool declares; None for
    some calls."""
    declared = config.declaration.get("requires_approval")
    if config.requires_approval != ApprovalMode.OWN:
        return config.requires_approval == ApprovalMode.ALWAYS
    return declared in (True, "all") or (None if declared else False)


def approval_words(config: ToolConfig) -> str:
    """Which calls wait for an owner."""
    if config.requires_approval == ApprovalMode.NEVER:
        return gettext("never")
    asks = asks_first(config)
    return gettext("every call") if asks else gettext("some calls") if asks is None else "-"


def other_approval(config: ToolConfig) -> str:
    """The choice that the switch makes: that every call asks, or that none does; by the tool's own
    word where that says so."""
    declared = config.declaration.get("requires_approval")
    if asks_first(config):
        return ApprovalMode.NEVER if declared else ApprovalMode.OWN
    return ApprovalMode.OWN if declared in (True, "all") else ApprovalMode.ALWAYS


SourceFilter = choice_filter(
    _("provider"),
    "provider",
    lambda request: [(key, one["name"]) for key, one in sources_of(request).items() if key],
    rows_of_source,
)


_IDS = {"rows": 3, "class": "vLargeTextField", "spellcheck": "false"}


class ToolConfigForm(SettingsForm):
    """One tool's settings. What makes no sense together is refused by the model, fault by fault."""

    class Meta:
        model = ToolConfig
        fields = "__all__"
        field_classes = {"parameter_descriptions": IndentedJSONField}  # noqa: RUF012
        widgets = {  # noqa: RUF012 - as above
            "description": forms.Textarea(attrs={"rows": 4, "class": "vLargeTextField"}),
            "allowed_ids": forms.Textarea(attrs=_IDS | choosing(by="allowed")),
            "other_chats": forms.Textarea(attrs=_IDS | choosing("chat", "chat", then="person")),
            "mock_value": forms.Textarea(attrs=JSON_INPUT),
            "parameter_descriptions": forms.Textarea(attrs=JSON_INPUT),
        }

    def clean_parameter_descriptions(self) -> Any:
        """An emptied field means that nothing is described."""
        value = self.cleaned_data["parameter_descriptions"]
        return {} if value is None else value


@admin.register(ToolConfig)
class ToolConfigAdmin(SettingsAdmin):
    rights = frozenset({"change"})
    form = ToolConfigForm
    actions = ("look",)
    list_pages = ("look", "source")
    buttons = ("switch",)
    ordering = ("provider_name", Right("fingerprint", 17), "name")
    paginator = CappedPaginator
    change_list = CountedList
    sortable_by = ()
    list_display = ("name",)
    list_filter = (
        SourceFilter,
        LookFilter,
        "enabled",
        "mock_enabled",
        "allowed",
        "visibility",
        "scope",
        "requires_approval",
    )
    search_fields = (
        *("name", "description", "declaration__description", "declaration__title"),
        "provider_name",
    )
    search_help_text = _("A name, or words of what a tool does.")
    readonly_fields = ("provider", "own_words", "arguments", "created_at", "updated_at")
    change_list_template = "admin/tools/toolconfig/change_list.html"
    change_form_template = "admin/tools/toolconfig/change_form.html"
    first_fields = (
        *("provider", "enabled", "scope", "allowed", "allowed_ids", "requires_approval"),
        *("mock_enabled", "mock_value"),
    )
    more_fields: ClassVar = (
        (
            _("Who may use it"),
            (
                *("visibility", "pinned", "other_chats"),
                *("calls_per_minute_person", "calls_per_minute_chat", "calls_per_day_chat"),
                "timeout_seconds",
            ),
        ),
        (_("What the model is told"), ("own_words", "description", "parameter_descriptions")),
        (_("History"), ("arguments", "created_at", "updated_at")),
    )

    def left_out(self, request: HttpRequest, obj: Any) -> Collection[str]:
        """Other chats are there for the tool that names one alone."""
        return () if (obj is None or "session" in (obj.parameter_names or ())) else ("other_chats",)

    columns: ClassVar = {
        "provider": Column(_("provider"), lambda row: provider_words(row.provider_name) or "-"),
        "own_words": Column(_("its own description"), lambda row: text_block(own_description(row))),
        "arguments": Column(
            _("arguments"),
            lambda row: ", ".join(f"{{{name}}}" for name in row.parameter_names or ()) or "-",
        ),
    }

    # --- The list -------------------------------------------------------------------

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).defer("looked_declaration")

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        last, heading, may_change = None, 0, self.has_change_permission(request)
        kept, yes_no = self.get_preserved_filters(request), gettext("yes,no").split(",")
        labels = gettext("Enabled"), gettext("Asks first"), gettext("Mock")
        for row in rows:
            key = source_key(row.provider_name, row.fingerprint)
            row.source = sources_of(request).get(key) if key != last else None
            # a switch shows the count of its source anew, under the row that the source begins with
            last, row.heading = key, (heading := row.pk if row.source else heading)
            row.title, row.badge = declared_title(row.declaration), look_badge(row)
            # what the model is told that it does: the operator's words, or the tool's own
            row.words = (row.description or own_description(row))[:EXCERPT]
            facts = (
                ("enabled", row.enabled, str(not row.enabled).lower(), ""),
                ("requires_approval", asks_first(row), other_approval(row), approval_words(row)),
                ("mock_enabled", row.mock_enabled, str(not row.mock_enabled).lower(), ""),
            )
            row.enabled_switch, row.approval_switch, row.mock_switch = (
                fill(
                    _SWITCH,
                    *(name, SafeString(row.pk), value, kept, PRESSED[is_on], label, row.name),
                    fill(' title="{}"', words) if words else "",
                )
                if may_change
                else words or yes_no[not is_on]
                for (name, is_on, value, words), label in zip(facts, labels, strict=True)
            )
            said: list[tuple[Any, str]] = [(AllowedCallers, row.allowed)]
            said += [(ToolVisibility, row.visibility)] if row.visibility != "visible" else []
            said += [(ToolScope, row.scope)] if row.scope != "all" else []
            row.who = " · ".join(label_of(*one) for one in said)

    def switch_view(self, request: HttpRequest, config: ToolConfig) -> HttpResponse:
        """Set what a switch of the list sets, with the checks and the history of the tool's
        page."""
        with transaction.atomic():
            row = ToolConfig.objects.select_for_update().get(pk=config.pk)
            form = self.partial_form(request, request.POST, row)
            if form.is_valid():
                self.save_model(request, form.save(commit=False), form, change=True)
        for line in [str(line) for lines in form.errors.values() for line in lines]:
            self.message_user(request, f"{line} ({config})", messages.ERROR)
        query = request.GET.get("_changelist_filters", "")
        return redirect(f"{reverse('admin:tools_toolconfig_changelist')}?{query}#tool-{config.pk}")

    @by_post
    def source_view(self, request: HttpRequest) -> HttpResponse:
        """Switch all tools of a source on, or off."""
        require(self.has_change_permission(request))
        is_on = "on" in request.POST
        key = request.POST.get("on" if is_on else "off", "")
        count = self._set_all(
            request, rows_of_source(ToolConfig.objects.exclude(enabled=is_on), key), enabled=is_on
        )
        words = gettext("Switched on: %(count)d.") if is_on else gettext("Switched off: %(count)d.")
        self.message_user(request, words % {"count": count}, messages.SUCCESS)
        return redirect("admin:tools_toolconfig_changelist")

    def _set_all(self, request: HttpRequest, rows: Any, **values: Any) -> int:
        """Give ``rows`` the ``values``, of each with its history; how many there are."""
        found = list(rows.order_by("name"))
        with record_changes(author_of(request), *found):
            stored = ToolConfig.objects.filter(pk__in=[row.pk for row in found])
            stored.update(**values, updated_at=timezone.now())
        return len(found)

    # --- Looking at what is declared ------------------------------------------------

    @admin.action(description=_("Look at what the selected tools declare"), permissions=["change"])
    def look(self, request: HttpRequest, rows: object) -> HttpResponse | None:
        """The page that shows the declarations and marks them as reviewed."""
        return self._show_look(request, rows, ())

    def _show_look(self, request: HttpRequest, rows: Any, closed: Any) -> HttpResponse | None:
        """The same, for ``rows``; the tools that are ``closed`` are opened to everyone with it."""
        rows = rows.filter(LOOK_NEEDED).defer(None).order_by("name")
        found = list(rows[: MOST_AT_ONCE + 1])
        if not found and not closed:
            self.message_user(
                request, gettext("None of these tools is new or has changed."), messages.INFO
            )
            return None
        page: dict[str, Any] = {
            "glances": [compare_declaration(config) for config in found[:MOST_AT_ONCE]],
            "most": MOST_AT_ONCE if len(found) > MOST_AT_ONCE else 0,
            "closed": closed,
        }
        return self.show_page(request, "look", gettext("Look at what tools declare"), **page)

    def look_view(self, request: HttpRequest) -> HttpResponse:
        """The page for all tools of a source, which opens them to everyone. By POST: record for
        each tool that the user has reviewed what the page showed, not what changed since."""
        require(self.has_change_permission(request))
        there = redirect("admin:tools_toolconfig_changelist")
        if request.method != "POST":
            rows = rows_of_source(ToolConfig.objects.all(), request.GET.get("source", ""))
            closed = rows.exclude(allowed=AllowedCallers.EVERYONE).order_by("name")
            return self._show_look(request, rows, list(closed)) or there
        done = [
            entry
            for entry in request.POST.getlist("look")[:MOST_AT_ONCE]
            if self._looked(request, entry)
        ]
        if done:
            words = gettext(
                "Looked at: %(count)d. Who may use them is again what their pages say."
            ) % {"count": len(done)}
            self.message_user(request, words, messages.SUCCESS)
        if pks := [parse_row_number(pk) for pk in request.POST.getlist("open")]:
            rows = ToolConfig.objects.filter(pk__in=pks).exclude(allowed=AllowedCallers.EVERYONE)
            count = self._set_all(request, rows, allowed=AllowedCallers.EVERYONE)
            words = gettext("Opened to everyone: %(count)d.") % {"count": count}
            self.message_user(request, words, messages.SUCCESS)
        return there

    def _looked(self, request: HttpRequest, entry: str) -> bool:
        """Put down one entry of the form, the mark of :func:`compare_declaration`; whether it was
        still true."""
        number, _colon, mark = entry.partition(":")
        config = get_object_or_404(ToolConfig, pk=parse_row_number(number))
        if record_look(config.pk, mark, author_of(request)):
            self.log_change(request, config, gettext("Looked at what the tool declares."))
            return True
        words = gettext("%(name)s has changed since this page was made: look again.") % {
            "name": config.name
        }
        self.message_user(request, words, messages.WARNING)
        return False

    def page_context(self, request: HttpRequest, config: ToolConfig) -> dict[str, Any]:
        """The context of a tool's page in addition to the default one."""
        page: dict[str, Any] = {"declared": readable_declaration(config.declaration)}
        if look_state(config):
            page["glance"] = compare_declaration(config)
        return page
