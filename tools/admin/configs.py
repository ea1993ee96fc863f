"""Tools: the rows that operators edit and the next message obeys, and what lists say of them."""

from collections.abc import Collection
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy as _

from tools.admin.declared import (
    LOOK_NEEDED,
    MOST_AT_ONCE,
    DeclarationDiff,
    LookFilter,
    declared_title,
    look_badge,
    look_state,
    readable_declaration,
)
from tools.admin.fields import JSON_INPUT, IndentedJSONField
from tools.admin.record_pages import (
    EXCERPT,
    Column,
    author_of,
    by_post,
    choice_filter,
    clamp_text,
    parse_row_number,
    require,
)
from tools.admin.settings_page import SettingsAdmin, SettingsForm
from tools.models import ToolConfig
from tools.models.row_history import record_look
from tools.models.tool_config import ApprovalMode
from tools.text.readable import text_block

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
    return str(PROVIDERS.get(name, name))


def told_description(config: ToolConfig) -> str:
    """What the model is told that the tool does: the operator's words, or the tool's own."""
    return config.description or own_description(config)


def own_description(config: ToolConfig) -> str:
    """What the tool says of itself."""
    return str(readable_declaration(config.declaration)["description"])


def approval_words(config: ToolConfig) -> str:
    """Which calls wait for an owner: by the operator's choice, or as the tool declares."""
    if config.requires_approval == ApprovalMode.NEVER:
        return gettext("never")
    declared = config.declaration.get("requires_approval")
    if config.requires_approval != ApprovalMode.OWN or declared in (True, "all"):
        return gettext("every call")
    return gettext("some calls") if declared else "-"


def _list_providers(request: HttpRequest) -> list[tuple[str, str]]:
    names = ToolConfig.objects.order_by("provider_name").values_list("provider_name", flat=True)
    return [(name, provider_words(name)) for name in names.distinct() if name]


ProviderFilter = choice_filter(
    _("provider"),
    "provider",
    _list_providers,
    lambda rows, value: rows.filter(provider_name=value),
)


class ToolConfigForm(SettingsForm):
    """One tool's settings. What makes no sense together is refused by the model, fault by fault."""

    class Meta:
        model = ToolConfig
        fields = "__all__"
        field_classes = {"parameter_descriptions": IndentedJSONField}  # noqa: RUF012
        widgets = {  # noqa: RUF012 - as above
            "description": forms.Textarea(attrs={"rows": 4, "class": "vLargeTextField"}),
            "allowed_ids": forms.Textarea(
                attrs={"rows": 3, "class": "vLargeTextField", "spellcheck": "false"}
            ),
            "other_chats": forms.Textarea(
                attrs={"rows": 3, "class": "vLargeTextField", "spellcheck": "false"}
            ),
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
    show_full_result_count = True
    form = ToolConfigForm
    actions = ("look",)
    list_pages = ("look",)
    list_display = (
        "tool",
        "enabled",
        "visibility",
        "scope",
        "allowed",
        "approval",
        "mock_enabled",
        "timeout_seconds",
    )
    # The allowed callers are not among these: they also need the ids.
    list_editable = ("enabled", "visibility", "scope", "mock_enabled", "timeout_seconds")
    list_filter = (
        LookFilter,
        "enabled",
        "visibility",
        "scope",
        "allowed",
        "mock_enabled",
        "requires_approval",
        ProviderFilter,
    )
    search_fields = (
        *("name", "description", "declaration__description", "declaration__title"),
        "provider_name",
    )
    search_help_text = _("A name, or words of what a tool does.")
    readonly_fields = (*("name", "provider", "own_words", "arguments", "created_at", "updated_at"),)
    change_form_template = "admin/tools/toolconfig/change_form.html"
    first_fields = (
        *("name", "provider", "enabled", "scope", "allowed", "allowed_ids", "requires_approval"),
        *("mock_enabled", "mock_value"),
    )
    more_fields: ClassVar = (
        (
            _("Who may use it"),
            (
                *("visibility", "pinned", "other_chats"),
                *("calls_per_minute_person", "calls_per_minute_chat", "timeout_seconds"),
            ),
        ),
        (_("What the model is told"), ("own_words", "description", "parameter_descriptions")),
        (_("History"), ("arguments", "created_at", "updated_at")),
    )

    def left_out(self, request: HttpRequest, obj: Any) -> Collection[str]:
        """Other chats are there for the tool that names one alone."""
        is_named = obj is None or "session" in (obj.parameter_names or ())
        return () if is_named else ("other_chats",)

    @admin.display(description=_("tool"), ordering="name")
    def tool(self, config: ToolConfig) -> str:
        title, provider = declared_title(config.declaration), provider_words(config.provider_name)
        return format_html(
            '{} {}{}<div class="quiet">{}</div>',
            config.name,
            look_badge(config),
            clamp_text(told_description(config)[:EXCERPT]),
            " · ".join(filter(None, (title, provider))),
        )

    provider = Column(_("provider"), lambda row: provider_words(row.provider_name) or "-")
    own_words = Column(_("its own description"), lambda row: text_block(own_description(row)))
    approval = Column(_("needs approval"), approval_words)
    arguments = Column(
        _("arguments"),
        lambda row: ", ".join(f"{{{name}}}" for name in row.parameter_names or ()) or "-",
    )

    @admin.action(description=_("Look at what the selected tools declare"), permissions=["change"])
    def look(self, request: HttpRequest, rows: Any) -> HttpResponse | None:
        """The page that shows the declarations and marks them as reviewed."""
        found = list(rows.filter(LOOK_NEEDED).order_by("name")[: MOST_AT_ONCE + 1])
        if not found:
            self.message_user(
                request, gettext("None of these tools is new or has changed."), messages.INFO
            )
            return None
        page: dict[str, Any] = {
            "glances": [DeclarationDiff(config) for config in found[:MOST_AT_ONCE]],
            "most": MOST_AT_ONCE if len(found) > MOST_AT_ONCE else 0,
        }
        return self.show_page(request, "look", gettext("Look at what tools declare"), **page)

    @by_post
    def look_view(self, request: HttpRequest) -> HttpResponse:
        """Record for each tool that the user has reviewed what the page showed, not what changed
        since."""
        require(self.has_change_permission(request))
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
        return redirect("admin:tools_toolconfig_changelist")

    def _looked(self, request: HttpRequest, entry: str) -> bool:
        """Put down one entry of the form, :attr:`DeclarationDiff.mark`; whether it was still
        true."""
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
            page["glance"] = DeclarationDiff(config)
        return page
