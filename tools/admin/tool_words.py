"""What lists say of a tool, in words: what it does, who provides it, when it asks an owner."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext, gettext_lazy as _

from tools.admin.declared import readable_declaration
from tools.models import ToolConfig
from tools.models.tool_config import ApprovalMode

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


class ProviderFilter(admin.SimpleListFilter):
    """By who provides the tools."""

    title = _("provider")
    parameter_name = "provider"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        names = ToolConfig.objects.order_by("provider_name").values_list("provider_name", flat=True)
        return [(name, provider_words(name)) for name in names.distinct() if name]

    def queryset(self, request: HttpRequest, queryset: "QuerySet[Any]") -> "QuerySet[Any]":
        return queryset.filter(provider_name=self.value()) if self.value() else queryset
