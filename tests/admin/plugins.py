"""A plugin's row as the host would have written it, and what a browser sends of its page."""

from typing import Any

from django.utils import timezone

from tools.models import Plugin, PluginStatus

PLUGINS = "/admin/tools/plugin/"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["city", "key"],
    "properties": {
        "city": {
            "type": "string",
            "title": "Home town",
            "description": "Where <you> are.",
            "minLength": 2,
            "pattern": "^[A-Z]",
        },
        "days": {"type": "integer", "default": 3, "minimum": 1, "maximum": 7},
        "ratio": {"type": "number", "exclusiveMaximum": 1},
        "loud": {"type": "boolean", "default": False},
        "unit": {"type": "string", "enum": ["C", "F"], "default": "C"},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 5}, "uniqueItems": True},
        "more": {
            "type": "object",
            "properties": {"depth": {"type": "integer"}},
            "required": ["depth"],
        },
        "key": {"type": "string", "format": "password", "minLength": 4},
    },
}
MANIFEST: dict[str, Any] = {
    "manifest_version": 2,
    "id": "someone.weather",
    "version": "1.2.3",
    "name": "Weather & more",
    "description": "Tells the weather.",
    "author": {"name": "Ann <ann@example.org>"},
    "license": "MIT",
    "capabilities": ["send.text", "storage"],
    "tools": [{"name": "forecast", "description": "The days to come."}],
}


def plugin(
    folder: str = "weather", *, manifest: dict[str, Any] | None = None, **fields: Any
) -> Plugin:
    """A plugin whose manifest is :data:`MANIFEST` with ``manifest`` over it."""
    said = MANIFEST | {"id": f"someone.{folder}"} | (manifest or {})
    return Plugin.objects.create(
        folder=folder, plugin_id=said["id"], version=said["version"], manifest=said, **fields
    )


def configured(**fields: Any) -> Plugin:
    """A plugin that is to be configured as :data:`SCHEMA` says."""
    return plugin(manifest={"config_schema": SCHEMA}, **fields)


def status(
    row: Plugin, state: str = "running", *, process_id: str = "p1", **fields: Any
) -> PluginStatus:
    """How a process gets on with it."""
    usual: dict[str, Any] = {"seen_at": timezone.now(), "tools": ["forecast"]}
    return PluginStatus.objects.create(
        plugin=row, process_id=process_id, state=state, **usual | fields
    )


def address(row: Plugin, end: str = "change/") -> str:
    return f"{PLUGINS}{row.pk}/{end}"


def form(
    *,
    enabled: bool = True,
    granted: tuple[str, ...] = (),
    asked: str = "send.text storage",
    **config: str,
) -> dict[str, Any]:
    """What a browser sends: boxes that are not ticked are left out."""
    sent: dict[str, Any] = {"granted": list(granted), "asked": asked} | (
        {"enabled": "on"} if enabled else {}
    )
    return sent | {f"config-{name}": value for name, value in config.items()}
