"""Where tools come from: the program, a plugin, or one of several MCP servers."""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from tools.admin.record_pages import Rows
from tools.models import McpServer, ToolConfig
from tools.models.tool_config import AllowedCallers
from tools.registry.catalogue import covers_fingerprint, declaration_fingerprint, source_mark
from tools.text.readable import escape_direction_chars

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


@dataclass(slots=True)
class ToolSource:
    """All tools of one source: how many there are, how many are enabled, and how many people other
    than owners cannot use, because nobody has looked at them or their rows say so."""

    key: str
    name: str
    total: int = 0
    enabled: int = 0
    closed: int = 0


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


def load_sources() -> dict[str, ToolSource]:
    """The sources of all tools, by key. One query, and another where there are MCP servers."""
    columns = ("provider_name", "fingerprint", "looked_at", "enabled", "allowed")
    found: dict[str, ToolSource] = {}
    for provider, mark, looked, enabled, allowed in ToolConfig.objects.order_by(
        "provider_name"
    ).values_list(*columns):
        key = source_key(provider, mark)
        source = found.setdefault(key, ToolSource(key, provider_words(provider)))
        source.total += 1
        source.enabled += enabled
        is_new = mark and not covers_fingerprint(looked, mark)
        source.closed += bool(is_new or allowed != AllowedCallers.EVERYONE)
    if any("@" in key for key in found):
        for name in McpServer.objects.values_list("name", flat=True):
            key = source_key("mcp", declaration_fingerprint({}, name))
            if key in found:
                found[key].name = f"MCP · {escape_direction_chars(name)}"
    return found


def sources_of(request: Any) -> dict[str, ToolSource]:
    """The same, once for a request."""
    if not hasattr(request, "tool_sources"):
        request.tool_sources = load_sources()
    found: dict[str, ToolSource] = request.tool_sources
    return found
